"""Partitions and replicas: their columns, their legal moves and the rules that change them."""
