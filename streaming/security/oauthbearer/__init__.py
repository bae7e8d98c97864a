"""Tokens of an issuer, by which clients and this node say who they are (OAUTHBEARER)."""
