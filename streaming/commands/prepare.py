"""`helmstream prepare`: what makes later starts on this machine quick."""

from __future__ import annotations

from rich.console import Console

from streaming.commands.options import ConfigFiles, Overrides, settings_from


def prepare(config: ConfigFiles = None, overrides: Overrides = None) -> None:
    """Fetch a jar and archive Spark's classes, in the cache folder: the job is quicker then."""
    from streaming.starting.spark_archive import archive_classes

    made = archive_classes(settings_from(config, overrides, None))
    Console().print(f"{made} ({made.stat().st_size >> 20} MiB)", soft_wrap=True)
