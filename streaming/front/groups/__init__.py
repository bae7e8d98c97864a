"""What of the front coordinates consumer groups."""
