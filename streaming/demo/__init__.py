"""`helmstream demo`: a real cluster through crashes, step by step, checked from outside."""
