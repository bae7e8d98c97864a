"""What settings of classes of the brokers' own must be beside one another, and beside others."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.errors import ConfigurationError
from streaming.setting_types import GSSAPI, OAUTHBEARER
from streaming.settings import Settings


def check_classes(settings: Settings) -> None:
    """Raise ConfigurationError for settings that are allowed one by one, and not together."""
    _check_login_classes(settings)
    _check_own_login(settings)
    _check_builder(settings)
    _check_rights(settings)
    _check_policy(settings)


def _check_login_classes(settings: Settings) -> None:
    key, classes = "sasl.server.callback.handler", settings.login_classes
    path = settings.sasl_server_callback_handler_class_path
    for mechanism, name in classes.items():
        if mechanism not in settings.sasl_mechanisms:
            raise ConfigurationError(
                f"{mechanism.lower()}.{key}.class = {name} is about {mechanism}, by which nobody"
                " may come: add it to sasl.enabled.mechanisms, or leave this out"
            )
        _check_class_path(f"{mechanism.lower()}.{key}.class = {name}", f"{key}.class.path", path)
    if not classes:
        config = settings.sasl_server_callback_handler_config
        refuse_alone(
            {f"{key}.class.path": path, f"{key}.config": config},
            "is about callback handlers of the brokers' own, of which there is none: set"
            f" plain.{key}.class or oauthbearer.{key}.class to the brokers', or leave this out",
        )


def _check_own_login(settings: Settings) -> None:
    path, mechanism = settings.sasl_login_class_path, settings.sasl_mechanism_inter_broker_protocol
    if not path:
        refuse_alone(
            {"sasl.login.config": settings.sasl_login_config},
            "names login classes of the brokers' own, of which there are none: set"
            " sasl.login.class.path to where they are, or leave this out",
        )
        return
    if mechanism in ("", GSSAPI):
        raise ConfigurationError(
            f"sasl.login.class.path = {path} is about who this node is by PLAIN, SCRAM or"
            f" OAUTHBEARER, and sasl.mechanism.inter.broker.protocol is {mechanism or 'empty'}:"
            " set that to the mechanism of those classes, or leave this out"
        )
    refuse_alone(
        {"sasl.oauthbearer.token.endpoint.url": settings.sasl_oauthbearer_token_endpoint_url},
        f"is not read where sasl.login.class.path = {path}: say it in sasl.login.config",
    )


def _check_builder(settings: Settings) -> None:
    key, path = "principal.builder.class", settings.principal_builder_class_path
    if not settings.has_own_builder:
        refuse_alone(
            {f"{key}.path": path, "principal.builder.config": settings.principal_builder_config},
            f"is about a principal builder of the brokers' own, of which there is none: set {key}"
            " to the brokers', or leave this out",
        )
        return
    _check_class_path(f"{key} = {settings.principal_builder_class}", f"{key}.path", path)
    others = {
        "authorizer.class.path": settings.authorizer_class_path,
        "sasl.server.callback.handler.class.path": settings.sasl_server_callback_handler_class_path,
    }
    for other, given in others.items():
        if given not in ("", path):
            raise ConfigurationError(
                f"{key}.path = {path} is not {other} = {given}, and these classes hand each other"
                " objects, as in a broker: give both the same class path"
            )
    if OAUTHBEARER in settings.sasl_mechanisms and OAUTHBEARER not in settings.login_classes:
        raise ConfigurationError(
            f"{key} = {settings.principal_builder_class} may ask for the token of who comes by"
            " OAUTHBEARER, which is there where Java reads it: set"
            " oauthbearer.sasl.server.callback.handler.class to the brokers', such as Kafka's own"
            " OAuthBearerValidatorCallbackHandler"
        )


def _check_policy(settings: Settings) -> None:
    if settings.create_topic_policy_class_name:
        given = f"create.topic.policy.class.name = {settings.create_topic_policy_class_name}"
        path = settings.create_topic_policy_class_path
        _check_class_path(given, "create.topic.policy.class.path", path)
    else:
        refuse_alone(
            {
                "create.topic.policy.class.path": settings.create_topic_policy_class_path,
                "create.topic.policy.config": settings.create_topic_policy_config,
            },
            "is about a policy for new topics, of which there is none: set"
            " create.topic.policy.class.name to the brokers', or leave this out",
        )


def _check_rights(settings: Settings) -> None:
    of_a_class: dict[str, object] = {
        "authorizer.class.path": settings.authorizer_class_path,
        "authorizer.config": settings.authorizer_config,
    }
    of_lists = {"allow.everyone.if.no.acl.found": settings.allow_everyone_if_no_acl_found}
    name = settings.authorizer_class_name
    if not name:
        refuse_alone(
            {"super.users": settings.super_users} | of_lists | of_a_class,
            "is about rights, which are not checked: set authorizer.class.name to the brokers', or"
            " leave this out",
        )
    elif settings.has_kafkas_authorizer:
        refuse_alone(
            of_a_class,
            f"is about an authorizer of the brokers' own, and {name} is Kafka's: leave this out",
        )
    else:
        refuse_alone(
            of_lists, f"is about Kafka's own authorizer: say it to {name} in authorizer.config"
        )
        given, path = f"authorizer.class.name = {name}", settings.authorizer_class_path
        _check_class_path(given, "authorizer.class.path", path)


def _check_class_path(given: str, key: str, class_path: str) -> None:
    """Raise ConfigurationError when the class that is given has no class path."""
    if not class_path:
        raise ConfigurationError(
            f"{given} needs {key}: allowed is a class path with that class, what it needs, and"
            " Kafka's own classes, such as /opt/classes/*:/opt/kafka/libs/*"
        )


def refuse_alone(given: Mapping[str, object], reason: str) -> None:
    """Raise ConfigurationError for a key that is given, which says nothing without another one."""
    for key, value in given.items():
        if value:
            raise ConfigurationError(f"{key} {reason}")
