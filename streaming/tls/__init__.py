"""TLS towards brokers and for who connects to us: keys, trust, and connections."""
