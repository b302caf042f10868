"""What one session is looking at: data, settings, selection, jobs it waits for."""
