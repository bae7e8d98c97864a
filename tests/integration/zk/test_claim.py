"""The controller role on a real ZooKeeper: claim, lose, steal, race, resign."""

from __future__ import annotations

import threading

import pytest

from streaming.front.rivals import Rivals
from streaming.front.signals import IdTaken
from streaming.front.tenure import Tenure
from streaming.observers.tree import DirtyPaths, WatchedTree
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.claim import (
    BrokenControllerZNode,
    ClaimForbidden,
    ControllerClaim,
    ControllerTaken,
    KRaftControls,
    claim_controller,
    register_broker,
    resign_controller,
)
from streaming.zk.client import ZkSession
from streaming.zk.own_id import BrokersId
from streaming.zk.znodes import (
    BrokerZNode,
    broker_bytes,
    parse_controller_id,
)
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS


def plain(host, port):
    """An endpoint on a listener of its own."""
    return Endpoint(
        listener=f"L{port}",
        host=host,
        port=port,
        security_protocol=SecurityProtocol.PLAINTEXT,
    )


OURS = [plain("here", 9190)]


@pytest.fixture
def other_session(zookeeper, zk_session):
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as session:
        yield session


def test_first_claim_writes_what_kafka_writes(zk_session):
    claim = claim_controller(zk_session, 1000, steal=False, now_ms=1795198916712)
    assert claim == ControllerClaim(1000, 1, 1, zk_session.session_id)
    controller = zk_session.get("/controller")
    assert controller.ephemeral_owner == zk_session.session_id
    assert controller.data == (
        b'{"version":2,"brokerid":1000,"timestamp":"1795198916712","kraftControllerEpoch":-1}'
    )
    epoch = zk_session.get("/controller_epoch")
    assert (epoch.data, epoch.version, epoch.ephemeral_owner) == (b"1", 1, 0)


def test_a_role_that_is_taken_is_only_taken_by_stealing(zk_session, other_session):
    first = claim_controller(zk_session, 1, steal=False)
    assert claim_controller(other_session, 1000, steal=False) == ControllerTaken(1, first.epoch)
    second = claim_controller(other_session, 1000, steal=True)
    assert isinstance(first, ControllerClaim) and isinstance(second, ControllerClaim)
    assert (second.epoch, second.epoch_zk_version) == (2, 2)
    stolen = zk_session.get("/controller")
    assert stolen.ephemeral_owner == other_session.session_id
    assert stolen.czxid == zk_session.get("/controller_epoch").mzxid, "in one transaction"
    assert resign_controller(zk_session, first) is False
    assert zk_session.get("/controller") is not None
    assert resign_controller(other_session, second) is True
    assert zk_session.get("/controller") is None
    assert zk_session.get("/controller_epoch").data == b"2"


def test_an_old_claim_of_the_same_session_cannot_resign_the_new_one(zk_session):
    old = claim_controller(zk_session, 1000, steal=False)
    assert isinstance(old, ControllerClaim)
    claim_controller(zk_session, 1000, steal=True)
    assert resign_controller(zk_session, old) is False
    assert zk_session.get("/controller") is not None


