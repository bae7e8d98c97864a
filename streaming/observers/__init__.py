"""What ZooKeeper holds, read again whenever it may have changed, and appended as events."""
