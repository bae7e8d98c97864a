"""By what is judged what clients may ask, as it is configured."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.embedded.java_class import JavaClass
from streaming.front.zk_acls import ZkAcls
from streaming.gateway.ports import ClusterView
from streaming.gateway.serving import Rights
from streaming.security.authorizer import AclAuthorizer
from streaming.security.java_authorizer import JavaAuthorizer
from streaming.security.older_authorizer import OLDER_AUTHORIZER
from streaming.security.own_classes import broker_properties, check_class
from streaming.security.started_authorizer import AUTHORIZER, ServerInfo
from streaming.settings import Settings
from streaming.wire.endpoints import Endpoint


class FrontRights:
    """The authorizer, if there is one, and what keeps it up to date."""

    def __init__(self, settings: Settings, view: ClusterView) -> None:
        """Nothing is asked or read yet."""
        self._settings = settings
        self._view = view
        self._acls: ZkAcls | None = None
        self._java = java_authorizer(settings)
        self.rights = None if self._java is None else Rights(self._java, view)
        if settings.has_kafkas_authorizer:
            by_acls = AclAuthorizer(
                settings.super_user_principals,
                allow_without_acls=settings.allow_everyone_if_no_acl_found,
            )
            self._acls = ZkAcls(settings, by_acls.take)
            self.rights = Rights(by_acls, view)

    def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Begin to judge; endpoints: on which this node is reached."""
        if self._acls is not None:
            self._acls.start()
        if self._java is not None:
            self._java.start(
                ServerInfo(
                    broker_id=self._settings.controller_id,
                    cluster_id=self._view.cluster_id,
                    inter_broker_listener=self._settings.inter_broker_listener_name,
                    endpoints=endpoints,
                )
            )

    def close(self) -> None:
        """End what was started; blocks for a moment."""
        for one in (self._acls, self._java):
            if one is not None:
                one.close()


def java_authorizer(settings: Settings) -> JavaAuthorizer | None:
    """Return the brokers' own authorizer, None where it is Kafka's or there is none; raises
    ConfigurationError.
    """
    name = settings.authorizer_class_name
    if not name or settings.has_kafkas_authorizer:
        return None
    config = {
        "authorizer.class.name": name,
        "super.users": settings.super_users,
    } | broker_properties(settings, settings.authorizer_config)
    class_ = JavaClass(name, settings.authorizer_class_path, config, settings.jvm_options)
    return JavaAuthorizer(class_, settings.super_user_principals)


def check_authorizer(settings: Settings) -> None:
    """Raise ConfigurationError when the brokers' own authorizer cannot be made, or not be
    configured.
    """
    authorizer = java_authorizer(settings)
    if authorizer is None:
        return
    try:
        check_class(
            authorizer.check,
            f"authorizer.class.name = {settings.authorizer_class_name}",
            f"Kafka's own, kafka.security.authorizer.AclAuthorizer, or a {AUTHORIZER}, or up to"
            f" Kafka 2.8 a {OLDER_AUTHORIZER}",
            f"authorizer.class.path = {settings.authorizer_class_path!r}",
        )
    finally:
        authorizer.close()
