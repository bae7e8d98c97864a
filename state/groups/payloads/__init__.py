"""Payloads of the events about consumer groups: each a dataclass, and below it the function that
reads it, see `state.payloads`.

Bytes (member metadata, assignments) stay the base64 text they travel as: the machines compare and
pass them on, and need their content in one place only (`state.groups.subscription`).
"""
