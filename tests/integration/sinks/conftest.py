"""Fixtures of the sinks' tests."""

from tests.integration.sinks.world import new_world, stubs

__all__ = ["new_world", "stubs"]
