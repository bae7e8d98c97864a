"""Sends each event of the log to the machines that fold it, with column expressions only."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from state.routing import (
    ALL_GROUPS,
    CLUSTER,
    CLUSTER_AND_SLOTS,
    CLUSTER_KEY,
    GROUP_KEY,
    GROUP_SCOPE,
    Layout,
)

KEY = "machine"


def route(events: DataFrame, layout: Layout) -> DataFrame:
    """Return the events, once per machine that folds them, with the state key in column `machine`.

    The rule is `state.routing.machine_keys`; the scope was computed where the record was read.
    """
    keys = machine_keys_column(F.col("scope"), layout)
    return events.withColumn(KEY, F.explode(keys)).drop("scope")


def machine_keys_column(scope: Column, layout: Layout) -> Column:
    """Return the array of state keys for a column of scopes."""
    everyone = F.array(*[F.lit(key) for key in (CLUSTER_KEY, *range(layout.slots))])
    all_groups = F.sequence(F.lit(GROUP_KEY), F.lit(GROUP_KEY + layout.group_slots - 1))
    group_slot = (F.lit(GROUP_KEY) + (scope - GROUP_SCOPE) % layout.group_slots).cast("int")
    slot = (scope % layout.slots).cast("int")
    return (
        F.when(scope == CLUSTER_AND_SLOTS, everyone)
        .when(scope == CLUSTER, F.array(F.lit(CLUSTER_KEY)))
        .when(scope == ALL_GROUPS, all_groups)
        .when(scope >= GROUP_SCOPE, F.array(group_slot))
        .otherwise(F.array(slot))
    )
