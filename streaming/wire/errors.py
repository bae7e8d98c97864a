"""What can be wrong with bytes from the network, one exception per case."""

from __future__ import annotations


class WireError(Exception):
    """Bytes from the network do not form a message we can read."""


class MalformedFrame(WireError):
    """A frame's bytes do not match the layout its header promises."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed frame: {reason}")
        self.reason = reason


class UnsupportedApi(WireError):
    """A well-formed header asks for an API this server does not serve."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"API key {api_key} is not served")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


class UnsupportedVersion(WireError):
    """A known API in a version outside [min_version, max_version].

    correlation_id is kept because ApiVersions must still be answered (version 0, error 35).
    """

    def __init__(
        self, api_key: int, version: int, min_version: int, max_version: int, correlation_id: int
    ) -> None:
        super().__init__(
            f"API key {api_key} version {version} is not supported,"
            f" allowed {min_version} to {max_version}"
        )
        self.api_key = api_key
        self.version = version
        self.min_version = min_version
        self.max_version = max_version
        self.correlation_id = correlation_id


class FrameTooLarge(WireError):
    """A frame announces more bytes than the connection accepts."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"frame of {size_bytes} bytes exceeds the limit of {limit_bytes} bytes")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
