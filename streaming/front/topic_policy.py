"""The brokers' policy for new topics, as it is configured."""

from __future__ import annotations

from streaming.embedded.java_class import JavaClass
from streaming.gateway.topic_policy import POLICY, JavaTopicPolicy
from streaming.security.own_classes import check_class, properties
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
    } | properties(settings.create_topic_policy_config)
    return JavaTopicPolicy(JavaClass(name, settings.create_topic_policy_class_path, config))


def check_topic_policy(settings: Settings) -> None:
    """Raise ConfigurationError when the policy cannot be made, or not be configured."""
    policy = topic_policy(settings)
    if policy is None:
        return
    try:
        check_class(
            policy.check,
            f"create.topic.policy.class.name = {settings.create_topic_policy_class_name}",
            f"a {POLICY}",
            f"create.topic.policy.class.path = {settings.create_topic_policy_class_path!r}",
        )
    finally:
        policy.close()
