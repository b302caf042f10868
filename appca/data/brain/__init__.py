"""Recordings of the brain: NIfTI files, masks, times and events."""
