"""Tickets of Kerberos, by which clients, brokers and this node say who they are (GSSAPI)."""
