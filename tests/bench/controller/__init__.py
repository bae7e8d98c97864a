"""Kafka's own controller and helmstream at the same work, side by side."""
