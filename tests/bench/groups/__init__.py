"""The same load of consumer groups for Kafka's own coordinator and for helmstream, in turns."""
