"""The way out: decision log, ZooKeeper, brokers, replies, in order, each step idempotent."""
