"""What a broker gives the classes of its owner that find out who comes to a listener, or say who
comes from here, in a JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.embedded.jvm import SmallJvm


def broker_configs(jvm: SmallJvm, properties: Mapping[str, str], listener: str) -> Any:
    """Return a broker's properties as a map of Java's, read as by Kafka itself: those of the
    listener count before others, and those that Kafka does not know are there as they are (before
    Kafka 2.5 they are not).

    jvm: with Kafka's own classes in its class path; to be called `with asked()`. ChannelBuilders.
    """
    packages = jvm.packages()
    given = packages.java.util.Properties()
    for key, value in properties.items():
        given.setProperty(key, value)
    config = packages.kafka.server.KafkaConfig.fromProps(given, False)
    network = packages.org.apache.kafka.common.network
    name = network.ListenerName(listener)
    builders = packages.java.lang.Class.forName("org.apache.kafka.common.network.ChannelBuilders")
    for method in builders.getDeclaredMethods():
        if method.getName() == "channelBuilderConfigs":
            method.setAccessible(True)
            return method.invoke(None, jvm.array("java.lang.Object", [config, name]))
    return config.valuesWithPrefixOverride(name.configPrefix())


def login_context(jvm: SmallJvm, config: Any, listener: str, mechanism: str) -> Any:
    """Return a broker's JaasContext for a listener, whose login modules are loaded then: they bring
    Kafka's mechanisms along. To be called `with asked()`.
    """
    packages = jvm.packages()
    kafka = packages.org.apache.kafka.common
    name = kafka.network.ListenerName(listener)
    context = kafka.security.JaasContext.loadServerContext(name, mechanism, config)
    for entry in context.configurationEntries():
        packages.java.lang.Class.forName(entry.getLoginModuleName())
    return context
