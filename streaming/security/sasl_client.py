"""Says who we are on a connection to a broker (KIP-43, KIP-152)."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor

from scramp import ScramException

from streaming.security.ourselves import Credentials
from streaming.security.proofs import password_conversation
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.conversation import Conversation
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from streaming.wire.schema_codec import Body

_HANDSHAKE_VERSION = 1  # by which the broker knows that tokens come in requests
_AUTHENTICATE_VERSION = 2
_USED = 0.85
"""Of a lifetime, which began before we heard of it; the least part that Kafka takes."""

_THREADS = ThreadPoolExecutor(8, "sasl")
"""To salt a password takes milliseconds, an issuer that is away longer: nobody else should wait."""


class NotAuthenticated(ConnectionError):
    """A broker does not take us for who we say we are; the message says what it said."""


async def authenticate(connection: Exchange, ours: Credentials, host: str) -> float:
    """Say who we are, and return for how many seconds that is good, infinity as a rule (KIP-368).

    host: where the connection goes to. Raises NotAuthenticated, OSError (an issuer that fails, too)
    and WireError.
    """
    mechanism = ours.mechanism
    refused = f"with {mechanism} as user {ours.user!r}"
    answer = await _ask(connection, ApiKey.SASL_HANDSHAKE, {"mechanism": mechanism})
    if answer["error_code"]:
        spoken = ", ".join(answer["mechanisms"])
        raise NotAuthenticated(f"refused {refused}: the broker takes {spoken}")
    conversation = _conversation(ours, host)
    heard, lifetime_ms = None, 0
    in_thread = asyncio.get_running_loop().run_in_executor
    while (token := await in_thread(_THREADS, _said, conversation, heard, ours.user)) is not None:
        answer = await _ask(connection, ApiKey.SASL_AUTHENTICATE, {"auth_bytes": token})
        if answer["error_code"]:
            raise NotAuthenticated(f"refused {refused}: {answer['error_message']}")
        heard, lifetime_ms = answer["auth_bytes"], answer["session_lifetime_ms"]
    return lifetime_ms / 1000 * _USED or math.inf


def _said(conversation: Conversation, heard: bytes | None, user: str) -> bytes | None:
    """Return what comes next, None at the end; raises NotAuthenticated."""
    try:
        return next(conversation) if heard is None else conversation.send(heard)
    except StopIteration:
        return None
    except (ScramException, UnicodeDecodeError) as error:
        raise NotAuthenticated(f"the broker and user {user!r} do not agree: {error}") from error


def _conversation(ours: Credentials, host: str) -> Conversation:
    if ours.begin is not None:
        return ours.begin(host)
    return password_conversation(ours.mechanism, ours.user, ours.password)


async def _ask(connection: Exchange, api: ApiKey, body: Body) -> Body:
    version = _HANDSHAKE_VERSION if api is ApiKey.SASL_HANDSHAKE else _AUTHENTICATE_VERSION
    assert APIS[api].max_version >= version
    request = encode_request(api, version, 0, CLIENT_ID, body)
    return decode_response(api, version, await connection.ask(request))[1]
