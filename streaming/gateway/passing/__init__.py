"""Requests that this node has real brokers answer."""
