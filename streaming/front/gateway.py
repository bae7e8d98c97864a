"""The gateway as the front runs it: built from settings, bound once its listeners are known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from pydantic import SecretStr

from streaming.front.delegation_tokens import ZkDelegationTokens
from streaming.front.load_events import topics_have_ids
from streaming.front.login_classes import java_logins
from streaming.front.mutation_rates import ZkMutationRates
from streaming.front.principal_builder import naming, principal_builder
from streaming.front.rights import FrontRights
from streaming.front.scram_credentials import ZkScramCredentials
from streaming.front.topic_policy import topic_policy
from streaming.front.user_configs import ZkUserConfigs
from streaming.gateway.apis import NodeConfig, build_apis
from streaming.gateway.calls import AtOnce, Handler, WithoutTask
from streaming.gateway.connection import Limits
from streaming.gateway.create_topics import TopicDefaults
from streaming.gateway.delegation_tokens import TokenTerms
from streaming.gateway.mutation_quotas import MutationRates
from streaming.gateway.passing.log_ends import LogEnds
from streaming.gateway.passing.pool import PassingLimits
from streaming.gateway.ports import ClusterView, DecisionClient, StoredTokens
from streaming.gateway.server import Gateway, Listener
from streaming.process.open_files import admissible_connections
from streaming.security.connector import Connector
from streaming.security.credentials import issuer_context, kerberos_acceptor, plain_users
from streaming.security.identity import SaslServer
from streaming.security.kerberos.names import name_rules
from streaming.security.kerberos.server import GssServer
from streaming.security.oauthbearer.server import BearerServer, Expected, TokenValidator
from streaming.security.oauthbearer.signing_keys import SigningKeys
from streaming.security.protocols import configured_listeners
from streaming.security.sasl_server import CredentialOf, Sasl, TokenOf
from streaming.security.tls import server_context
from streaming.setting_checks import gateway_ports
from streaming.setting_types import GSSAPI, OAUTHBEARER
from streaming.settings import Settings, known_keys
from streaming.wire.endpoints import Endpoint, SecurityProtocol

_BIND_TIMEOUT_S = 10.0


def listener_addresses(
    settings: Settings,
    protocols: Mapping[str, SecurityProtocol],
    credential_of: CredentialOf,
    token_of: TokenOf | None,
) -> list[Listener]:
    """Return an address per listener: gateway.port and those that follow it, or free ports.

    protocols: what is spoken on each, by name; credential_of, token_of: where credentials for SCRAM
    and delegation tokens are.
    Raises ConfigurationError as `gateway_ports`, or when a file that the settings name cannot be
    used.
    """
    ports = gateway_ports(settings, len(protocols))
    contexts = {sasl: server_context(settings, sasl=sasl) for sasl in (False, True)}

    def sasl(listener: str) -> Sasl:
        return Sasl(
            settings.sasl_mechanisms,
            plain_users(settings, listener),
            credential_of,
            token_of,
            settings.connections_max_reauth_ms,
            _further_mechanisms(settings, listener),
        )

    return [
        Listener(
            name,
            settings.gateway_host,
            port,
            settings.announced_host,
            contexts[protocol.sasl] if protocol.tls else None,
            sasl(name) if protocol.sasl else None,
        )
        for (name, protocol), port in zip(protocols.items(), ports, strict=True)
    ]


def _further_mechanisms(settings: Settings, listener: str) -> dict[str, Callable[[], SaslServer]]:
    """Return by mechanism what returns what finds out who comes to a listener by a token of an
    issuer or a ticket, or is found out by a class of the brokers' own; raises ConfigurationError.
    """
    own = java_logins(settings, listener)
    found: dict[str, Callable[[], SaslServer]] = {name: one.server for name, one in own.items()}
    if OAUTHBEARER in settings.sasl_mechanisms and OAUTHBEARER not in found:
        found[OAUTHBEARER] = partial(BearerServer, _token_validator(settings, listener))
    if GSSAPI in settings.sasl_mechanisms:
        rules = None  # a principal builder of the brokers' own is told the full name
        if principal_builder(settings, listener) is None:
            rules = name_rules(settings.sasl_kerberos_principal_to_local_rules)
        found[GSSAPI] = partial(GssServer, kerberos_acceptor(settings, listener), rules)
    return found


def _token_validator(settings: Settings, listener: str) -> TokenValidator:
    keys = SigningKeys(
        settings.sasl_oauthbearer_jwks_endpoint_url,
        settings.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        issuer_context(settings, listener),
    )
    expected = Expected(
        settings.expected_audience,
        settings.sasl_oauthbearer_expected_issuer,
        settings.sasl_oauthbearer_sub_claim_name,
        settings.sasl_oauthbearer_clock_skew_seconds,
    )
    return TokenValidator(keys, expected)


def node_config(
    settings: Settings,
    tokens: StoredTokens,
    rates: MutationRates,
    log_ends: LogEnds | None = None,
) -> NodeConfig:
    """Return what the gateway is told about this node; tokens, rates: where delegation tokens, and
    rates of creations and deletions, are kept; log_ends: who asks brokers where logs end.
    """
    request_timeout_s = settings.request_timeout_ms / 1000
    values = {key: getattr(settings, field) for key, field in known_keys().items()}
    secret = {key for key, value in values.items() if isinstance(value, SecretStr)}
    return NodeConfig(
        node_id=settings.controller_id,
        defaults=TopicDefaults(
            settings.num_partitions,
            settings.default_replication_factor,
            have_ids=topics_have_ids(settings),
            remote_storage=settings.remote_log_storage_system_enable,
        ),
        request_timeout_s=request_timeout_s,
        configs={key: _text(one) for key, one in values.items() if key not in secret},
        secret_configs=secret,
        users=ZkUserConfigs(settings),
        token_terms=TokenTerms(
            settings.delegation_token_secret_key.get_secret_value(),
            settings.delegation_token_max_lifetime_ms,
            settings.delegation_token_expiry_time_ms,
        ),
        tokens=tokens,
        mutation_rates=rates,
        quota_burst_s=float(
            settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
        ),
        announced_topic=settings.announced_topic,
        topic_policy=topic_policy(settings),
        passing=PassingLimits(
            answer_timeout_s=request_timeout_s,
            answer_max_bytes=settings.socket_request_max_bytes,
        ),
        connector=Connector.of(settings),
        log_ends=log_ends,
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class FrontGateway:
    """Starts the gateway on the listeners of gateway.listeners, or else on those brokers have.

    With gateway.hidden it is announced only on those on which brokers look for the controller, and
    reached on no other that is not in gateway.listeners.
    """

    def __init__(
        self,
        settings: Settings,
        view: ClusterView,
        decision_client: DecisionClient,
        groups: Mapping[int, Handler | AtOnce | WithoutTask],
        log_ends: LogEnds | None = None,
    ) -> None:
        """Remember what to serve, groups beside the rest, and who asks brokers where logs end;
        nothing is bound yet. Must be made on the event loop that serves it.
        """
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._view = view
        self._decision_client = decision_client
        self._groups = groups
        self._log_ends = log_ends
        self._gateway: Gateway | None = None
        self._credentials = ZkScramCredentials(settings)
        self._tokens = ZkDelegationTokens(settings)
        self._rates = ZkMutationRates(settings)
        self._rights = FrontRights(settings, view)

    @property
    def configured(self) -> dict[str, SecurityProtocol]:
        """What is spoken on the listeners that are known from the settings, by name."""
        return configured_listeners(self._settings)

    async def start(self, protocols: Mapping[str, SecurityProtocol]) -> None:
        """Bind listeners with what is spoken on them; raises PortTaken, ConfigurationError."""
        settings = self._settings
        node = node_config(settings, self._tokens, self._rates, self._log_ends)
        apis = build_apis(self._view, self._decision_client, node, self._groups)
        limits = Limits(
            admissible_connections(settings.max_connections),
            settings.socket_request_max_bytes,
            settings.connections_max_idle_ms,
        )
        token_of = self._tokens.find if settings.has_delegation_tokens else None
        addresses = listener_addresses(settings, protocols, self._credentials.find, token_of)
        gateway = Gateway(addresses, apis, limits, self._rights.rights, naming(settings))
        await gateway.start()
        self._rights.start(gateway.endpoints())
        self._gateway = gateway

    async def stop(self) -> None:
        """Stop listening and hang up."""
        if self._gateway is not None:
            await self._gateway.stop()
        await self._credentials.close()
        await self._tokens.close()
        await self._rates.close()
        await self._loop.run_in_executor(None, self._rights.close)

    def needs_listeners(self) -> bool:
        """Return whether the brokers' listeners are needed to know our endpoints."""
        return self._gateway is None

    def endpoints(self, broker_listeners: Mapping[str, SecurityProtocol]) -> list[Endpoint]:
        """Return where brokers and clients reach us, once it is bound; blocks for a moment, so it
        must not be called on the event loop.

        broker_listeners: what is spoken on those listeners of brokers that are served here, by
        name; empty when needs_listeners is False.
        """
        if self._gateway is None:
            starting = self.start(broker_listeners)
            asyncio.run_coroutine_threadsafe(starting, self._loop).result(_BIND_TIMEOUT_S)
        return self._announced()

    def counters(self) -> dict[str, int]:
        """Return what was served so far."""
        return {} if self._gateway is None else dict(self._gateway.counters)

    def certificate_ends_ms(self) -> int | None:
        """Return when the certificate that clients are shown ends, None without TLS."""
        return None if self._gateway is None else self._gateway.certificate_ends_ms()

    def _announced(self) -> list[Endpoint]:
        """Return what is announced of what was bound."""
        bound = [] if self._gateway is None else self._gateway.endpoints()
        if not self._settings.gateway_hidden:
            return bound
        return [end for end in bound if end.listener in self._settings.controller_listeners]