@pytest.mark.parametrize("steal", [False, True])
def test_many_at_once(zookeeper, zk_session, steal):
    """Epochs given out are all different; without stealing there is exactly one winner."""
    sessions = [ZkSession(zookeeper, SESSION_TIMEOUT_MS) for _ in range(6)]
    results: list[ControllerClaim | ControllerTaken] = []
    barrier = threading.Barrier(len(sessions))

    def claim(number: int) -> None:
        barrier.wait(60)
        results.append(claim_controller(sessions[number], number, steal=steal))

    for session in sessions:
        session.connect()
    threads = [threading.Thread(target=claim, args=(i,)) for i in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    claims = [result for result in results if isinstance(result, ControllerClaim)]
    assert len(results) == len(sessions)
    epochs = sorted(claim.epoch for claim in claims)
    assert epochs == list(range(1, len(claims) + 1))
    assert len(claims) == 1 or steal
    last = max(claims, key=lambda claim: claim.epoch)
    controller = zk_session.get("/controller")
    assert parse_controller_id(controller.data) == last.controller_id
    assert controller.ephemeral_owner == last.claimed_by
    for session in sessions:
        session.close()


def test_the_role_goes_with_the_session(zookeeper, zk_session):
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as first:
        claim_controller(first, 1, steal=False)
    assert zk_session.get("/controller") is None
    assert claim_controller(zk_session, 2, steal=False).epoch == 2


def test_a_controller_znode_that_is_broken_can_be_stolen(zk_session):
    zk_session.create("/controller", b"{broken")
    assert claim_controller(zk_session, 1000, steal=False) == ControllerTaken(None, 0)
    assert claim_controller(zk_session, 1000, steal=True).epoch == 1


def test_an_epoch_that_is_no_number_is_an_error_that_says_so(zk_session):
    zk_session.create("/controller_epoch", b"seven")
    with pytest.raises(BrokenControllerZNode, match=r"/controller_epoch.*seven"):
        claim_controller(zk_session, 1000, steal=True)


def tenure(session):
    tree = WatchedTree(session, DirtyPaths(lambda: None))
    return Tenure(session, tree, 1000, Rivals(), lambda _: None)


def test_a_role_that_a_kraft_controller_has_is_left_to_it(zk_session):
    """As KafkaZkClient.tryRegisterKRaftControllerAsActiveController writes it: it stays."""
    held = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
    zk_session.create("/controller_epoch", b"8")
    zk_session.create("/controller", held)
    with pytest.raises(KRaftControls, match="KRaft controller 3000"):
        tenure(zk_session).claim(OURS)
    assert zk_session.get("/controller").data == held
    assert zk_session.get("/controller_epoch").data == b"8"
    zk_session.delete("/controller")
    assert tenure(zk_session).claim(OURS).epoch == 9, "the migration was rolled back"


def test_a_role_is_not_claimed_under_the_id_of_a_broker(zk_session, other_session):
    """Who has the role keeps it, and the broker its registration."""
    other_session.ensure_path("/brokers/ids")
    other_session.create("/brokers/ids/1000", b"{}", ephemeral=True)
    claim_controller(zk_session, 7, steal=True)
    with pytest.raises(IdTaken, match=r"controller\.id = 1000 is a broker's: set it to an id"):
        tenure(zk_session).claim(OURS)
    assert zk_session.get("/controller_epoch").version == 1
    assert zk_session.get("/brokers/ids/1000").ephemeral_owner == other_session.session_id


def test_a_broker_that_has_the_role_under_our_id_keeps_it(zk_session, other_session):
    """It registers before it claims; a front that was killed had claimed first."""
    other_session.ensure_path("/brokers/ids")
    other_session.create("/brokers/ids/1000", b"{}", ephemeral=True)
    claim_controller(other_session, 1000, steal=True)
    with pytest.raises(IdTaken, match="/brokers/ids/1000 is registered by another process"):
        tenure(zk_session).claim(OURS)
    assert zk_session.get("/controller").ephemeral_owner == other_session.session_id
    register_broker(other_session, "/brokers/ids/1000", b"{}")
    assert tenure(zk_session).claim(OURS).epoch == 2


def registration(host, *ports):
    return broker_bytes(BrokerZNode([plain(host, port) for port in ports]), 1)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (registration("there", 9190, 9092), BrokersId),
        (registration("here", 9092), BrokersId),
        (registration("here", 9092, 9190), IdTaken),
        (registration("there"), IdTaken),
        (b"{broken", IdTaken),
    ],
)
def test_whose_id_it_is_is_decided_by_where_it_is_reached(
    zk_session, other_session, content, error
):
    """An earlier session of ours left our endpoints, a broker has its own."""
    other_session.ensure_path("/brokers/ids")
    other_session.create("/brokers/ids/1000", content, ephemeral=True)
    with pytest.raises((BrokersId, IdTaken), match=r"controller\.id = 1000 is ") as caught:
        tenure(zk_session).claim(OURS)
    assert caught.type is error
    assert zk_session.get("/controller") is None


def test_the_id_of_a_broker_is_said_with_its_address(zk_session, other_session):
    """Also that of one which is the controller itself: it registered first."""
    other_session.ensure_path("/brokers/ids")
    other_session.create("/brokers/ids/1000", registration("there", 9092), ephemeral=True)
    claim_controller(other_session, 1000, steal=True)
    said = r"controller\.id = 1000 is the id of a broker at there:9092: set it to an id that no"
    with pytest.raises(BrokersId, match=said):
        tenure(zk_session).claim(OURS)
    assert BrokersId.exit_code == 2
    assert zk_session.get("/controller").ephemeral_owner == other_session.session_id


def test_a_front_elsewhere_that_has_the_role_under_our_id_is_no_broker(zk_session, other_session):
    other_session.ensure_path("/brokers/ids")
    claim_controller(other_session, 1000, steal=True)
    register_broker(other_session, "/brokers/ids/1000", registration("there", 9190))
    assert tenure(zk_session).claim(OURS).epoch == 2


def test_a_claim_that_zookeeper_forbids_says_so(zookeeper, zk_session):
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS, default_acl=((1, "world", "anyone"),)) as other:
        other.create("/controller_epoch", b"8")
    with pytest.raises(ClaimForbidden, match="/controller_epoch"):
        claim_controller(zk_session, 1000, steal=True)
    assert zk_session.get("/controller") is None


def test_broker_registration_replaces_the_one_of_an_earlier_session(zk_session, other_session):
    zk_session.ensure_path("/brokers/ids")
    first = register_broker(other_session, "/brokers/ids/1000", b"{}")
    second = register_broker(zk_session, "/brokers/ids/1000", b"{}")
    assert second > first
    assert zk_session.get("/brokers/ids/1000").ephemeral_owner == zk_session.session_id
