"""The read side: decisions folded into a columnar view of the cluster."""
