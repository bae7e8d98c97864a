"""What is found of KRaft controllers to which a cluster is to be migrated."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.errors import ConfigurationError
from streaming.migration.controllers import (
    Controller,
    controller_findings,
    read_controllers,
    without_what_is_done,
)
from streaming.migration.findings import Finding, Weight

CONNECT = "zk1:2181,zk2:2181/kafka"
VOTERS = "controller.quorum.voters"
AUTHORIZER = "authorizer.class.name"
READY = {
    "process.roles": "controller",
    "node.id": "3000",
    "zookeeper.metadata.migration.enable": "true",
    "zookeeper.connect": "zk2:2181/kafka/",
    "inter.broker.listener.name": "internal",
    VOTERS: "3000@a:1,3001@b:1",
}
BROKER = {"listeners": "CLIENT://:1,INTERNAL://:2", VOTERS: ""}
STOPS, CHANGES, TO_DO = Weight


def found(*configs: dict[str, str], **of_broker: str) -> list[tuple[Weight, str, str]]:
    controllers = [Controller(f"c{number}", config) for number, config in enumerate(configs)]
    broker = BROKER | {key.replace("_", "."): value for key, value in of_broker.items()}
    ones = controller_findings(controllers, {1: broker, 2: BROKER}, CONNECT)
    return [(one.weight, one.where, one.what) for one in ones]


def test_nothing_is_found_of_controllers_that_are_ready() -> None:
    other = {**READY, "node.id": "3001"}
    assert not found(READY, other)
    assert not found(READY, other, controller_quorum_voters="3001@b:1, 3000@a:1")
    assert not found(READY, authorizer_class_name="a.B")


@pytest.mark.parametrize(
    ("changed", "weight", "what"),
    [
        ({"process.roles": ""}, STOPS, "process.roles = nothing, and"),
        ({"process.roles": "broker,controller"}, STOPS, "process.roles = broker,controller, and"),
        ({"node.id": "2"}, STOPS, "node.id = 2, which a broker has"),
        ({"zookeeper.metadata.migration.enable": ""}, TO_DO, "zookeeper.metadata.migration"),
        ({"zookeeper.connect": ""}, STOPS, "zookeeper.connect is not set"),
        ({"zookeeper.connect": "zk1:2181"}, STOPS, "zookeeper.connect = zk1:2181, and the cluster"),
        (
            {"inter.broker.listener.name": ""},
            STOPS,
            "it would tell brokers at their listener PLAINTEXT, and broker 1, broker 2 have none",
        ),
        (
            {"inter.broker.listener.name": "", "security.inter.broker.protocol": "SSL"},
            STOPS,
            "it would tell brokers at their listener SSL",
        ),
        ({VOTERS: ""}, STOPS, f"neither {VOTERS} nor controller.quorum.bootstrap.servers is set"),
    ],
)
def test_what_controllers_are_not_ready_for(
    changed: dict[str, str], weight: Weight, what: str
) -> None:
    ((said, where, told),) = found(READY | changed)
    assert (said, where) == (weight, "c0") and told.startswith(what)


def test_brokers_may_look_for_another_quorum() -> None:
    ((weight, _, what),) = found(READY, controller_quorum_voters="3000@a:1")
    assert weight is STOPS
    assert what == f"{VOTERS} = {READY[VOTERS]}, and broker 1 have another"


def test_rights_are_to_be_checked_as_before() -> None:
    theirs = "kafka.security.authorizer.AclAuthorizer"
    ((weight, _, what),) = found(READY, authorizer_class_name=theirs)
    assert weight is CHANGES and what.startswith("it has no authorizer")
    assert not found({**READY, AUTHORIZER: "a.B"}, authorizer_class_name=theirs)


def test_each_has_an_id_of_its_own() -> None:
    ((weight, where, what),) = found(READY, READY)
    assert (weight, where) == (STOPS, "c0, c1") and what == "they have the same node.id, 3000"


def test_what_all_controllers_have_is_done() -> None:
    asked = Finding(TO_DO, "tokens", "", "", settled_by=("new", "old"))
    other = Finding(TO_DO, "broker 1", "", "")
    new, old, none = (Controller("c", {key: "x"}) for key in ("new", "old", "none"))
    assert list(without_what_is_done([asked, other], [new, old])) == [other]
    assert list(without_what_is_done([asked, other], [new, none])) == [asked, other]
    assert list(without_what_is_done([asked, other], [])) == [asked, other]


def test_files_of_properties_are_read(tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("# controller\nnode.id = 3000\n")
    assert read_controllers([file]) == [Controller(str(file), {"node.id": "3000"})]
    with pytest.raises(ConfigurationError, match=r"cannot read .*gone"):
        read_controllers([tmp_path / "gone"])
