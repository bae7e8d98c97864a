"""How the garbage collector is set, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

LISTS = 200_000


def run(code: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_what_outlived_a_collection_is_left_out_of_later_ones() -> None:
    said = run(f"""
        import gc
        from streaming.process.garbage import collect_each_once
        collect_each_once()
        kept = [[number] for number in range({LISTS})]
        young = len(gc.get_objects())
        print(young, gc.get_freeze_count(), gc.get_stats()[2]["collections"])
    """)
    young, frozen, full = map(int, said.split())
    assert frozen > LISTS * 0.8
    assert young < LISTS * 0.2
    assert full == 1, "only the one at the start looks at everything"


@pytest.mark.parametrize("setting", ["collect_each_once", "collect_rarely"])
def test_a_cycle_that_is_soon_garbage_is_collected(setting: str) -> None:
    said = run(f"""
        import weakref
        from streaming.process.garbage import {setting}
        {setting}()
        class Node: pass
        alive = []
        for number in range({LISTS}):
            one = Node()
            one.itself = one
            alive.append(weakref.ref(one))
        print(sum(ref() is not None for ref in alive))
    """)
    assert int(said) < LISTS
