"""Requests of consumers and of who looks after groups, answered while this node coordinates."""
