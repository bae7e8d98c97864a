"""Requests of consumers and administrators about groups, answered while this node coordinates."""
