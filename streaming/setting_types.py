"""The types of settings: what is allowed, how a message says it, and what is checked besides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from state.cluster.config import broker_ids
from streaming.log.location import URL_FORM, URL_PATTERN
from streaming.security.kerberos.names import name_rules
from streaming.security.mapping_rules import mapping_rules
from streaming.server_address import SERVERS_PATTERN, host_and_port


def _all_different(names: str) -> str:
    if len(set(names.split(","))) != len(names.split(",")):
        raise ValueError(f"{names} has a name twice")
    return names


def _each_listener_once(pairs: str) -> str:
    _all_different(",".join(pair.partition(":")[0] for pair in pairs.split(",")))
    return pairs


def _with_ports_there_are(connect: str) -> str:
    hosts = connect.partition("/")[0]
    if hosts and any(not 0 < host_and_port(one)[1] <= PORT_MAX for one in hosts.split(",")):
        raise ValueError(f"{hosts} has a port that does not exist")
    return connect


def _not_empty(path: object) -> object:
    if path == "":  # would be the working directory
        raise ValueError("no folder")
    return path


def _no_url(path: object) -> object:
    if re.match(r"[A-Za-z][\w+.-]*:/", str(path)):  # of "://" a path keeps one "/"
        raise ValueError("a URL")  # would be a folder below the working directory
    return path


def _without_tilde(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _with_ids_there_are(listed: str) -> str:
    broker_ids(listed)
    return listed


def _with_rules_there_are(rules: str) -> str:
    mapping_rules(rules)
    return rules


def _with_kerberos_rules_there_are(rules: str) -> str:
    name_rules(rules)
    return rules


PORT_MAX = 65_535
_SUPPORTED = r"(2\.[0-8]|3\.[0-9])"
_N = "[1-9][0-9]*"
PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
_MECHANISM = f"({PLAIN}|SCRAM-SHA-256|SCRAM-SHA-512|{OAUTHBEARER}|{GSSAPI})"
KAFKAS_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
KAFKAS_AUTHORIZERS = frozenset(
    {"kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer"}
)
_PROTOCOL = "(SASL_)?(PLAINTEXT|SSL)"
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1  # of Kafka's types INT and LONG
Positive = Annotated[int, Field(ge=1, le=INT_MAX)]
PositiveLong = Annotated[int, Field(ge=1, le=LONG_MAX)]
Port = Annotated[int, Field(ge=0, le=PORT_MAX)]
# The description of a text setting is what an error message says is allowed.
ConnectString = Annotated[
    str,
    Field(
        pattern=rf"^$|^{SERVERS_PATTERN}(/[^\s,]*)?$",
        description="host:port[,host:port...][/chroot], one chroot for all hosts, ports from 1 to"
        " 65535, IPv6 addresses in brackets, or nothing",
    ),
    AfterValidator(_with_ports_there_are),
]
Name = Annotated[str, Field(pattern=r"^\S*$", description="a name without spaces, or nothing")]
ClassPath = Annotated[str, Field(description="a class path, or nothing")]
Names = Annotated[
    str,
    Field(
        pattern=r"^([^\s,]+(,[^\s,]+)*)?$",
        description="different names without spaces, separated by commas, or nothing",
    ),
    AfterValidator(_all_different),
]
ProtocolMap = Annotated[
    str,
    Field(
        pattern=rf"^([^\s,:]+:{_PROTOCOL}(,[^\s,:]+:{_PROTOCOL})*)?$",
        description="LISTENER:PROTOCOL, separated by commas, each listener once, or nothing, where"
        " PROTOCOL is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
    ),
    AfterValidator(_each_listener_once),
]
Url = Annotated[
    str,
    Field(
        pattern=r"^((https?|file)://\S+)?$",
        description="a URL that begins with https://, http:// or file://, or nothing",
    ),
]
Mechanisms = Annotated[
    str,
    Field(
        pattern=rf"^({_MECHANISM}(,{_MECHANISM})*)?$",
        description="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and GSSAPI, separated by"
        " commas, each once, or nothing",
    ),
    AfterValidator(_all_different),
]
Principals = Annotated[
    str,
    Field(
        pattern=r"^([^:;\s]+:[^;]+(;\s*[^:;\s]+:[^;]+)*;?)?$",
        description="principals such as User:admin, separated by semicolons, or nothing",
    ),
]
BrokerIds = Annotated[
    str,
    AfterValidator(_with_ids_there_are),
    Field(description="ids of brokers, separated by commas, or nothing"),
]
File = Annotated[
    str,
    AfterValidator(lambda path: path and str(_without_tilde(Path(path)))),
    Field(description="a file's path, or nothing; ~ and ~user stand for homes of users there are"),
]
PrincipalRules = Annotated[
    str,
    AfterValidator(_with_rules_there_are),
    Field(
        description="DEFAULT and RULE:pattern/replacement/[L|U], separated by commas, patterns"
        " being regular expressions"
    ),
]
KerberosRules = Annotated[
    str,
    AfterValidator(_with_kerberos_rules_there_are),
    Field(
        description="DEFAULT and RULE:[n:string](pattern)s/pattern/replacement/g/L, separated by"
        " commas, patterns being regular expressions"
    ),
]
Host = Annotated[str, Field(pattern=r"^\S+$", description="a host name or address")]
KafkaVersion = Annotated[
    str,
    Field(
        pattern=rf"^{_SUPPORTED}\.[0-9]+$", description="a version such as 3.9.2, from 2.0 to 3.9"
    ),
]
ProtocolVersion = Annotated[
    str,
    Field(
        pattern=rf"^{_SUPPORTED}(-IV[0-9]+)?$",
        description="a version such as 3.9 or 3.9-IV0, from 2.0 to 3.9",
    ),
]
LogUrl = Annotated[
    str, Field(pattern=rf"^({URL_PATTERN})?$", description=f"{URL_FORM}, or nothing")
]
Folder = Annotated[
    Path,
    BeforeValidator(_not_empty),
    BeforeValidator(_no_url),
    AfterValidator(_without_tilde),
    Field(description="a folder's path, not a URL; ~ and ~user stand for homes of users there are"),
]
SparkMaster = Annotated[
    str,
    Field(
        pattern=rf"^(local(\[({_N}|\*)\])?|local-cluster\[{_N},{_N},{_N}\]|spark://\S+|yarn|k8s://\S+)$",
        description="local[N] with N from 1, local-cluster[...], spark://host:port, yarn or k8s://...",
    ),
]
MemorySize = Annotated[str, Field(pattern=rf"^{_N}[kmg]$", description="a size such as 512m or 2g")]
Mode = Literal["active", "shadow", "replay"]
