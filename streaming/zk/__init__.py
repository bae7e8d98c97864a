"""ZooKeeper: the session, the claim of the controller role, fenced writes, bulk reads, formats."""
