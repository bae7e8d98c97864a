"""The log of __consumer_offsets as this node leads it: records, replication, taking over."""
