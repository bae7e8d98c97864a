"""A KRaft controller's metadata log, read from its folder and written as a snapshot."""
