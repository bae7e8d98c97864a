"""The eyes: what ZooKeeper says, read again whenever it may differ, appended as events."""
