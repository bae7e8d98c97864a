"""Makes kafka-python's message classes before threads ask for them.

kafka-python 3.0 makes the class of a response in one version when it is first asked for, and holds
the newest class of an API weakly. Of two threads that ask at once each makes one; the registry may
then point to the one that nobody else holds, and from its end on no response of that API can be
read in this process: requests time out, for ever.
"""

from __future__ import annotations

import functools
import threading

import kafka  # noqa: F401 - its modules register the responses
from kafka.protocol.api_header import ResponseClassRegistry

_lock = threading.Lock()


def make_message_classes() -> None:
    """Make the classes of all responses in all their versions, once in this process."""
    with _lock:
        _make()


@functools.cache
def _make() -> None:
    for known in list(ResponseClassRegistry._response_class_registry.values()):
        response = known[None]
        for version in range(response.min_version, response.max_version + 1):
            response[version]
