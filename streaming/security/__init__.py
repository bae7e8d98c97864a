"""What is spoken with brokers, ZooKeeper and who connects to us: protocols, keys, trust."""
