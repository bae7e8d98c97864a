"""Compares what a KRaft quorum knows with what it wrote to ZooKeeper, while a cluster migrates."""
