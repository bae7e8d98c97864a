"""Who we are to brokers by login classes of their own, in a JVM: logged in as a broker is that
connects to another one (LoginManager, SaslChannelBuilder).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streaming.embedded.java_class import ClassUnusable, OncePerJvm, shared_jvm
from streaming.embedded.jvm import JavaException, JvmFailed, asked
from streaming.security.broker_configs import broker_configs, login_context
from streaming.security.ourselves import Credentials
from streaming.security.own_classes import broker_properties, check_class
from streaming.security.proofs import bearer_conversation, password_conversation
from streaming.setting_types import OAUTHBEARER
from streaming.settings import Settings
from streaming.wire.conversation import Conversation

_SECURITY = "org.apache.kafka.common.security"
_REFRESHING = f"{_SECURITY}.oauthbearer.internals.OAuthBearerRefreshingLogin"
_DEFAULT = f"{_SECURITY}.authenticator.DefaultLogin"
_TOKEN = f"{_SECURITY}.oauthbearer.OAuthBearerToken"
_EXTENSIONS = f"{_SECURITY}.auth.SaslExtensions"


class NotLoggedIn(ConnectionError):
    """The brokers' login classes have not logged us in; the message says what they said."""


class OwnLogin:
    """Is logged in from the first connection on; used from any thread."""

    def __init__(self, settings: Settings, mechanism: str) -> None:
        """Raises ConfigurationError for a file of properties that cannot be read."""
        self._properties = broker_properties(settings, settings.sasl_login_config)
        self._listener = settings.controller_listener
        self._mechanism = mechanism
        self._jvm = shared_jvm(settings.sasl_login_class_path, settings.jvm_options)
        self._manager = OncePerJvm(self._jvm, self._logged_in)

    def begin(self, _: str) -> Conversation:
        """Begin to say to a host who we are; raises NotLoggedIn and JvmFailed."""
        if self._mechanism == OAUTHBEARER:
            return bearer_conversation(self._bearer)
        return self._by_password()

    def check(self) -> None:
        """See that the classes are there, and do not log in; raises ClassUnusable."""
        try:
            with asked():
                self._configured()
        except (JavaException, JvmFailed) as error:
            raise ClassUnusable(str(error)) from error

    def close(self) -> None:
        """End the JVM before its process does."""
        self._jvm.close()

    def _by_password(self) -> Conversation:
        with _logging_in():
            subject = self._manager.get().subject()
            user = _first_text(subject.getPublicCredentials())
            password = _first_text(subject.getPrivateCredentials())
        if user is None or password is None:
            raise NotLoggedIn(f"the login module for {self._mechanism} left no name or no password")
        yield from password_conversation(self._mechanism, user, password)

    def _bearer(self) -> str:
        """Return the token that lasts longest, and its extensions (KIP-342)."""
        with _logging_in():
            subject = self._manager.get().subject()
            held = subject.getPrivateCredentials(self._class(_TOKEN))
            tokens = {int(one.lifetimeMs()): str(one.value()) for one in held}
            extensions = [
                f"{key}={value}"
                for one in subject.getPublicCredentials()
                if not isinstance(one, str) and one.getClass().getName() == _EXTENSIONS
                for key, value in one.map().items()
            ]
        if not tokens:
            raise NotLoggedIn(f"the login module for {self._mechanism} left no token")
        return "\x01".join([tokens[max(tokens)], *extensions])

    def _logged_in(self) -> Any:
        """Return what a thread of the JVM keeps logged in."""
        config, context = self._configured()
        manager = self._jvm.packages().org.apache.kafka.common.security.authenticator.LoginManager
        login = self._class(_REFRESHING if self._mechanism == OAUTHBEARER else _DEFAULT)
        return manager.acquireLoginManager(context, self._mechanism, login, config)

    def _configured(self) -> tuple[Any, Any]:
        """Return a broker's configuration for the listener, and its login modules."""
        config = broker_configs(self._jvm, self._properties, self._listener)
        return config, login_context(self._jvm, config, self._listener, self._mechanism)

    def _class(self, name: str) -> Any:
        return self._jvm.packages().java.lang.Class.forName(name)


@contextmanager
def _logging_in() -> Iterator[None]:
    try:
        with asked():
            yield
    except JavaException as error:
        raise NotLoggedIn(str(error)) from error


def java_credentials(settings: Settings, mechanism: str) -> Credentials:
    """Return who the brokers' login classes say we are; raises ConfigurationError."""
    login = OwnLogin(settings, mechanism)
    return Credentials(mechanism, "whom sasl.login.class.path logs in", begin=login.begin)


def check_own_login(settings: Settings) -> None:
    """Raise ConfigurationError when login classes of the brokers' own cannot be used."""
    if not settings.sasl_login_class_path:
        return
    login = OwnLogin(settings, settings.sasl_mechanism_inter_broker_protocol)
    try:
        check_class(
            login.check,
            f"sasl.login.config = {settings.sasl_login_config!r}",
            f"login classes for {settings.sasl_mechanism_inter_broker_protocol}, as a broker has"
            f" them on listener {settings.controller_listener}",
            f"sasl.login.class.path = {settings.sasl_login_class_path!r}",
        )
    finally:
        login.close()


def _first_text(held: Any) -> str | None:
    """Return the first of what a subject holds that is a text (SaslClientCallbackHandler)."""
    return next((one for one in held if isinstance(one, str)), None)
