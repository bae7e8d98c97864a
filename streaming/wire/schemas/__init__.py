"""Message schemas (Kafka's JSON format) that kafka-python does not ship: controller to broker."""
