"""What is said by turns until one side knows the other (SASL)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

Conversation: TypeAlias = Generator[bytes, bytes, None]
"""What a client says by turns with what it hears; blocks where somebody else has to be asked first,
and raises OSError where that one fails.
"""
