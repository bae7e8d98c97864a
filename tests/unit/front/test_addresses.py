"""Which addresses this node refuses to announce, and beside which brokers it refuses the role."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from streaming.errors import ConfigurationError
from streaming.front.addresses import (
    check_announced_host,
    check_brokers,
    served_listeners,
    unclean_shutdowns,
    unserved_listeners,
)
from streaming.front.gateway import FrontGateway
from streaming.observers.brokers import Registration
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.endpoints import Endpoint, SecurityProtocol


def settings(*overrides: str) -> Settings:
    return load_settings(overrides=overrides, environment={})


def end(listener: str, host: str, protocol: int = 0) -> Endpoint:
    return Endpoint(
        listener=listener, host=host, port=9092, security_protocol=SecurityProtocol(protocol)
    )


OURS = [end("CLIENT", "controller.example"), end("INTERNAL", "controller.example")]


def broker(id_: int, *endpoints: Endpoint) -> Registration:
    return Registration(id_, 7, None, endpoints, {})


def refusal(given: Settings, announced: list[Endpoint], *brokers: Registration) -> str:
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


KEYS = ["inter.broker.listener.name", "control.plane.listener.name"]


def other_than(key: str) -> str:
    return KEYS[1 - KEYS.index(key)]


@pytest.mark.parametrize("key", KEYS)
def test_a_listener_that_no_broker_has_is_refused(key: str) -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h")]
    said = refusal(settings(f"{key}=INTERN"), OURS, broker(1, *ends))
    assert said == f"{key} = 'INTERN' is a listener of no broker; allowed: CLIENT, INTERNAL"
    given = settings(f"{key}=INTERNAL", f"{other_than(key)}=CLIENT")
    check_brokers(given, OURS, [broker(1, *ends), broker(2, end("X", "h"))])
    check_brokers(settings(f"{key}=INTERN"), OURS, [])


def test_brokers_that_hear_a_controller_over_tls_only_are_refused() -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h", protocol=3)]
    said = refusal(settings("inter.broker.listener.name=INTERNAL"), OURS, broker(1, *ends))
    assert "broker 1 hears the controller on INTERNAL, which is SASL_SSL" in said
    assert "allowed: PLAINTEXT" in said
    check_brokers(settings("inter.broker.listener.name=CLIENT"), OURS[:1], [broker(1, *ends)])


def test_this_node_must_be_announced_where_brokers_look_for_the_controller() -> None:
    given = ["gateway.listeners=CLIENT", "inter.broker.listener.name=INTERNAL"]
    ends = [end("CLIENT", "h"), end("INTERNAL", "h")]
    said = refusal(settings(*given), OURS[:1], broker(1, *ends))
    assert said.startswith("gateway.listeners = 'CLIENT': broker 1 looks for the controller on INT")
    assert "announced on CLIENT;" in said
    check_brokers(settings(*given), OURS, [broker(1, *ends)])


CONTROL_PLANE = ["control.plane.listener.name=CONTROL", "inter.broker.listener.name=INTERNAL"]
CONTROL = end("CONTROL", "controller.example")


def test_this_node_must_be_announced_where_brokers_ask_for_controlled_shutdowns() -> None:
    one = broker(1, end("CLIENT", "h"), end("CONTROL", "h"), end("INTERNAL", "h"))
    said = refusal(settings(*CONTROL_PLANE, "gateway.listeners=CONTROL"), [CONTROL], one)
    assert "broker 1 looks for the controller on INTERNAL" in said
    given = settings(*CONTROL_PLANE)
    check_brokers(given, [CONTROL, *OURS], [one])
    assert unclean_shutdowns(given, [one]) is None
    assert "inter.broker.listener.name is empty" in refusal(settings(CONTROL_PLANE[0]), OURS, one)


def test_brokers_that_ask_for_controlled_shutdowns_over_tls_are_served_without() -> None:
    one = broker(1, end("CONTROL", "h"), end("INTERNAL", "h", protocol=1))
    given = settings(*CONTROL_PLANE)
    assert [*served_listeners(given, [one])] == ["CONTROL"]
    check_brokers(given, [CONTROL], [one])
    said = unclean_shutdowns(given, [one])
    assert said is not None and said.startswith("broker 1 asks for its controlled shutdown on INT")
    hidden = [*CONTROL_PLANE, "gateway.hidden=true"]
    said = refusal(settings(*hidden), [CONTROL, OURS[1]], one)
    assert "INTERNAL is SSL at broker 1" in said
    assert "set gateway.listeners = 'CONTROL'" in said
    check_brokers(settings(*hidden, "gateway.listeners=CONTROL"), [CONTROL], [one])


def test_listeners_that_came_later_are_named_where_nobody_chose_them() -> None:
    one = broker(1, end("CLIENT", "h"), end("EDGE", "h"), end("TLS", "h", protocol=1))
    said = unserved_listeners(settings(), OURS, [one])
    assert said is not None and "bound its own: EDGE;" in said
    assert unserved_listeners(settings("gateway.listeners=CLIENT"), OURS, [one]) is None
    assert unserved_listeners(settings(), [*OURS, end("EDGE", "controller.example")], [one]) is None


def test_a_listener_that_is_plaintext_at_one_broker_only_is_named_for_the_other() -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h")]
    other = broker(2, end("CLIENT", "h"), end("INTERNAL", "h", protocol=1))
    given = settings("inter.broker.listener.name=INTERNAL")
    said = refusal(given, OURS[:1], broker(1, *ends), other)
    assert said.startswith("broker 2 hears the controller on INTERNAL, which is SSL")


def test_listeners_of_other_protocols_are_left_out() -> None:
    ends = [end("CLIENT", "h", protocol=3), end("INTERNAL", "h"), end("EDGE", "h")]
    given = settings("inter.broker.listener.name=INTERNAL")
    brokers = [broker(1, *ends), broker(2, end("INTERNAL", "h"), end("EDGE", "h", protocol=2))]
    assert [*served_listeners(given, brokers)] == ["INTERNAL"]
    assert [*served_listeners(given, brokers[:1])] == ["INTERNAL", "EDGE"]
    assert served_listeners(given, []) == {}
    check_brokers(given, OURS[1:], brokers)


def test_brokers_without_a_plaintext_listener_are_refused_in_words() -> None:
    brokers = [broker(1, end("CLIENT", "h", protocol=3), end("INTERNAL", "h", protocol=1))]
    with pytest.raises(ConfigurationError) as caught:
        served_listeners(settings(), brokers)
    assert "CLIENT is SASL_SSL at broker 1, INTERNAL is SSL at broker 1" in str(caught.value)
    assert "no listener that this node can serve, which speaks PLAINTEXT only" in str(caught.value)


def test_clients_of_a_listener_that_is_left_out_find_no_coordinator_here() -> None:
    given = settings("groups.takeover.enable=true")
    brokers = [broker(1, end("CLIENT", "h", protocol=3), end("INTERNAL", "h"))]
    with pytest.raises(ConfigurationError) as caught:
        served_listeners(given, brokers)
    assert "groups.takeover.enable = true" in str(caught.value)
    assert "CLIENT is SASL_SSL at broker 1" in str(caught.value)
    assert [*served_listeners(given, [broker(1, end("INTERNAL", "h"))])] == ["INTERNAL"]


@pytest.mark.parametrize("hidden", ["false", "true"])
def test_a_configured_listener_must_be_plaintext_at_every_broker(hidden: str) -> None:
    given = settings(
        "gateway.listeners=CLIENT,INTERNAL",
        "inter.broker.listener.name=INTERNAL",
        f"gateway.hidden={hidden}",
    )
    brokers = [
        broker(1, end("CLIENT", "h"), end("INTERNAL", "h")),
        broker(2, end("CLIENT", "h", protocol=2), end("INTERNAL", "h")),
    ]
    announced = OURS if hidden == "false" else OURS[1:]
    said = refusal(given, announced, *brokers)
    assert said.startswith(
        "gateway.listeners = 'CLIENT,INTERNAL': CLIENT is SASL_PLAINTEXT at brok"
    )
    check_brokers(given, announced, brokers[:1])


def test_a_broker_may_not_come_with_another_protocol_where_this_node_is_announced() -> None:
    given = settings("inter.broker.listener.name=INTERNAL")
    one = broker(1, end("CLIENT", "h"), end("INTERNAL", "h"))
    other = broker(2, end("CLIENT", "h", protocol=3), end("INTERNAL", "h"))
    check_brokers(given, OURS, [one])
    said = refusal(given, OURS, one, other)
    assert said.startswith("CLIENT is SASL_SSL at broker 2, and this node speaks PLAINTEXT there")
    assert "a new start speaks there what brokers do, or leaves it out" in said


@pytest.fixture
def tls() -> list[str]:
    """A key, which is not looked at here."""
    return ["ssl.keystore.location=/key.pem", "inter.broker.listener.name=INTERNAL"]


PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL


def test_with_a_key_listeners_with_tls_are_served(tls: list[str]) -> None:
    ends = [end("CLIENT", "h"), end("INTERNAL", "h", SSL), end("EDGE", "h", protocol=3)]
    given, brokers = settings(*tls), [broker(1, *ends), broker(2, *ends)]
    assert served_listeners(given, brokers) == {"CLIENT": PLAINTEXT, "INTERNAL": SSL}
    announced = [end("CLIENT", "controller.example"), end("INTERNAL", "controller.example", SSL)]
    check_brokers(given, announced, brokers)
    assert unclean_shutdowns(given, brokers) is None
    assert unserved_listeners(given, announced, brokers) is None
    assert "INTERNAL" in str(unserved_listeners(given, announced[:1], brokers))


def test_a_listener_with_two_protocols_is_served_with_neither(tls: list[str]) -> None:
    brokers = [
        broker(1, end("CLIENT", "h"), end("INTERNAL", "h", SSL)),
        broker(2, end("CLIENT", "h", SSL), end("INTERNAL", "h", SSL)),
    ]
    assert served_listeners(settings(*tls), brokers) == {"INTERNAL": SSL}
    with pytest.raises(ConfigurationError) as caught:
        served_listeners(settings(*tls, "groups.takeover.enable=true"), brokers)
    said = "CLIENT is PLAINTEXT at broker 1, and CLIENT is SSL at broker 2"
    assert said in str(caught.value)


@pytest.mark.parametrize("hidden", ["false", "true"])
def test_what_is_spoken_on_a_configured_listener_is_what_brokers_speak(
    tls: list[str], hidden: str
) -> None:
    wanted = [*tls, "gateway.listeners=INTERNAL", f"gateway.hidden={hidden}"]
    one = broker(1, end("CLIENT", "h"), end("INTERNAL", "h", SSL))
    said = refusal(settings(*wanted), [end("INTERNAL", "controller.example")], one)
    assert said.startswith("listener.security.protocol.map = '': INTERNAL is SSL at broker 1")
    assert said.endswith("brokers must agree, and the map say INTERNAL:SSL")
    mapped = settings(*wanted, "listener.security.protocol.map=INTERNAL:SSL")
    announced = [end("INTERNAL", "controller.example", SSL)]
    check_brokers(mapped, announced, [one])
    said = refusal(mapped, announced, broker(2, end("CLIENT", "h"), end("INTERNAL", "h")))
    assert said.startswith("listener.security.protocol.map = 'INTERNAL:SSL': INTERNAL is PLAINTEXT")


def test_a_listener_that_is_called_ssl_is_not_served_without_a_key() -> None:
    given = settings("gateway.listeners=SSL", "inter.broker.listener.name=SSL")
    one = broker(1, end("PLAIN", "h"), end("SSL", "h", SSL))
    said = refusal(given, [end("SSL", "controller.example")], one)
    assert "SSL, which is SSL; allowed: PLAINTEXT only, as ssl.keystore.location and" in said
    hears = settings("gateway.listeners=PLAIN,SSL", "inter.broker.listener.name=PLAIN")
    announced = [end("PLAIN", "controller.example"), end("SSL", "controller.example")]
    said = refusal(hears, announced, one)
    assert said.startswith("gateway.listeners = 'PLAIN,SSL': SSL is SSL at broker 1, and this node")


def test_sasl_is_not_spoken_with_a_key_either(tls: list[str]) -> None:
    one = broker(1, end("CLIENT", "h"), end("INTERNAL", "h", protocol=3))
    said = refusal(settings(*tls), OURS[:1], one)
    assert "INTERNAL, which is SASL_SSL; allowed: PLAINTEXT and SSL only" in said


def test_a_hidden_gateway_is_bound_where_brokers_look_for_it_only() -> None:
    given = ["gateway.hidden=true", "inter.broker.listener.name=INTERNAL"]
    assert settings(*given).gateway_listener_names == ["INTERNAL"]
    both = settings(*given, "gateway.listeners=CLIENT,INTERNAL")
    assert both.gateway_listener_names == ["CLIENT", "INTERNAL"]
    with_control_plane = settings(given[0], *CONTROL_PLANE)
    assert with_control_plane.gateway_listener_names == ["CONTROL", "INTERNAL"]
    assert settings(given[1]).gateway_listener_names == []


def test_a_hidden_gateway_is_announced_where_brokers_look_for_it_only() -> None:
    given = settings(
        *CONTROL_PLANE,
        "gateway.hidden=true",
        "gateway.listeners=CLIENT,CONTROL,INTERNAL",
        "gateway.port=0",
    )

    async def announced() -> list[str]:
        gateway = FrontGateway(given, Mock(), Mock(), {})
        await gateway.start(gateway.configured)
        try:
            found = await asyncio.to_thread(gateway.endpoints, {})
            return [one.listener for one in found]
        finally:
            await gateway.stop()

    assert asyncio.run(announced()) == ["CONTROL", "INTERNAL"]
