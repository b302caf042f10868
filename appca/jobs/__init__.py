"""Work in the background: the queue, worker processes, and the kinds of jobs."""
