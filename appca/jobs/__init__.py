"""Background work: the queue, worker processes, and the kinds of jobs."""
