"""Rehearses what happens to brokers, on a copy of the machines."""
