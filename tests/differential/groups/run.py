"""One run: a seed's steps, asked of Kafka's coordinator and of ours, and compared after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.differential.compare import Difference
from tests.differential.groups.chooser import Chooser, Step
from tests.differential.groups.comparing import comparable, unequal
from tests.differential.groups.known import name_of
from tests.differential.groups.model import Group, Model
from tests.differential.groups.side import CLOSED, Request, Side
from tests.differential.outcome import Outcome

QUIET_S = 0.25
"""Whoever has no answer after so long without one waits for others."""
PATIENCE_S = 60.0
TIME_OUT_S = 3.5
"""What is short for a client is over by then."""
_APART_S = 0.02
"""Requests of a step arrive one after the other, everywhere in the same order."""
_POLL_S = 0.02
_TIMES_OUT = 6
_MOST_IDS = 100
"""That a client is given in a group before this is given up."""
_WAIT_FOR_OTHERS = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
_OBSERVER = "observer"

Say = Callable[[str], None]
Address = tuple[str, int]


class Run:
    """Both sides of one seed."""

    def __init__(self, seed: int, stock: Side, ours: Side, say: Say = lambda _: None) -> None:
        self.outcome = Outcome(seed)
        self.model = Model(seed)
        self._chooser = Chooser(Random(seed), self.model)
        self._stock = stock
        self._ours = ours
        self._say = say
        self._asked: dict[str, Request] = {}

    def take(self, steps: int) -> Outcome:
        """Take steps until there are enough or something differs."""
        while len(self.outcome.steps) < steps and not self.outcome.differences:
            step = self._chooser.next()
            self._say(f"{len(self.outcome.steps) + 1:3} {step}")
            self.outcome.steps.append(step)
            self.outcome.differences = self.do(step)
        return self.outcome

    def do(self, step: Step) -> list[Difference]:
        """Take a step, wait while somebody's time is short, and return what differs."""
        for client in step.reconnecting:
            for side in (self._stock, self._ours):
                side.hang_up(client.name)
        return self._settled(step.requests)

    def _settled(self, requests: Sequence[Request]) -> list[Difference]:
        found = self._ask(requests) or self._observe()
        for _ in range(_TIMES_OUT):
            if found or not self.model.is_in_a_hurry:
                break
            self._say("      time passes")
            ending = self.model.ending
            found = self._ask([], TIME_OUT_S) or self._observe()
            for client in ending:
                client.is_short = False
        return found

    def go_on_at(self, stock: Address, ours: Address) -> list[Difference]:
        """Go on with other coordinators, who loaded the groups, and return what differs."""
        self._say("      others coordinate")
        self._stock.move(stock)
        self._ours.move(ours)
        self.model.hung_up()
        return self._settled([])

    def _ask(self, requests: Sequence[Request], quiet_s: float = QUIET_S) -> list[Difference]:
        for request in requests:
            self.model.asked(request)
            self._asked[request.client] = request
            for side in (self._stock, self._ours):
                side.send(request)
            time.sleep(_APART_S)
        self._wait(quiet_s)
        found = []
        while answered := self._stock.answered | self._ours.answered:
            client = min(answered)
            answers = (comparable(side.take(client)) for side in (self._stock, self._ours))
            found += self._compare(self._asked[client], *answers)
        return found

    def _wait(self, quiet_s: float) -> None:
        """Wait until nothing more comes: by then both let the same clients wait, for others."""
        last_s = time.monotonic()
        while True:
            if any([side.receive(_POLL_S) for side in (self._stock, self._ours)]):
                last_s = time.monotonic()
            waiting = self._stock.waiting
            wait_for_others = all(self._asked[one].api in _WAIT_FOR_OTHERS for one in waiting)
            alike = waiting == self._ours.waiting and wait_for_others
            if time.monotonic() - last_s > (quiet_s if alike else PATIENCE_S):
                break

    def _compare(self, request: Request, stock: Any, ours: Any) -> list[Difference]:
        self._say(f"      {request.client} {request.api.name} -> {stock}")
        if request.api is ApiKey.LIST_GROUPS:
            stock, ours = self._only_ours(stock), self._only_ours(ours)
        if stock == ours:
            self.outcome.tried.update(_in_words(request, stock))
            self.model.answered(request, stock)
            return []
        group = self.model.group_of(request.client)
        if group is not None and (name := name_of(request, group, stock, ours)):
            self._say(f"      KNOWN {name}: {ours}")
            self.outcome.known[name] += 1
            self._give_up(group)
            return []
        return [
            Difference(f"answer to {request}, {place}", *both)
            for place, *both in unequal(stock, ours)
        ]

    def _give_up(self, group: Group) -> None:
        """Go on with another group: of this one the two have different ideas."""
        group.give_up()
        for client in group.clients:
            for side in (self._stock, self._ours):
                side.begin_anew(client.name, group.round * _MOST_IDS)

    def _observe(self) -> list[Difference]:
        """Compare how groups look, until they look the same."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            looks = [self._look(side) for side in (self._stock, self._ours)]
            if looks[0] == looks[1] or time.monotonic() > deadline_s:
                break
        self.model.described(looks[0]["described"])
        return [Difference(place, *both) for place, *both in unequal(*looks)]

    def _only_ours(self, listed: Any) -> Any:
        """Return a list without groups that were given up, or are of others."""
        names = {group.group_id for group in self.model.groups}
        return {**listed, "groups": [one for one in listed["groups"] if one["group_id"] in names]}

    def _look(self, side: Side) -> dict[str, Any]:
        names = [group.group_id for group in self.model.groups]
        described = self._answer(side, ApiKey.DESCRIBE_GROUPS, 5, {"groups": names})["groups"]
        listed = self._answer(side, ApiKey.LIST_GROUPS, 4, {"states_filter": []})
        ask = [{"group_id": one, "topics": None} for one in names]
        fetched = self._answer(side, ApiKey.OFFSET_FETCH, 8, {"groups": ask})["groups"]
        return {
            "described": described,
            "listed": self._only_ours(listed)["groups"],
            "fetched": fetched,
        }

    def _answer(self, side: Side, api: ApiKey, version: int, body: dict[str, Any]) -> Any:
        side.send(Request(_OBSERVER, api, version, body))
        deadline_s = time.monotonic() + PATIENCE_S
        while _OBSERVER not in side.answered:
            assert time.monotonic() < deadline_s, f"{api.name} is not answered"
            side.receive(_POLL_S)
        return comparable(side.take(_OBSERVER))


def _in_words(request: Request, answer: Any) -> set[str]:
    """Return which errors an answer has, for a count of what was tried."""
    if answer == CLOSED:
        return {f"{request.api.name} {answer}"}
    return {f"{request.api.name} {ProtocolError(code).name}" for code in _errors(answer)}


def _errors(part: Any) -> Iterator[int]:
    if isinstance(part, dict):
        if "error_code" in part:
            yield part["error_code"]
        part = [*part.values()]
    if isinstance(part, list):
        for one in part:
            yield from _errors(one)
