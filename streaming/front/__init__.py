"""The front: the process that holds the controller role, the event log's writer and the doors."""
