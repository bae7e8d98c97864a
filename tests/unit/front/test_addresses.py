"""Which addresses this node refuses to announce, and beside which brokers it refuses the role."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.errors import ConfigurationError
from streaming.front.addresses import check_announced_host, check_brokers
from streaming.settings import Settings
from streaming.settings_loader import load_settings


def settings(*overrides: str) -> Settings:
    return load_settings(overrides=overrides, environment={})


def end(listener: str, host: str, protocol: int = 0) -> dict[str, Any]:
    return {"listener": listener, "host": host, "port": 9092, "security_protocol": protocol}


OURS = [end("CLIENT", "controller.example"), end("INTERNAL", "controller.example")]


def broker(id_: int, *endpoints: dict[str, Any]) -> dict[str, Any]:
    return {"id": id_, "epoch": 7, "rack": None, "endpoints": list(endpoints), "features": {}}


def refusal(given: Settings, announced: list[dict[str, Any]], *brokers: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        check_brokers(given, announced, brokers)
    return str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["gateway.host=0.0.0.0"], "gateway.host = '0.0.0.0'"),
        (["gateway.host=::"], "gateway.host = '::'"),
        (["gateway.advertised.host=0.0.0.0"], "gateway.advertised.host = '0.0.0.0'"),
    ],
)
def test_all_addresses_at_once_cannot_be_announced(overrides: list[str], named: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_announced_host(settings(*overrides))
    assert named in str(caught.value)
    assert "set gateway.advertised.host" in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["gateway.host=10.0.0.1"],
        ["gateway.host=kafka-controller"],
        ["gateway.host=0.0.0.0", "gateway.advertised.host=10.0.0.1"],
    ],
)
def test_one_address_can_be_announced(overrides: list[str]) -> None:
    check_announced_host(settings(*overrides))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_loopback_address_is_refused_beside_a_broker_elsewhere(host: str) -> None:
    given = settings(f"gateway.host={host}")
    near, far = broker(1, end("P", "127.0.0.1")), broker(2, end("P", "kafka-2.example"))
    said = refusal(given, [end("P", host)], near, far)
    assert f"gateway.host = {host!r}" in said
    assert "broker 2 is at kafka-2.example:9092 (P)" in said
    assert "set gateway.host" in said


def test_the_setting_that_is_announced_is_named() -> None:
    given = settings("gateway.host=0.0.0.0", "gateway.advertised.host=localhost")
    said = refusal(given, [end("P", "localhost")], broker(1, end("P", "10.0.0.1")))
    assert said.startswith("gateway.advertised.host = 'localhost' is reached from this machine")


def test_brokers_on_loopback_may_have_a_controller_there() -> None:
    brokers = [broker(1, end("P", "127.0.0.1")), broker(2, end("P", "localhost"))]
    check_brokers(settings(), [end("P", "127.0.0.1")], brokers)
    check_brokers(settings(), [end("P", "127.0.0.1")], [])


def test_only_listeners_on_which_this_node_is_announced_count() -> None:
    given = settings("inter.broker.listener.name=INTERNAL")
    ends = [end("CLIENT", "kafka-1.example"), end("INTERNAL", "127.0.0.1")]
    check_brokers(given, [end("INTERNAL", "127.0.0.1")], [broker(1, *ends)])
    everywhere = [end("CLIENT", "127.0.0.1"), end("INTERNAL", "127.0.0.1")]
    assert "(CLIENT)" in refusal(given, everywhere, broker(1, *ends))


def test_the_listener_of_brokers_with_several_has_to_be_named() -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h")]
    one = broker(1, end("INTERNAL", "h"))
    said = refusal(settings(), OURS, one, broker(2, *ends))
    assert "inter.broker.listener.name is empty" in said
    assert "broker 2 has several listeners" in said
    assert "allowed: CLIENT, INTERNAL" in said
    check_brokers(settings("inter.broker.listener.name=INTERNAL"), OURS, [one, broker(2, *ends)])
    check_brokers(settings(), OURS, [one])


@pytest.mark.parametrize("key", ["inter.broker.listener.name", "control.plane.listener.name"])
def test_a_listener_that_no_broker_has_is_refused(key: str) -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h")]
    said = refusal(settings(f"{key}=INTERN"), OURS, broker(1, *ends))
    assert said == f"{key} = 'INTERN' is a listener of no broker; allowed: CLIENT, INTERNAL"
    check_brokers(settings(f"{key}=INTERNAL"), OURS, [broker(1, *ends), broker(2, end("X", "h"))])
    check_brokers(settings(f"{key}=INTERN"), OURS, [])


def test_brokers_that_hear_a_controller_over_tls_only_are_refused() -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h", protocol=3)]
    said = refusal(settings("inter.broker.listener.name=INTERNAL"), OURS, broker(1, *ends))
    assert "broker 1 hears the controller on INTERNAL, which is SASL_SSL" in said
    assert "allowed: PLAINTEXT" in said
    check_brokers(settings("inter.broker.listener.name=CLIENT"), OURS, [broker(1, *ends)])


def test_this_node_must_be_announced_where_brokers_look_for_the_controller() -> None:
    given = ["gateway.listeners=CLIENT", "inter.broker.listener.name=INTERNAL"]
    ends = [end("CLIENT", "h"), end("INTERNAL", "h")]
    said = refusal(settings(*given), OURS[:1], broker(1, *ends))
    assert said.startswith("gateway.listeners = 'CLIENT': broker 1 looks for the controller on INT")
    assert "announced on CLIENT;" in said
    check_brokers(settings(*given), OURS, [broker(1, *ends)])
