"""Models around missing entries: supports of incomplete rows, exact EM, queries that take NaN."""
