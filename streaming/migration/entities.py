"""Reads the znodes below which entities are: configurations, and whatever a folder has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from streaming.migration.configs import KINDS
from streaming.zk.multiread import children_many, read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import CONFIG_PATH

_CLIENTS_OF_USERS = "clients"
_Read = TypeVar("_Read")


def config_data(session: ZkReader) -> dict[str, bytes]:
    """Return the configurations of all entities, quotas among them, by path."""
    paths = below(session, [f"{CONFIG_PATH}/{kind}" for kind in KINDS])
    users = [path for path in paths if path.startswith(f"{CONFIG_PATH}/users/")]
    paths += below(session, [f"{path}/{_CLIENTS_OF_USERS}" for path in users])
    return data_of(session, paths)


def below(session: ZkReader, folders: Sequence[str]) -> list[str]:
    """Return the paths of all znodes in some folders."""
    found = children_many(session, folders)
    return [
        f"{folder}/{name}"
        for folder, names in zip(folders, found, strict=True)
        for name in sorted(names or ())
    ]


def data_of(session: ZkReader, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the data of znodes by path, of those that are there."""
    read = read_many(session, paths).data
    return {path: data for path, data in zip(paths, read, strict=True) if data is not None}


def each_read(
    data: Mapping[str, bytes], read: Callable[[str, bytes], _Read]
) -> tuple[dict[str, _Read], dict[str, ValueError]]:
    """Return what znodes say that have data, and why some say nothing: what reading them raised.

    read: makes something of a path and what is there.
    """
    found, broken = {}, {}
    for path, said in data.items():
        try:
            if said:  # a znode that has only just been made has none
                found[path] = read(path, said)
        except ValueError as error:
            broken[path] = error
    return found, broken
