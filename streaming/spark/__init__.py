"""Spark's session: its settings, its JVM, its workers."""
