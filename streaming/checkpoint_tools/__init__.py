"""Checkpoints that are verified, moved, or made out of a snapshot."""
