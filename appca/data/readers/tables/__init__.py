"""Tables as text or Parquet: how they are written, and what each column is for."""
