"""The logs of the house: one total order of records with durable appends and exact re-reads."""
