"""LeaderAndIsr answers without an error are told from all others without decoding them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from streaming.wire.apis import ApiKey
from streaming.wire.healthy_answers import tells_no_error
from streaming.wire.responses import decode_response, encode_response

VERSION = 7


def body(*error_codes: int, topics: int = 2, whole: int = 0) -> dict[str, Any]:
    errors = [
        {"partition_index": number, "error_code": code} for number, code in enumerate(error_codes)
    ]
    fine = [{"partition_index": 300, "error_code": 0}]
    return {
        "error_code": whole,
        "topics": [
            {"topic_id": uuid.UUID(int=at), "partition_errors": errors if at == 1 else fine}
            for at in range(topics)
        ],
    }


def answer(said: dict[str, Any], version: int = VERSION) -> bytes:
    return encode_response(ApiKey.LEADER_AND_ISR, version, 77, said)


@pytest.mark.parametrize("version", [5, 6, 7])
@pytest.mark.parametrize("topics", [0, 1, 2, 127, 300])
def test_no_error(version: int, topics: int) -> None:
    assert tells_no_error(version, answer(body(*[0] * 200, topics=topics), version))


@pytest.mark.parametrize("code", [56, 1, 256, -1])
@pytest.mark.parametrize("place", [0, 1, 199])
def test_one_error_anywhere(code: int, place: int) -> None:
    codes = [0] * 200
    codes[place] = code
    assert not tells_no_error(VERSION, answer(body(*codes)))
    assert not tells_no_error(VERSION, answer(body(0, 0, whole=code)))


@pytest.mark.parametrize("version", range(5))
def test_versions_that_answer_by_name_are_decoded(version: int) -> None:
    said = {"error_code": 0, "partition_errors": []}
    assert not tells_no_error(version, answer(said, version))


def test_what_is_cut_off_or_too_long_is_decoded() -> None:
    whole = answer(body(0, 0))
    assert not any(tells_no_error(VERSION, whole[:end]) for end in range(len(whole)))
    assert not tells_no_error(VERSION, whole + b"\x00")


def test_tagged_fields_are_decoded() -> None:
    whole = answer(body(0))
    tagged = whole[:-1] + b"\x01\x05\x01x"
    assert decode_response(ApiKey.LEADER_AND_ISR, VERSION, tagged)[1]["error_code"] == 0
    assert not tells_no_error(VERSION, tagged)


def test_every_changed_byte_is_an_error_or_no_news() -> None:
    """Whatever byte is changed: it is not healthy, or decoding finds no error either."""
    whole = answer(body(0, 0, 0))
    for at in range(len(whole)):
        for value in (1, 0x7F, 0x80, 0xFF):
            changed = whole[:at] + bytes([value]) + whole[at + 1 :]
            if tells_no_error(VERSION, changed):
                _, said = decode_response(ApiKey.LEADER_AND_ISR, VERSION, changed)
                assert said["error_code"] == 0
                assert not any(
                    one["error_code"]
                    for topic in said["topics"]
                    for one in topic["partition_errors"]
                )
