"""Starts front and job, keeps them running, and brings an embedded cluster where there is none."""
