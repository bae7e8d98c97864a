"""Scenarios of Kafka's own tests, driven through helmstream's machines: see README.md."""
