"""The brokers' policy for new topics, as it is configured."""

from __future__ import annotations

from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.gateway.topic_policy import JavaTopicPolicy, PolicyUnusable
from streaming.keyfiles.properties import read_properties
from streaming.settings import Settings


def topic_policy(settings: Settings) -> JavaTopicPolicy | None:
    """Return what says which topics may not be created, None without a policy; raises
    ConfigurationError.
    """
    name = settings.create_topic_policy_class_name
    if not name:
        return None
    config = {
        "create.topic.policy.class.name": name,
        "num.partitions": str(settings.num_partitions),
        "default.replication.factor": str(settings.default_replication_factor),
    }
    if settings.create_topic_policy_config:
        config |= read_properties(Path(settings.create_topic_policy_config))
    return JavaTopicPolicy(name, settings.create_topic_policy_class_path, config)


def check_topic_policy(settings: Settings) -> None:
    """Raise ConfigurationError when the policy cannot be made, or not be configured."""
    policy = topic_policy(settings)
    if policy is None:
        return
    try:
        policy.check()
    except PolicyUnusable as error:
        raise ConfigurationError(
            f"create.topic.policy.class.name = {settings.create_topic_policy_class_name} cannot be"
            f" used ({error}); allowed: a"
            " org.apache.kafka.server.policy.CreateTopicPolicy, and it, what it needs, and Kafka's"
            " own classes in create.topic.policy.class.path ="
            f" {settings.create_topic_policy_class_path!r}"
        ) from error
    finally:
        policy.close()
