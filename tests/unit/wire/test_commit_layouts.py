"""Requests that were compared with one like them say what decoding them says."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets.batches import encode_batch
from streaming.offsets.commit_batches import CommitBatch
from streaming.offsets.records import offset_records
from streaming.wire import commit_layouts
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.commit_layouts import CommitLayout, CommitLayouts
from streaming.wire.requests import decode_request, encode_request
from streaming.wire.responses import decode_response

VERSIONS = range(6, 10)
NUMBERS = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
ROW = st.tuples(
    st.sampled_from(["t", "another", "ü" * 70]), st.integers(0, 300), st.sampled_from(["", "m"])
)


def request(version: int, rows: list[Any], numbers: list[tuple[int, int]], **more: Any) -> bytes:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, number, text), (offset, epoch) in zip(rows, numbers, strict=True):
        partition = {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": epoch,
            "committed_metadata": text,
        }
        topics.setdefault(topic, []).append(partition)
    body = {
        "group_id": "g",
        "generation_id_or_member_epoch": 3,
        "member_id": "m" * 200,
        "group_instance_id": None,
        "topics": [{"name": name, "partitions": each} for name, each in topics.items()],
    }
    client = more.pop("client", "c")
    return encode_request(ApiKey.OFFSET_COMMIT, version, more.pop("id", 7), client, body | more)


def keep(layouts: CommitLayouts, frame: bytes) -> None:
    layout = layouts.read(frame)
    assert layout is not None
    layouts.keep(frame, layout)


def read(layout: CommitLayout, frame: bytes) -> list[Any]:
    numbers = [struct.unpack(">qi", one) for one in layout.numbers(frame)]
    each = zip(layout.partitions, numbers, layout.metadata, strict=True)
    return [[*partition, *pair, text] for partition, pair, text in each]


@given(st.sampled_from(VERSIONS), st.lists(ROW, min_size=1, max_size=130, unique=True), st.data())
def test_a_request_of_a_known_layout_says_what_is_in_it(
    version: int, rows: list[Any], data: st.DataObject
) -> None:
    rows.sort(key=lambda row: row[0])
    layouts, seen = CommitLayouts(), set()
    for number in range(3):
        numbers = data.draw(st.lists(NUMBERS, min_size=len(rows), max_size=len(rows)))
        frame = request(version, rows, numbers, id=number)
        layout = layouts.read(frame)
        assert layout is not None
        layouts.keep(frame, layout)
        seen.add(layout)
        body = decode_request(frame, APIS).body
        assert read(layout, frame) == body["offsets"]
        assert (layout.group, layout.member, layout.generation) == ("g", "m" * 200, 3)
        batch = CommitBatch(layout.group, layout.partitions, layout.metadata)
        told = [[*row, 1_000, None, 0] for row in body["offsets"]]
        whole = encode_batch(list(offset_records("g", 1_000, told)))
        assert batch.encode(layout.numbers(frame), 1_000) == whole
    assert len(seen) == 1
    correlation_id, answer = decode_response(ApiKey.OFFSET_COMMIT, version, layout.answer(22))
    assert correlation_id == 0
    answered = [
        (topic["name"], one["partition_index"], one["error_code"])
        for topic in answer["topics"]
        for one in topic["partitions"]
    ]
    assert answered == [(*partition, 22) for partition in layout.partitions]


@pytest.mark.parametrize(
    "change",
    [
        {"group_id": "h"},
        {"member_id": "n" * 200},
        {"generation_id_or_member_epoch": 4},
        {"group_instance_id": "i"},
        {"client": "d"},
        {"rows": [("t", 0, ""), ("t", 2, "")]},
        {"rows": [("u", 0, ""), ("u", 1, "")]},
        {"rows": [("t", 0, "")]},
    ],
)
@pytest.mark.parametrize("version", range(7, 10))
def test_what_differs_in_more_than_numbers_has_another_layout(
    version: int, change: dict[str, Any]
) -> None:
    layouts = CommitLayouts()
    first = request(version, [("t", 0, ""), ("t", 1, "")], [(1, 1), (2, 2)])
    known = layouts.read(first)
    changed = dict(change)
    rows = changed.pop("rows", [("t", 0, ""), ("t", 1, "")])
    other = request(version, rows, [(1, 1), (2, 2)][: len(rows)], **changed)
    assert known is not None
    layouts.keep(first, known)
    found = layouts.read(other)
    assert found is not None
    assert found is not known
    layouts.keep(other, found)
    assert read(found, other) == decode_request(other, APIS).body["offsets"]
    back = layouts.read(first)
    assert back is not None
    assert read(back, first) == decode_request(first, APIS).body["offsets"]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_cut_off_or_has_no_partitions_is_left_to_others(version: int) -> None:
    frame = request(version, [("t", 0, "m")], [(1, 1)])
    assert CommitLayouts().read(request(version, [], [])) is None
    for end in range(len(frame)):
        layouts = CommitLayouts()
        assert layouts.read(frame[:end]) is None
        assert layouts.read(frame) is not None


def test_what_follows_a_request_is_passed_over() -> None:
    frame = request(9, [("t", 0, "m")], [(1, 1)])
    longer = frame + b"\0"
    found, wanted = CommitLayouts().read(longer), CommitLayouts().read(frame)
    assert found is not None and wanted is not None
    assert found.numbers(longer) == wanted.numbers(frame)


def test_versions_without_leader_epochs_are_left_to_others() -> None:
    body = {
        "group_id": "g",
        "generation_id_or_member_epoch": 3,
        "member_id": "m",
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    }
    frame = encode_request(ApiKey.OFFSET_COMMIT, 5, 7, "c", body)
    assert CommitLayouts().read(frame) is None


def test_no_more_is_kept_than_some_bytes_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = CommitLayouts()
    frames = [request(9, [("t", 0, "")], [(1, 1)], member_id=f"member-{n}") for n in range(9)]
    monkeypatch.setattr(commit_layouts, "_REQUESTS_BYTES_MAX", 3 * len(frames[0]))
    for frame in frames:
        for _ in range(2):  # the same again takes no more
            keep(layouts, frame)
    kept = [layouts.read(frame) is layouts.read(frame) for frame in frames]
    assert kept == [False] * 6 + [True] * 3
    monkeypatch.setattr(commit_layouts, "_REQUEST_BYTES_MAX", len(frames[0]) - 1)
    assert layouts.read(frames[-1]) is None


def test_what_nobody_uses_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = CommitLayouts()
    frames = [request(9, [("t", 0, "")], [(1, 1)], member_id=f"member-{n}") for n in range(6)]
    for frame in frames[:4]:
        keep(layouts, frame)
    layouts.forget_unused()
    used = layouts.read(frames[0])
    keep(layouts, frames[4])
    monkeypatch.setattr(commit_layouts, "_LAYOUTS_MAX", 5)
    keep(layouts, frames[5])  # in the place of the one that was kept first, and is not used
    kept = [layouts.read(frame) is layouts.read(frame) for frame in frames]
    assert kept == [True, False, True, True, True, True]
    for _ in range(3):
        layouts.forget_unused()
        assert layouts.read(frames[0]) is used
    assert layouts.read(frames[2]) is not layouts.read(frames[2])
    keep(layouts, frames[2])
    layouts.forget_unused()
    layouts.forget_unused()
    monkeypatch.setattr(commit_layouts, "_REQUESTS_BYTES_MAX", len(frames[0]))
    keep(layouts, frames[1])  # and their bytes do not count any more
    assert layouts.read(frames[1]) is layouts.read(frames[1])
