"""One canonical sequence of decisions out of what several machines decided about the same events.

Blocks of one kind about one event become one block, rows sorted by topic, partition and replica,
matrices cut to the widest list in them. JSON decisions that several machines made alike count once.
The result, and so the decision log, is the same however topics were spread over slots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import orjson

from state.block_topics import common_topics, partition_keys
from state.blocks import Column, decode_block, encode_block
from state.change_columns import ID_LISTS, REPLICA_MASKS, stack_column
from state.decisions import BLOCK_KINDS, KIND_ORDER, Decision, DecisionKind
from state.matrix import NONE

_SORT_KEYS = ("partition", "replica", "broker")
_MASKS_OF = {ids: REPLICA_MASKS if ids == "replicas" else () for ids in ID_LISTS}


@dataclass(frozen=True, slots=True)
class MergedDecision:
    """A decision with its id: the event's offset and its place among that event's decisions."""

    offset: int
    ordinal: int
    kind: DecisionKind
    body: bytes


def merge(decisions: Iterable[Decision]) -> list[MergedDecision]:
    """Return the decisions of all machines about whole events in canonical order, numbered within
    each event.
    """
    ordered = sorted(decisions, key=lambda decision: (decision.offset, KIND_ORDER[decision.kind]))
    merged: list[MergedDecision] = []
    for offset, of_event in groupby(ordered, key=lambda decision: decision.offset):
        bodies = [
            (kind, body)
            for kind, alike in groupby(of_event, key=lambda decision: decision.kind)
            for body in _merge_kind(kind, [decision.body for decision in alike])
        ]
        merged.extend(
            MergedDecision(offset, ordinal, kind, body)
            for ordinal, (kind, body) in enumerate(bodies)
        )
    return merged


def _merge_kind(kind: DecisionKind, bodies: list[bytes]) -> list[bytes]:
    if kind not in BLOCK_KINDS:
        return sorted(set(bodies))
    if kind is DecisionKind.REPORT_IMBALANCE:
        return [_sum_reports(bodies)]
    merged = merge_blocks(bodies)
    return [first_of_brokers(merged) if kind is DecisionKind.PROPOSE_ELECTIONS else merged]


def merge_blocks(bodies: list[bytes]) -> bytes:
    """Return one block with the rows of all, in canonical form."""
    parts = [decode_block(body) for body in bodies]
    if len(parts) == 1 and _is_canonical(*parts[0]):
        return bodies[0]
    topics, topic_ids, places = common_topics(
        [(extra["topics"], extra["topic_ids"]) for _, extra in parts]
    )
    columns: dict[str, list[Column]] = {name: [] for name in parts[0][0]}
    reasons = sorted({reason for _, extra in parts for reason in extra.get("reasons", ())})
    for (part, extra), place in zip(parts, places, strict=True):
        recoded = {**part, "topic": place[part["topic"]]}
        if reasons:
            index = [reasons.index(reason) for reason in extra["reasons"]]
            recoded["reason"] = np.array(index, dtype=part["reason"].dtype)[part["reason"]]
        for name, column in recoded.items():
            columns[name].append(column)
    stacked = _trim({name: _stack(name, arrays) for name, arrays in columns.items()})
    keys = [stacked[name] for name in reversed(_SORT_KEYS) if name in stacked]
    order = np.lexsort([*keys, stacked["topic"]])
    extra = {**parts[0][1], "topics": topics, "topic_ids": topic_ids}
    if reasons:
        extra["reasons"] = reasons
    return encode_block({name: column[order] for name, column in stacked.items()}, extra)


def first_of_brokers(body: bytes) -> bytes:
    """Return a canonical propose_elections block with the first rows of each broker, as many as its
    header allows.
    """
    columns, extra = decode_block(body)
    by_broker = np.argsort(columns["broker"], kind="stable")
    sorted_ids = columns["broker"][by_broker]
    rank = np.empty(len(by_broker), dtype=np.intp)
    rank[by_broker] = np.arange(len(by_broker)) - np.searchsorted(sorted_ids, sorted_ids)
    kept = rank < extra["rows_per_broker"]
    if kept.all():
        return body
    named = np.unique(columns["topic"][kept])
    left = {name: column[kept] for name, column in columns.items()}
    left["topic"] = np.searchsorted(named, left["topic"]).astype(np.int32)
    lists = {name: [extra[name][at] for at in named.tolist()] for name in ("topics", "topic_ids")}
    return encode_block(left, extra | lists)


def _stack(name: str, arrays: list[Column]) -> Column:
    return arrays[0] if len(arrays) == 1 else stack_column(name, arrays)


def _is_canonical(columns: dict[str, Column], extra: dict[str, Any]) -> bool:
    """Return whether a block is as it would be merged, as nearly all are that one machine alone
    made; False too where a partition has several rows.
    """
    named = (extra["topics"], extra.get("reasons", []))
    place = partition_keys(columns)
    return (
        all(names == sorted(set(names)) for names in named)
        and bool((place[1:] > place[:-1]).all())
        and all(
            columns[name].shape[1] == 0 or bool((columns[name][:, -1] != NONE).any())
            for name in ID_LISTS
            if name in columns
        )
    )


def _trim(columns: dict[str, Column]) -> dict[str, Column]:
    for name, masks in _MASKS_OF.items():
        if name in columns:
            used = (columns[name] != NONE).any(axis=0)
            width = int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0
            for trimmed in (name, *masks):
                columns[trimmed] = columns[trimmed][:, :width]
    return columns


def _sum_reports(bodies: list[bytes]) -> bytes:
    """Add up the slots' imbalance reports per broker."""
    parts = [decode_block(body)[0] for body in bodies]
    brokers, index = np.unique(
        np.concatenate([part["broker"] for part in parts]), return_inverse=True
    )
    totals: dict[str, Column] = {"broker": brokers}
    for name in [name for name in parts[0] if name != "broker"]:
        counts = np.concatenate([part[name] for part in parts])
        totals[name] = np.bincount(index, weights=counts, minlength=len(brokers)).astype(np.int32)
    return encode_block(totals, {})


def decision_digest_input(decision: MergedDecision) -> bytes:
    """Return the bytes of a decision that a digest over a decision log covers."""
    head = orjson.dumps([decision.offset, decision.ordinal, decision.kind])
    return (
        len(head).to_bytes(4, "little")
        + head
        + len(decision.body).to_bytes(4, "little")
        + decision.body
    )
