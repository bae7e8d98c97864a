"""The wire between the front and the job: one Unix socket, framed messages both ways."""
