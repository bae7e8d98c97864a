"""Payloads of events by what they are about: each a dataclass, and below it the function that reads
it.

A reader takes the decoded JSON object and raises KeyError, TypeError or ValueError when a field is
missing or not of its type; `state.events.parse_payload` turns those into MalformedEvent. Arrays of
replicas are int32[n, R], padded on the right with -1.
"""
