"""Explanations for the eye."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import orjson
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from state.decisions import DecisionKind
from state.partitions.ballots import Ballot, Finding
from state.protocol_errors import error_text
from streaming.explain.changes import Said, error_of
from streaming.explain.groups import sentence as group_sentence
from streaming.explain.story import Explanation, GroupExplanation
from streaming.log.api import LogRecord

_PAYLOAD_CHARACTERS = 300
_NOBODY = -1
_NOT_KNOWN = "not known any more"
_NOT_KEPT = "not known: there is no outcome log in this folder, as in a shadow's or a replay's"
_NO_EVENT_LOG = "there is no event log in this folder; if it is in a topic, set event.log.url"


def explanation(one: Explanation) -> RenderableType:
    """One change with its reasons."""
    change = one.change
    tree = Tree(Text(f"{one.topic}-{one.partition}", style="bold"))
    tree.add(_event(one))
    decided = tree.add(Text("decided", style="bold"))
    for line in sentences(one):
        decided.add(Text(line))
    for ballot in () if one.reconstruction is None else one.reconstruction.ballots:
        if ballot.partition == one.partition:
            tree.add(_election(ballot))
    if one.reconstruction is None:
        tree.add(
            Text(
                f"{_why_not_reconstructed(one)}: who else could have led is not known",
                style="dim",
            )
        )
    tree.add(Text.assemble(("written  ", "bold"), _written(one)))
    if one.recipients and one.outcome.kept:
        tree.add(_brokers(one, change.time_ms))
    if not one.recipients_complete:
        tree.add(Text("who else was registered, and told, is not known", style="dim"))
    if not one.partition_named:
        tree.add(_not_named(one))
    return tree


def _not_named(one: Explanation) -> Text:
    return Text(
        f"no retained decision names partition {one.partition}: what is shown is about the whole"
        f" topic, and {one.topic} may have no such partition",
        style="yellow",
    )


def _why_not_reconstructed(one: Explanation) -> str:
    if one.has_event_log:
        return "the event log does not reach back to the controller's election"
    return "without the event log"


def story(changes: Iterable[Explanation]) -> RenderableType:
    """Changes one below the other, the latest last."""
    found = list(changes)
    notes = [_not_named(one) for one in found[-1:] if not one.partition_named]
    return Group(*map(_chapter, found), *notes)


def group_story(changes: Iterable[GroupExplanation]) -> RenderableType:
    """A group's changes one below the other, the latest last."""
    return Group(*(_group_chapter(one) for one in changes))


def _group_chapter(one: GroupExplanation) -> RenderableType:
    tree = Tree(_heading(one.change.offset, one.change.time_ms, one.event))
    for change in one.change.changes:
        tree.add(Text(group_sentence(change)))
    errors = [
        f"{each['api']} error {error_text(each['error'])}"
        for each in one.change.replies
        if each["error"]
    ]
    if errors:
        tree.add(Text(f"refused: {', '.join(errors)}", style="yellow"))
    return tree


def _heading(offset: int, time_ms: int, event: LogRecord | None) -> Text:
    kind = "" if event is None else event.kind
    return Text.assemble((f"{offset}  {_clock(time_ms)}  ", "bold"), (kind, "cyan"))


def _chapter(one: Explanation) -> RenderableType:
    tree = Tree(_heading(one.change.offset, one.change.time_ms, one.event))
    for line in sentences(one):
        tree.add(Text(line))
    confirmed = [_confirming(one, id_) for id_ in one.recipients if id_ in one.outcome.confirmed_ms]
    recipients = [
        *map(str, one.recipients),
        *([] if one.recipients_complete else ["others that are not known"]),
    ]
    brokers = f"; confirmed by {', '.join(confirmed) or 'nobody'} of {', '.join(recipients)}"
    tree.add(_written(one).append(brokers if one.recipients and one.outcome.retained else ""))
    return tree


