"""Says what would keep a cluster from being migrated to KRaft, and what would be lost by it."""
