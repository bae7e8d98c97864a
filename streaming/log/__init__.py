"""Logs in files or Kafka topics: one total order of records, durable appends, exact re-reads."""
