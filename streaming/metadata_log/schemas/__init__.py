"""Message schemas (Kafka's JSON format) of a KRaft quorum's metadata log, 3.4 to 3.9."""
