"""One ZooKeeper session that reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streaming.zk.kazoo_client import ImpatientClient
from streaming.zk.ops import Acl, MultiOp, MultiRequest, OpResult
from streaming.zk.pending import Pending
from streaming.zk.reader import ZkReader, kazoo_acl


class ZkSession(ZkReader):
    """A session that also writes."""

    client = ImpatientClient

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, acl: Acl | None = None
    ) -> None:
        """Create a znode, with the session's access control list unless there is another one;
        raises NodeExists, NodeMissing (the parent), ConnectionLost.
        """
        allowed = None if acl is None else kazoo_acl(acl)
        self._once(path, self._kazoo.create_async(path, data, allowed, ephemeral=ephemeral))

    def create_sequential(self, prefix: str, data: bytes = b"") -> str:
        """Create a znode named prefix + ten digits, and return its path."""
        path: str = self._once(prefix, self._kazoo.create_async(prefix, data, sequence=True))
        return path

    def set(self, path: str, data: bytes, version: int = -1) -> int:
        """Replace a znode's data, return its new version; raises VersionMismatch, NodeMissing."""
        stat = self._once(path, self._kazoo.set_async(path, data, version=version))
        new_version: int = stat.version
        return new_version

    def delete(self, path: str, version: int = -1) -> None:
        """Delete a znode; raises NodeMissing, VersionMismatch, RequestFailed (it has children)."""
        self._once(path, self._kazoo.delete_async(path, version=version))

    def ensure_path(self, path: str, acl: Acl | None = None) -> None:
        """Create a znode and its missing parents, all empty; the chroot is one of them. acl: of the
        znode, if it is created, instead of the session's.
        """
        if acl is not None:
            self._read(path, lambda: self._kazoo.ensure_path_async(path.rpartition("/")[0]))
        allowed = None if acl is None else kazoo_acl(acl)
        self._read(path, lambda: self._kazoo.ensure_path_async(path, allowed))

    def multi(self, ops: Sequence[MultiOp]) -> list[OpResult]:
        """Run operations all or none; a failed multi is a result per operation, not an error."""
        return self.multi_async(ops).result(self.session_timeout_ms / 1000)

    def multi_async(self, ops: Sequence[MultiOp]) -> Pending[list[OpResult]]:
        """Send a multi without waiting; those sent by one thread are applied in that order."""
        return self.submit(MultiRequest(ops, self.chroot, self.default_acl), ops[0].path)

    def _once(self, path: str, answer: Any) -> Any:
        return Pending[Any](self, path, answer).result(self.session_timeout_ms / 1000)
