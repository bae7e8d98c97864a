"""The front process: it holds the controller role, writes the event log and serves clients."""