def sentences(one: Explanation) -> Iterator[str]:
    """Say what was decided about the partition, a line for each decision."""
    row = one.change.row
    if row is not None:
        yield _change(row)
    for kind, found in one.change.decided.items():
        for said in found:
            if kind == DecisionKind.STOP_REPLICAS:
                verb = "delete" if said["delete"] else "stop"
                yield f"{verb} the replica on broker {said['broker']}"
            elif kind == DecisionKind.REFUSE_TRANSITION:
                who = "partition" if said["replica"] == _NOBODY else f"replica {said['replica']}"
                move = f"{said['current']} -> {said['target']}"
                yield f"{who} {move} refused: {said['reason']}"
            elif kind == DecisionKind.REPLY:
                yield _reply(said, one.partition)
            elif kind != DecisionKind.CHANGE_PARTITIONS:
                yield kind


def _change(row: Said) -> str:
    before, after = row["leader_before"], row["leader"]
    moved = f"{_leader(before)} -> {_leader(after)}" if before != after else _leader(after)
    told = "" if "write" in row["actions"] else ", nothing to write"
    return (
        f"leader {moved} ({row['rule']}), isr {row['isr']}, "
        f"leader epoch {row['leader_epoch']}, replicas {row['replicas']}{told}"
    )


def _leader(broker: int) -> str:
    return "none" if broker == _NOBODY else str(broker)


def _reply(said: Said, partition: int) -> str:
    code = error_of(said, partition)
    answer = f"refused, error {error_text(code)}" if code else "accepted"
    return f"reply to {said['api']}: {answer}"


def _event(one: Explanation) -> Text:
    head = Text.assemble(
        ("event  ", "bold"), f"{one.change.offset} at {_clock(one.change.time_ms)} "
    )
    if not one.has_event_log:
        return head.append(f"({_NO_EVENT_LOG})", style="yellow")
    if one.event is None:
        return head.append("(the event log has let go of it)", style="dim")
    text = orjson.dumps(orjson.loads(one.event.payload)).decode()
    if len(text) > _PAYLOAD_CHARACTERS:
        text = f"{text[:_PAYLOAD_CHARACTERS]}..."
    return head.append(one.event.kind, style="cyan").append(f" {text}", style="dim")


def _election(ballot: Ballot) -> RenderableType:
    won = "nobody" if ballot.leader == _NOBODY else f"broker {ballot.leader}"
    unclean = ", unclean allowed" if ballot.unclean_allowed else ""
    tree = Tree(
        Text.assemble(
            ("election  ", "bold"),
            f"{ballot.rule.name.lower()}: {won}; isr before {list(ballot.isr)}{unclean}",
        )
    )
    for broker, finding in ballot.candidates:
        style = "green" if finding is Finding.ELECTED else ""
        tree.add(Text(f"broker {broker}: {finding}", style=style))
    return tree


def _written(one: Explanation) -> Text:
    row, batch = one.change.row, one.outcome.batch
    if one.outcome.damage:
        return Text(f"not known: the outcome log is damaged: {one.outcome.damage}", style="red")
    if not one.outcome.retained:
        return Text(_NOT_KNOWN if one.outcome.kept else _NOT_KEPT, style="dim")
    if batch is None:
        return Text("not yet", style="yellow")
    if one.lost is not None:
        return Text(f"not written: {one.lost}", style="red")
    after_ms = batch["written_at_ms"] - one.change.time_ms
    if row is None or "write" not in row["actions"]:
        return Text(f"done {after_ms} ms after the event", style="dim")
    return Text(f"znode version {row['partition_epoch']}, {after_ms} ms after the event")


def _brokers(one: Explanation, time_ms: int) -> RenderableType:
    table = Table("broker", "sent", "confirmed", "", box=None, header_style="bold", pad_edge=False)
    unsaid = "not yet" if one.outcome.retained else _NOT_KNOWN
    for broker in one.recipients:
        times = (one.outcome.delivered_ms.get(broker), one.outcome.confirmed_ms.get(broker))
        cells = (unsaid if ms is None else f"after {ms - time_ms} ms" for ms in times)
        table.add_row(str(broker), *cells, Text(_refusal(one, broker), style="red"))
    return table


def _confirming(one: Explanation, broker: int) -> str:
    refusal = _refusal(one, broker)
    return f"{broker} ({refusal})" if refusal else str(broker)


def _refusal(one: Explanation, broker: int) -> str:
    error = one.refused_by(broker)
    return "" if error is None else f"refuses the replica: {error_text(error)}"


def _clock(time_ms: int) -> str:
    time = datetime.fromtimestamp(time_ms / 1000, UTC)
    return time.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
