"""Tokens of an issuer, by which clients say who they are (OAUTHBEARER)."""
