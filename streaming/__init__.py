"""The doors and the hallway: event log, Spark query, sinks, observers, gateway and command line."""
