"""Replay: a recorded log folded again, through the query or without Spark."""
