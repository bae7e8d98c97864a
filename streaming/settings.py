"""All settings in one frozen value, read from files, environment and command line and checked.

`conf/default.toml` holds every key with its default; the model below holds every key with its type
and range. Neither knows what the other knows, and a test asserts that they name the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from state.limits import PARTITIONS_MAX
from state.routing import Layout
from streaming.internal_topics import GROUP_TOPIC
from streaming.setting_types import (
    INT_MAX,
    KAFKAS_AUTHORIZERS,
    KAFKAS_BUILDER,
    LONG_MAX,
    OAUTHBEARER,
    PLAIN,
    BrokerIds,
    ClassPath,
    ConnectString,
    File,
    Folder,
    Host,
    KafkaVersion,
    KerberosRules,
    LogUrl,
    Mechanisms,
    MemorySize,
    Mode,
    Name,
    Names,
    Port,
    Positive,
    PositiveLong,
    PrincipalRules,
    Principals,
    ProtocolMap,
    ProtocolVersion,
    SparkMaster,
    Url,
)


def _dotted(field: str) -> str:
    return field.replace("_", ".")


class Settings(BaseModel):
    """The settings of one process; field `controller_lease_ms` is key `controller.lease.ms`."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=_dotted)

    mode: Mode
    data_dir: Folder
    controller_id: Annotated[int, Field(ge=0, le=INT_MAX)]
    controller_lease_ms: Annotated[int, Field(ge=1_000, le=INT_MAX)]

    zookeeper_connect: ConnectString
    zookeeper_session_timeout_ms: Positive
    zookeeper_connection_timeout_ms: Positive
    zookeeper_max_in_flight_requests: Positive
    zookeeper_multi_max_operations: Annotated[int, Field(ge=2, le=INT_MAX)]
    zookeeper_ssl_client_enable: bool
    zookeeper_ssl_keystore_location: File
    zookeeper_ssl_truststore_location: File
    zookeeper_ssl_endpoint_identification_algorithm: Literal["HTTPS", ""]
    zookeeper_set_acl: bool
    zookeeper_sasl_client_username: Annotated[
        str, Field(pattern=r"^[^\s/@]+$", description="the first part of a principal")
    ]
    jute_maxbuffer: Annotated[int, Field(ge=65_536, le=INT_MAX)]

    log_retention_ms: PositiveLong
    event_log_url: LogUrl
    decision_stream_url: LogUrl
    event_log_segment_bytes: Annotated[int, Field(ge=4_096, le=LONG_MAX)]
    event_log_batch_max_events: Positive
    slots: Annotated[int, Field(ge=1, le=4_096)]
    group_slots: Annotated[int, Field(ge=1, le=4_096)]
    shuffle_partitions: Annotated[int, Field(ge=1, le=4_096)]
    state_store: Literal["memory", "rocksdb"]
    spark_master: SparkMaster
    spark_driver_memory: MemorySize
    job_nice: Annotated[int, Field(ge=0, le=19)]
    checkpoint_batches_retained: Annotated[int, Field(ge=2, le=INT_MAX)]

    inter_broker_listener_name: Name
    control_plane_listener_name: Name
    controller_socket_timeout_ms: Positive
    retry_backoff_ms: Positive
    unclean_leader_election_enable: bool
    unclean_recovery_manager_enabled: bool
    unclean_recovery_timeout_ms: PositiveLong
    delete_topic_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_per_broker_percentage: Annotated[int, Field(ge=0, le=100)]
    leader_imbalance_check_interval_seconds: Positive
    leader_rebalance_partitions_max: Positive
    leader_rebalance_step_interval_ms: Positive
    leader_rebalance_sync_wait_ms: Annotated[int, Field(ge=0, le=INT_MAX)]
    leader_deprioritized_list: BrokerIds
    delegation_token_expiry_check_interval_ms: PositiveLong
    min_insync_replicas: Positive
    controlled_shutdown_safety_check_enable: bool
    inter_broker_protocol_version: ProtocolVersion

    gateway_host: Host
    gateway_advertised_host: Name
    gateway_port: Port
    gateway_listeners: Names
    gateway_hidden: bool
    listener_security_protocol_map: ProtocolMap
    ssl_keystore_location: File
    ssl_truststore_location: File
    ssl_client_auth: Literal["required", "requested", "none"]
    ssl_endpoint_identification_algorithm: Literal["https", ""]
    sasl_mechanism_inter_broker_protocol: Literal[
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", ""
    ]
    sasl_enabled_mechanisms: Mechanisms
    sasl_oauthbearer_token_endpoint_url: Url
    sasl_oauthbearer_jwks_endpoint_url: Url
    sasl_oauthbearer_jwks_endpoint_refresh_ms: PositiveLong
    sasl_oauthbearer_expected_audience: Names
    sasl_oauthbearer_expected_issuer: Name
    sasl_oauthbearer_sub_claim_name: Annotated[
        str, Field(pattern=r"^\S+$", description="a name without spaces")
    ]
    sasl_oauthbearer_clock_skew_seconds: Annotated[int, Field(ge=0, le=INT_MAX)]
    plain_sasl_server_callback_handler_class: Name
    oauthbearer_sasl_server_callback_handler_class: Name
    sasl_server_callback_handler_class_path: ClassPath
    sasl_server_callback_handler_config: File
    sasl_kerberos_service_name: Name
    sasl_kerberos_principal_to_local_rules: KerberosRules
    sasl_login_class_path: ClassPath
    sasl_login_config: File
    java_security_auth_login_config: File
    java_security_krb5_conf: File
    authorizer_class_name: Name
    authorizer_class_path: ClassPath
    authorizer_config: File
    super_users: Principals
    controller_quota_window_num: Positive
    controller_quota_window_size_seconds: Positive
    connections_max_reauth_ms: Annotated[int, Field(ge=0, le=LONG_MAX)]
    delegation_token_secret_key: Annotated[SecretStr, Field(description="a text, or nothing")]
    delegation_token_max_lifetime_ms: PositiveLong
    delegation_token_expiry_time_ms: PositiveLong
    allow_everyone_if_no_acl_found: bool
    ssl_principal_mapping_rules: PrincipalRules
    principal_builder_class: Name
    principal_builder_class_path: ClassPath
    principal_builder_config: File
    max_connections: Positive
    connections_max_idle_ms: PositiveLong
    socket_request_max_bytes: Annotated[int, Field(ge=1_024, le=INT_MAX)]
    request_timeout_ms: Positive
    controller_performance_always_log_threshold_ms: Positive
    create_topic_policy_class_name: Name
    create_topic_policy_class_path: ClassPath
    create_topic_policy_config: File
    default_replication_factor: Annotated[int, Field(ge=1, le=2**15 - 1)]
    num_partitions: Annotated[int, Field(ge=1, le=PARTITIONS_MAX)]
    remote_log_storage_system_enable: bool

    metrics_port: Port
    metrics_host: Host

    groups_takeover_enable: bool
    groups_max: Positive
    replica_lag_time_max_ms: PositiveLong
    group_min_session_timeout_ms: Positive
    group_max_session_timeout_ms: Positive
    group_max_size: Positive
    group_initial_rebalance_delay_ms: Annotated[int, Field(ge=0, le=INT_MAX)]
    group_leave_rebalance_delay_ms: Annotated[int, Field(ge=0, le=INT_MAX)]
    offset_metadata_max_bytes: Positive
    offsets_retention_minutes: Positive
    offsets_retention_check_interval_ms: PositiveLong

    shadow_window_ms: Annotated[int, Field(ge=100, le=INT_MAX)]

    embedded_brokers: Annotated[int, Field(ge=1, le=100)]
    embedded_kafka_version: KafkaVersion

    @property
    def layout(self) -> Layout:
        """Over how many slots topics and groups are spread."""
        return Layout(self.slots, self.group_slots)

    @property
    def controller_listener(self) -> str:
        """The listener on which brokers hear the controller (ControllerChannelManager), or ""."""
        return self.control_plane_listener_name or self.inter_broker_listener_name

    @property
    def controller_listeners(self) -> list[str]:
        """The listeners on which brokers look for the controller: the one on which they hear it,
        and for controlled shutdowns always the inter-broker one (KafkaServer).
        """
        names = dict.fromkeys((self.controller_listener, self.inter_broker_listener_name))
        return [name for name in names if name]

    @property
    def announced_host(self) -> str:
        """The host under which brokers and clients are told to reach the gateway."""
        return self.gateway_advertised_host or self.gateway_host

    @property
    def gateway_listener_names(self) -> list[str]:
        """The listeners in gateway.listeners, or those that a hidden gateway needs; none: those
        that brokers have.
        """
        configured = [name for name in self.gateway_listeners.split(",") if name]
        return configured or (self.controller_listeners if self.gateway_hidden else [])

    @property
    def listener_protocol_names(self) -> dict[str, str]:
        """The names of security protocols by listener, of those that the map has."""
        pairs = (one.split(":") for one in self.listener_security_protocol_map.split(",") if one)
        return {listener: protocol for listener, protocol in pairs}

    @property
    def has_delegation_tokens(self) -> bool:
        """Whether tokens can be made, and taken where somebody logs in."""
        return bool(self.delegation_token_secret_key.get_secret_value())

    @property
    def sasl_mechanisms(self) -> tuple[str, ...]:
        """By which mechanisms clients may say who they are: those that are enabled, or else the one
        by which this node does; none without SASL.
        """
        ours = self.sasl_mechanism_inter_broker_protocol
        return tuple((self.sasl_enabled_mechanisms or ours).split(",")) if ours else ()

    @property
    def expected_audience(self) -> tuple[str, ...]:
        """For one of whom a token has to be."""
        return tuple(filter(None, self.sasl_oauthbearer_expected_audience.split(",")))

    @property
    def login_classes(self) -> Mapping[str, str]:
        """The brokers' own callback handlers, by mechanism."""
        handlers = {
            PLAIN: self.plain_sasl_server_callback_handler_class,
            OAUTHBEARER: self.oauthbearer_sasl_server_callback_handler_class,
        }
        return {mechanism: name for mechanism, name in handlers.items() if name}

    @property
    def jvm_options(self) -> tuple[str, ...]:
        """What a JVM is told that runs a class of the brokers' own."""
        files = {
            "java.security.auth.login.config": self.java_security_auth_login_config,
            "java.security.krb5.conf": self.java_security_krb5_conf,
        }
        return tuple(f"-D{key}={file}" for key, file in files.items() if file)

    @property
    def has_own_builder(self) -> bool:
        """Whether a principal builder of the brokers' own may be asked who clients are."""
        name = self.principal_builder_class
        return bool(name and (name != KAFKAS_BUILDER or self.principal_builder_config))

    @property
    def has_kafkas_authorizer(self) -> bool:
        """Whether clients are judged by the access control lists in ZooKeeper."""
        return self.authorizer_class_name in KAFKAS_AUTHORIZERS

    @property
    def super_user_principals(self) -> frozenset[str]:
        """Who may ask everything."""
        return frozenset(filter(None, map(str.strip, self.super_users.split(";"))))

    @property
    def announced_topic(self) -> str | None:
        """The topic of which brokers are told that this node leads it, None for none."""
        return GROUP_TOPIC if self.groups_takeover_enable else None

    @property
    def inter_broker_protocol(self) -> tuple[int, int]:
        """The inter-broker protocol as (major, minor)."""
        major, minor = self.inter_broker_protocol_version.split("-")[0].split(".")
        return int(major), int(minor)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_number(cls, value: object, info: ValidationInfo) -> object:
        # To Python, and so to pydantic, true is the number 1.
        numeric = cls.model_fields[str(info.field_name)].annotation is int
        if numeric and isinstance(value, bool):
            raise ValueError("true and false are not numbers")
        return value


def known_keys() -> dict[str, str]:
    """Key -> field name of every setting, in the order of the model."""
    return {_dotted(field): field for field in Settings.model_fields}
