"""Scenarios of the group coordinator, driven through the group machines."""
