"""Cluster-wide facts and the machine that decides about them."""
