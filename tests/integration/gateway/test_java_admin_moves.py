"""Java's Admin client moves partitions, adds some, and elects, through the gateway."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.integration.gateway.test_java_admin import admin, get, java, new_topic

__all__ = ["admin", "java"]


def partition_of(java: Any, topic: str, number: int) -> Any:
    return java.jvm.org.apache.kafka.common.TopicPartition(topic, number)


def replicas_of(java: Any, admin: Any, topic: str) -> list[list[int]]:
    described = get(java, admin.describeTopics([topic]).allTopicNames())[topic]
    return [[node.id() for node in one.replicas()] for one in described.partitions()]


def test_partitions_are_moved_listed_and_taken_back(java: Any, admin: Any) -> None:
    get(java, admin.createTopics([new_topic(java, "moving", 1, 1)]).all())
    [[held]] = replicas_of(java, admin, "moving")
    other = held % 3 + 1
    subject = partition_of(java, "moving", 0)
    move = java.jvm.java.util.Optional.of(
        java.jvm.org.apache.kafka.clients.admin.NewPartitionReassignment([other])
    )
    get(java, admin.alterPartitionReassignments({subject: move}).all())
    listed = get(java, admin.listPartitionReassignments().reassignments())
    [found] = list(listed.values())
    assert list(found.replicas()) == [other, held]
    assert (list(found.addingReplicas()), list(found.removingReplicas())) == ([other], [held])
    back = java.jvm.java.util.Optional.empty()
    get(java, admin.alterPartitionReassignments({subject: back}).all())
    assert get(java, admin.listPartitionReassignments().reassignments()).isEmpty()
    with pytest.raises(Py4JJavaError, match="NoReassignmentInProgressException"):
        get(java, admin.alterPartitionReassignments({subject: back}).all())


def test_partitions_are_added(java: Any, admin: Any) -> None:
    get(java, admin.createTopics([new_topic(java, "growing", 1, 2)]).all())
    increase = java.jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(3)
    get(java, admin.createPartitions({"growing": increase}).all())
    assert [len(ids) for ids in replicas_of(java, admin, "growing")] == [2, 2, 2]
    with pytest.raises(Py4JJavaError, match="InvalidPartitionsException"):
        get(java, admin.createPartitions({"growing": increase}).all())


def test_leaders_are_elected(java: Any, admin: Any) -> None:
    get(java, admin.createTopics([new_topic(java, "led", 1, 1)]).all())
    subject = partition_of(java, "led", 0)
    kind = java.jvm.org.apache.kafka.common.ElectionType.PREFERRED
    asked = java.jvm.java.util.HashSet([subject])
    found = get(java, admin.electLeaders(kind, asked).partitions())
    assert "ElectionNotNeededException" in found[subject].get().toString()
    assert get(java, admin.electLeaders(kind, None).partitions()).isEmpty()
