"""Tickets of Kerberos, as clients show them and as Java's own Kerberos gets and takes them."""
