"""Files in which keys, certificates and passwords are."""
