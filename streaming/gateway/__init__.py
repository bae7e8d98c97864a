"""The Kafka protocol server that brokers, admin tools and clients talk to as the controller."""
