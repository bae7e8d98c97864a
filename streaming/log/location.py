"""Where a log is: a folder or a file, or a topic of a log cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.server_address import SERVERS_PATTERN

URL_PATTERN = rf"kafka://{SERVERS_PATTERN}/[a-zA-Z0-9._-]{{1,249}}(\?config=/[^\s?]+)?"
URL_FORM = "kafka://host:port[,host:port...]/topic[?config=/path/of/client.properties]"
_SCHEME = "kafka://"
_CONFIG = "?config="


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic by its log cluster's bootstrap servers (host:port, comma separated) and name.

    config: a file with the properties of a client (`streaming.log.client_config`), "" without.
    """

    bootstrap_servers: str
    name: str
    config: str = ""

    def __str__(self) -> str:
        config = f"{_CONFIG}{self.config}" if self.config else ""
        return f"{_SCHEME}{self.bootstrap_servers}/{self.name}{config}"


LogLocation = Path | KafkaTopic


def topic_of(url: str) -> KafkaTopic:
    """Return the topic of a URL; raises ConfigurationError."""
    where = log_location(url)
    if not isinstance(where, KafkaTopic):
        raise ConfigurationError(f"{url!r} is not a topic: allowed is {URL_FORM}")
    return where


def log_location(text: str) -> LogLocation:
    """Return where a log is that was given as text; raises ConfigurationError for a bad URL."""
    if not text.startswith(_SCHEME):
        return Path(text)
    if not re.fullmatch(URL_PATTERN, text):
        raise ConfigurationError(f"{text!r} is not a log's URL: allowed is {URL_FORM}")
    servers, _, rest = text.removeprefix(_SCHEME).partition("/")
    name, _, config = rest.partition(_CONFIG)
    return KafkaTopic(servers, name, config)
