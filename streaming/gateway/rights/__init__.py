"""What clients may ask: in front of all that answers them, where brokers have an authorizer."""
