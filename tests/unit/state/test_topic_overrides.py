"""Values of a topic's configuration as Kafka's ConfigDef reads them, whoever wrote them."""

from __future__ import annotations

import pytest

from state.topic_overrides import min_insync_of, unclean_of
from tests.unit.state.support import Controller


@pytest.mark.parametrize(("text", "meant"), [(None, None), ("3", 3), (" 2 ", 2), ("+3", 3)])
def test_a_topic_has_the_same_override_when_it_is_created_and_when_it_is_seen(
    text: str | None, meant: int | None
) -> None:
    assert min_insync_of(text) == meant
    controller = Controller((1,))
    configs = {} if text is None else {"min.insync.replicas": text}
    controller.happen(
        "create_topic_requested",
        "t",
        request_id="r",
        topic="t",
        partitions=1,
        replication_factor=1,
        configs=configs,
        start_index=0,
        shift=0,
    )
    topic = controller.slot.table.topic("t")
    assert topic is not None
    assert topic.min_insync == meant


@pytest.mark.parametrize("text", ["", "many", "3_0", "\u0663", "1.5", "3000000000"])
def test_what_is_no_number_of_32_bits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"min\.insync\.replicas|int32|3000000000"):
        min_insync_of(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [(None, None), ("true", True), (" TRUE ", True), ("false", False), ("1", False)],
)
def test_truths_are_read_whatever_their_case(text: str | None, meant: bool | None) -> None:
    assert unclean_of(text) is meant
