"""Where a job begins, what it does before its query is ready, and how it waits for its turn."""
