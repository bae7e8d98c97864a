"""Tokens by which brokers know this node: got from an issuer, and kept while they are good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from streaming.keyfiles.renewed import https_context
from streaming.process.wall_clock import wall_clock_ms
from streaming.tokens import issuer as asking
from streaming.tokens import own_tokens
from streaming.tokens.issuer import IssuerFailed
from streaming.tokens.own_tokens import ClientLogin, OwnTokens
from tests.fixtures.certificates import Authority
from tests.fixtures.token_issuer import TokenIssuer

LOGIN = ClientLogin("cluster", "hu:sh")
LIFE_S = 1000.0
TOKEN = "/token"


@pytest.fixture(scope="module")
def known_issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer({"cluster": "hu:sh"}, life_s=LIFE_S) as issuer:
        yield issuer


@pytest.fixture
def issuer(known_issuer: TokenIssuer) -> TokenIssuer:
    """One that does not fail, and was not asked anything yet."""
    known_issuer.failing = False
    known_issuer.asked.clear()
    known_issuer.claims = {}
    return known_issuer


@pytest.fixture
def later_s(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock by which tokens end to some seconds after now."""
    now_ms = wall_clock_ms()

    def wait(seconds: float) -> None:
        monkeypatch.setattr(own_tokens, "wall_clock_ms", lambda: now_ms + int(seconds * 1000))

    return wait


def tokens_of(url: str, login: ClientLogin = LOGIN, trusted: Path | None = None) -> OwnTokens:
    return OwnTokens(url, login, https_context("", str(trusted or "")))


def test_a_token_is_kept_until_most_of_its_life_is_over(
    issuer: TokenIssuer, later_s: Callable[[float], None]
) -> None:
    ours = tokens_of(issuer.token_url)
    first = ours.get()
    later_s(LIFE_S * 0.79)
    assert ours.get() == first
    assert issuer.asked[TOKEN] == 1
    later_s(LIFE_S * 0.81)
    ours.get()
    assert issuer.asked[TOKEN] == 2


def test_an_issuer_that_fails_is_needed_only_when_the_token_has_ended(
    issuer: TokenIssuer, later_s: Callable[[float], None]
) -> None:
    ours = tokens_of(issuer.token_url)
    first = ours.get()
    issuer.failing = True
    later_s(LIFE_S * 0.9)
    assert ours.get() == first
    later_s(LIFE_S + 1)
    with pytest.raises(IssuerFailed, match="answered 503 Service Unavailable: 'later'"):
        ours.get()


def test_a_scope_is_asked_for(issuer: TokenIssuer) -> None:
    def scope(wanted: str) -> Any:
        token = tokens_of(issuer.token_url, ClientLogin("cluster", "hu:sh", wanted)).get()
        return jwt.decode(token, options={"verify_signature": False}).get("scope")

    assert [scope("kafka all"), scope("")] == ["kafka all", None]


def test_who_is_not_known_is_told_what_the_issuer_said(issuer: TokenIssuer) -> None:
    with pytest.raises(IssuerFailed) as caught:
        tokens_of(issuer.token_url, ClientLogin("cluster", "guess")).get()
    said = str(caught.value)
    assert said == f'{issuer.token_url} answered 401 Unauthorized: \'{{"error":"invalid_client"}}\''


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": None}, "gave no token with an end"),
        ({"exp": "never"}, "gave no token with an end"),
        ({"exp": 1}, "gave a token that has ended"),
    ],
)
def test_a_token_has_an_end(issuer: TokenIssuer, claims: dict[str, Any], reason: str) -> None:
    issuer.claims = claims
    with pytest.raises(IssuerFailed, match=reason):
        tokens_of(issuer.token_url).get()


def test_an_answer_without_a_token_is_refused(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(IssuerFailed, match="answered without an access_token"):
        # What answers there is a list of keys.
        monkeypatch.setattr(TokenIssuer, "_given", lambda *_: (200, {"keys": []}))
        tokens_of(issuer.token_url).get()
    monkeypatch.setattr(asking, "_ANSWER_MAX_BYTES", 5)
    with pytest.raises(IssuerFailed, match="answered more than 5 bytes"):
        tokens_of(issuer.token_url).get()


def test_a_token_can_be_in_a_file(issuer: TokenIssuer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    ours = tokens_of(file.as_uri(), ClientLogin("", ""))
    with pytest.raises(IssuerFailed, match="No such file"):
        ours.get()
    token = issuer.token("cluster")
    file.write_text(f"{token}\n")
    assert ours.get() == token


def test_an_issuer_is_trusted_as_configured(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with TokenIssuer({"cluster": "hu:sh"}, authority.keystore("issuer")) as issuer:
        assert tokens_of(issuer.token_url, trusted=authority.trusted).get()
        with pytest.raises(IssuerFailed, match=r"cannot be asked: .*CERTIFICATE_VERIFY_FAILED"):
            tokens_of(issuer.token_url).get()


def test_an_issuer_that_is_not_there_is_named() -> None:
    with TokenIssuer() as issuer:
        url = issuer.token_url
    with pytest.raises(IssuerFailed, match=f"{url} cannot be asked: .*refused"):
        tokens_of(url).get()
