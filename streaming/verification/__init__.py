"""Compares what brokers know, and which replicas they have, with ZooKeeper."""
