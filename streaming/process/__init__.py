"""What every process of ours has: a clock, counters, locks, limits."""
