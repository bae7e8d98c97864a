"""The pure room: events in, decisions out; no clock, no randomness, no input or output."""
