"""Tokens of issuers as clients get them (OAUTHBEARER); others' are judged in `security`."""
