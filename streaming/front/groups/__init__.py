"""The group coordinator's part in the front: what needs no decision, and carrying decisions out."""
