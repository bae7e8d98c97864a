"""Real ZooKeeper and Kafka servers as child processes, for demos, tests and a first run."""
