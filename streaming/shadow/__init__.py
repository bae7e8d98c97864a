"""Shadow mode: deciding beside a live controller, and comparing with what it did."""
