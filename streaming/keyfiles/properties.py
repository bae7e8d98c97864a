"""Reads properties as Java's programs have them in files."""

from __future__ import annotations

from pathlib import Path

from jproperties import ParseError, Properties

from streaming.errors import ConfigurationError


def read_properties(file: Path) -> dict[str, str]:
    """Return a file's properties; raises ConfigurationError naming it."""
    properties = Properties()
    try:
        properties.load(file.read_bytes(), "utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    except (ParseError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} holds no properties: {error}") from error
    return {key: value.data.strip() for key, value in properties.items()}
