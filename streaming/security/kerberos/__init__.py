"""Tickets of Kerberos, by which clients and brokers tell this node who they are (GSSAPI)."""
