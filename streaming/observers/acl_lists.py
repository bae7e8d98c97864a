"""Finds the access control lists that Kafka's own authorizer keeps in ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.security.acls import Pattern
from streaming.zk.reader import ZkReader
from streaming.zk.znodes.acls import ACL_PATHS, resource_type


def acl_lists(session: ZkReader) -> Iterator[tuple[str, Pattern]]:
    """Yield the znodes that have a list, and what it is about; those about what is not known here
    are left out. Raises the errors of streaming.zk.errors.
    """
    for root, prefixed in ACL_PATHS.items():
        for kind in session.children(root) or ():
            known = resource_type(kind)
            if known is None:
                continue
            folder = f"{root}/{kind}"
            for name in session.children(folder) or ():
                yield f"{folder}/{name}", Pattern(known, name, prefixed)
