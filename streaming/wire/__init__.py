"""Kafka's wire protocol: framing, message codec, and the wide controller RPCs."""
