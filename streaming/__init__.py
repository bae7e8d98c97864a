"""All that has side effects: event log, Spark query, sinks, observers, gateway, command line."""
