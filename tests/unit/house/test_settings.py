"""Settings: one list of keys, sources in their order, and errors that name what was wrong."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from streaming.errors import ConfigurationError
from streaming.setting_checks import gateway_ports
from streaming.settings import Settings, known_keys
from streaming.settings_loader import allowed_values, conf_source, load_settings

KEY_LINE = re.compile(r'^"(?P<key>[^"]+)" = (?P<value>.+)$')


def message_of(**arguments: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(**{"environment": {}, **arguments})
    return str(caught.value)


def test_defaults_and_model_have_the_same_keys() -> None:
    assert set(conf_source("default").values) == set(known_keys())


def test_every_setting_is_read_somewhere(root: Path) -> None:
    code = "\n".join(file.read_text("utf-8") for file in (root / "streaming").rglob("*.py"))
    read = set(re.findall(r"\.(\w+)", code))
    assert set(Settings.model_fields) <= read


def test_defaults_alone_are_valid() -> None:
    settings = load_settings(environment={})
    assert settings.controller_id == 1000
    assert settings.controller_lease_ms == 30_000
    assert settings.zookeeper_session_timeout_ms == 18_000


def test_every_default_says_why(root: Path) -> None:
    lines = (root / "conf" / "default.toml").read_text("utf-8").splitlines()
    for before, line in pairwise(lines):
        if KEY_LINE.match(line):
            assert before.startswith("# "), f"no comment above {line}"
        elif line:
            assert line.startswith("#"), f"neither comment nor key: {line}"


def test_settings_in_documents_are_settings(root: Path) -> None:
    for document in [root / "README.md", *(root / "docs").rglob("*.md")]:
        given = set(re.findall(r"--set ([a-z.]+)=", document.read_text("utf-8")))
        assert given <= set(known_keys()), document


@pytest.mark.parametrize("mode", ["active", "shadow", "replay"])
def test_overlays_name_known_keys_and_their_own_mode(mode: str) -> None:
    overlay = conf_source(mode).values
    assert overlay["mode"] == mode
    assert set(overlay) <= set(known_keys())
    assert load_settings(overrides=[f"mode={mode}"], environment={}).mode == mode


def test_later_sources_win(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(
        'slots = 1\n"num.partitions" = 1\n"max.connections" = 1\n"jute.maxbuffer" = 99999\n'
    )
    two.write_text('"num.partitions" = 2\nmax.connections = 2\n"jute.maxbuffer" = 88888\n')
    settings = load_settings(
        files=[one, two],
        environment={"HELMSTREAM_MAX_CONNECTIONS": "3", "HELMSTREAM_JUTE_MAXBUFFER": "77777"},
        overrides=["jute.maxbuffer=66666"],
    )
    found = (settings.slots, settings.num_partitions, settings.max_connections)
    assert (*found, settings.jute_maxbuffer) == (1, 2, 3, 66666)


def test_a_file_wins_over_the_overlay_of_the_mode(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('mode = "replay"\n"event.log.batch.max.events" = 5\n')
    assert load_settings(files=[file], environment={}).event_log_batch_max_events == 5


def test_text_becomes_the_type_of_the_key() -> None:
    settings = load_settings(
        overrides=["unclean.leader.election.enable=true", "data.dir=~/h"], environment={}
    )
    assert settings.unclean_leader_election_enable is True
    assert settings.data_dir == Path.home() / "h"


def test_settings_cannot_be_changed() -> None:
    settings = load_settings(environment={})
    with pytest.raises(ValidationError):
        settings.slots = 3


def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('"controller.leese.ms" = 1\n')
    message = message_of(files=[file])
    assert "controller.leese.ms" in message
    assert "did you mean controller.lease.ms?" in message
    assert str(file) in message


def test_a_key_like_no_other_points_to_the_list() -> None:
    assert "conf/default.toml lists all keys" in message_of(overrides=["zzzz=1"])


def test_an_unknown_variable_is_named_with_the_nearest_known_one() -> None:
    message = message_of(environment={"HELMSTREAM_SLOT": "3"})
    assert "HELMSTREAM_SLOT;" in message
    assert "did you mean HELMSTREAM_SLOTS?" in message


def test_other_variables_are_left_alone() -> None:
    load_settings(environment={"PATH": "/bin", "HELMSTREAM_CACHE": "/var/cache"})


def test_variables_of_a_service_called_helmstream_are_left_alone() -> None:
    """As Kubernetes names them: "Accessing the Service" in its documentation."""
    named = ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_METRICS", "PORT", "PORT_9190_TCP"]
    named += [f"PORT_9190_TCP_{part}" for part in ("PROTO", "PORT", "ADDR")]
    load_settings(environment={f"HELMSTREAM_{one}": "tcp://10.0.0.7:9190" for one in named})
    assert "HELMSTREAM_PORTS" in message_of(environment={"HELMSTREAM_PORTS": "9190"})


def test_zookeeper_may_have_addresses_of_ipv6() -> None:
    connect = "[::1]:2181,[fe80::1%eth0]:2182,zk3:2183/kafka"
    assert load_settings((), [f"zookeeper.connect={connect}"], {}).zookeeper_connect == connect


@pytest.mark.parametrize(
    ("override", "allowed"),
    [
        ("slots=many", "a whole number, 1 to 4096"),
        ("slots=0", "a whole number, 1 to 4096"),
        ("num.partitions=0", "a whole number, 1 to 50000"),
        ("min.insync.replicas=3000000000", "a whole number, 1 to 2147483647"),
        ("retry.backoff.ms=0", "a whole number, 1 to 2147483647"),
        ("zookeeper.session.timeout.ms=99999999999", "a whole number, 1 to 2147483647"),
        ("log.retention.ms=9223372036854775808", "a whole number, 1 to 9223372036854775807"),
        ("gateway.listeners=A,A", "different names"),
        ("gateway.listeners=,", "different names"),
        ("gateway.listeners=A,", "different names"),
        ("spark.master=local[0]", "local[N] with N from 1"),
        ("spark.driver.memory=0g", "a size such as 512m"),
        ("data.dir=", "a folder's path"),
        ("data.dir=~nobody-of-this-name/x", "homes of users there are"),
        ("data.dir=s3a://bucket/x", "not a URL"),
        ("data.dir=hdfs:/x", "not a URL"),
        ("zookeeper.connect=zk:2181,zk:65536/c", "ports from 1 to 65535"),
        ("zookeeper.connect=zk:0", "ports from 1 to 65535"),
        ("zookeeper.connect=zk1:2181/kafka,zk2:2181/kafka", "one chroot for all hosts"),
        ("inter.broker.protocol.version=1.1", "from 2.0 to 3.9"),
        ("inter.broker.protocol.version=3.10", "from 2.0 to 3.9"),
        ("inter.broker.protocol.version=4.0", "from 2.0 to 3.9"),
        ("embedded.kafka.version=3.\u0669.2", "3.9"),
        ("mode=actve", "active, shadow, replay"),
        ("unclean.leader.election.enable=perhaps", "true, false"),
        ("zookeeper.connect=localhost", "host:port"),
        ("zookeeper.connect=::1:2181", "IPv6 addresses in brackets"),
        ("zookeeper.connect=[::1]:65536,[::1]:1", "ports from 1 to 65535"),
        ("embedded.kafka.version=4.0.0", "3.9"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(override: str, allowed: str) -> None:
    key, _, value = override.partition("=")
    message = message_of(overrides=[override])
    assert f"{key} = {value!r} in --set" in message
    assert allowed in message


def test_a_truth_value_is_not_a_number(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("slots = true\n")
    assert "slots = True" in message_of(files=[file])


def test_every_number_has_an_end() -> None:
    properties = Settings.model_json_schema()["properties"].items()
    numbers = {key: of for key, of in properties if of.get("type") == "integer"}
    assert numbers
    assert [key for key, of in numbers.items() if of.get("maximum", 2**63) >= 2**63] == []


def test_every_key_can_say_what_is_allowed() -> None:
    assert all(allowed_values(key).startswith("allowed ") for key in known_keys())


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert len(message_of(overrides=["slots=0", "num.partitions=0"]).splitlines()) == 2


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([], "set inter.broker.listener.name or control.plane.listener.name"),
        (["inter.broker.listener.name=I", "gateway.listeners=C,D"], "does not have it"),
        (
            [
                "control.plane.listener.name=I",
                "inter.broker.listener.name=D",
                "gateway.listeners=D",
            ],
            "on listener 'I', and gateway.listeners = 'D'",
        ),
        (
            ["inter.broker.listener.name=I", "groups.takeover.enable=true"],
            "groups.takeover.enable",
        ),
    ],
)
def test_a_hidden_gateway_needs_a_listener_of_the_brokers(others: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_settings(overrides=["gateway.hidden=true", *others])


@pytest.mark.parametrize("protocol", ["2.0", "2.1-IV1"])
def test_groups_need_brokers_of_2_1(protocol: str) -> None:
    overrides = ["groups.takeover.enable=true", f"inter.broker.protocol.version={protocol}"]
    with pytest.raises(ConfigurationError, match=rf"2\.1-IV2 or newer, and it is {protocol}:"):
        load_settings(overrides=overrides)
    load_settings(overrides=[overrides[0], "inter.broker.protocol.version=2.1"])


def test_log_ends_are_asked_only_of_brokers_that_can_say_them() -> None:
    enabled = "unclean.recovery.manager.enabled=true"
    with pytest.raises(ConfigurationError, match=r"2\.7 or newer, and it is 2\.6$"):
        load_settings(overrides=[enabled, "inter.broker.protocol.version=2.6"])
    load_settings(overrides=[enabled, "inter.broker.protocol.version=2.7-IV0"])


def test_a_hidden_gateway_may_listen_where_it_is_not_announced() -> None:
    overrides = ["gateway.hidden=true", "inter.broker.listener.name=I", "gateway.listeners=C,I"]
    assert load_settings(overrides=overrides).controller_listener == "I"


@pytest.mark.parametrize(
    ("port", "free"), [(9189, True), (9190, False), (9191, False), (9192, True), (0, True)]
)
def test_metrics_are_not_served_on_a_port_of_the_gateway(port: int, free: bool) -> None:
    overrides = ["gateway.port=9190", "gateway.listeners=C,I", f"metrics.port={port}"]
    if free:
        assert load_settings(overrides=overrides).metrics_port == port
        return
    with pytest.raises(ConfigurationError, match=f"metrics.port = {port} is a port of the gateway"):
        load_settings(overrides=overrides)
    if port != 9190:
        unknown = load_settings(overrides=["gateway.port=9190", f"metrics.port={port}"])
        with pytest.raises(ConfigurationError, match=r"is a port of the gateway.* 2 listeners"):
            gateway_ports(unknown, 2)


@pytest.mark.parametrize(("port", "there_are"), [(65534, True), (65535, False)])
def test_every_listener_has_a_port(port: int, there_are: bool) -> None:
    overrides = [f"gateway.port={port}", "gateway.listeners=C,I"]
    if there_are:
        assert gateway_ports(load_settings(overrides=overrides), 2) == [65534, 65535]
        return
    with pytest.raises(ConfigurationError, match="allowed are at most 65534"):
        load_settings(overrides=overrides)
    with pytest.raises(ConfigurationError, match="allowed are at most 65534"):
        gateway_ports(load_settings(overrides=overrides[:1]), 2)


def test_the_least_session_timeout_is_not_beyond_the_most() -> None:
    overrides = ["group.min.session.timeout.ms=10", "group.max.session.timeout.ms=9"]
    message = "group.min.session.timeout.ms = 10 is more than group.max.session.timeout.ms = 9"
    assert message in message_of(overrides=overrides)
    load_settings(overrides=[overrides[0], "group.max.session.timeout.ms=10"], environment={})


def test_free_ports_are_never_the_same() -> None:
    assert load_settings(overrides=["gateway.port=0", "metrics.port=0"]).metrics_port == 0


def test_an_override_without_a_value_is_refused() -> None:
    assert "key=value" in message_of(overrides=["slots"])


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    missing, broken = tmp_path / "missing.toml", tmp_path / "broken.toml"
    broken.write_text("slots = = 3")
    assert str(missing) in message_of(files=[missing])
    assert str(broken) in message_of(files=[broken])


def test_the_model_has_no_defaults_of_its_own() -> None:
    assert all(field.is_required() for field in Settings.model_fields.values())
