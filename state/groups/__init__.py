"""Consumer groups: Kafka's classic group coordinator as pure state machines."""
