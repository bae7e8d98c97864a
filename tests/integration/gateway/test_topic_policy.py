"""A policy of Kafka's own tests, in a JVM: what it is told, what is made of what it says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.errors import ConfigurationError
from streaming.front.topic_policy import check_topic_policy, topic_policy
from streaming.gateway.topic_policy import JavaTopicPolicy
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from tests.fixtures.jars_of_tests import POLICY, jars_of_tests

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

ASKED = {"topic": "t", "partitions": 6, "replication_factor": 3, "assignment": None, "configs": {}}


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jars_of_tests(tmp_path_factory.mktemp("policy") / "jars")


def settings(jars: Path, *overrides: str, name: str = POLICY) -> Settings:
    given = [
        f"create.topic.policy.class.name={name}",
        f"create.topic.policy.class.path={jars}/*",
        *overrides,
    ]
    return load_settings(overrides=given, environment={})


@pytest.fixture
def policy(jars: Path) -> Iterator[JavaTopicPolicy]:
    found = topic_policy(settings(jars))
    assert found is not None
    yield found
    found.close()


def refusal(policy: JavaTopicPolicy, **more: Any) -> tuple[int, str | None] | None:
    return asyncio.run(policy.refusal(ASKED | more))


def test_what_a_policy_says_is_said_as_brokers_say_it(policy: JavaTopicPolicy) -> None:
    assert refusal(policy) is None
    few = (44, "Topics should have at least 5 partitions, received 3")
    assert refusal(policy, partitions=3) == few
    placed = {"partitions": -1, "replication_factor": -1}
    assert refusal(policy, **placed, assignment={"0": [1, 2], "1": [2, 1]}) is None
    code, message = refusal(policy, **placed, assignment={"0": [1, 2], "1": [2]}) or (0, "")
    assert code == 44 and message is not None and message.endswith("received 1 for partition 1")


def test_a_policy_that_fails_refuses_and_is_told_of(
    policy: JavaTopicPolicy, caplog: pytest.LogCaptureFixture
) -> None:
    assert refusal(policy, configs={"retention.ms": "1"}) == (-1, None)
    assert "The policy for topics failed: requirement failed: Topic configs" in caplog.text


def test_a_jvm_that_is_gone_is_started_again(policy: JavaTopicPolicy) -> None:
    assert refusal(policy) is None
    process = policy._jvm._process
    assert process is not None
    process.kill()
    process.wait(30)
    assert refusal(policy, partitions=3) is not None
    assert refusal(policy) is None


def test_without_a_jvm_nothing_is_allowed(
    policy: JavaTopicPolicy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, message = refusal(policy) or (0, "")
    assert code == -1 and message is not None and "no bin/java in it" in message


def test_properties_of_brokers_are_given_to_the_policy(jars: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=7\nacme.policy.least=5\n")
    found = topic_policy(settings(jars, f"create.topic.policy.config={file}"))
    assert found is not None
    assert found._class.config == {
        "create.topic.policy.class.name": POLICY,
        "default.replication.factor": "1",
        "num.partitions": "7",
        "acme.policy.least": "5",
    }
    found.close()
    missing = settings(jars, "create.topic.policy.config=/none.properties")
    with pytest.raises(ConfigurationError, match=r"cannot read /none\.properties"):
        topic_policy(missing)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.Policy", r"\(no\.such\.Policy\)"),
        ("java.lang.String", r"\(it is no org\.apache\.kafka\.server\.policy\.CreateTopicPolicy\)"),
        ("org.apache.kafka.server.policy.CreateTopicPolicy", r"\("),
    ],
)
def test_a_class_that_is_no_policy_is_refused_before_the_start(
    jars: Path, name: str, reason: str
) -> None:
    check_topic_policy(settings(jars))
    with pytest.raises(
        ConfigurationError, match=rf"^create\.topic\.policy\.class\.name = {name} cannot.*{reason}"
    ):
        check_topic_policy(settings(jars, name=name))


def test_a_path_without_kafka_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with pytest.raises(ConfigurationError, match=r"\(org\.apache\.kafka\.server\.policy\.Create"):
        check_topic_policy(settings(tmp_path))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["create.topic.policy.class.name=a.B"], "a.B needs create.topic.policy.class.path"),
        (["create.topic.policy.class.path=/a"], "class.path is about a policy for new topics"),
        (["create.topic.policy.config=/a"], "policy.config is about a policy for new topics"),
    ],
)
def test_settings_of_a_policy_go_together(given: list[str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_settings(overrides=given, environment={})
