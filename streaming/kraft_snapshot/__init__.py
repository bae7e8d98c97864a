"""Writes what ZooKeeper has of a cluster as a snapshot that a KRaft controller begins with."""
