"""Sends each event of the log to the machines that fold it, with column expressions only."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from state.routing import ALL, CLUSTER, CLUSTER_KEY

KEY = "machine"


def route(events: DataFrame, slots: int) -> DataFrame:
    """Return the events, once per machine that folds them, with the state key in column `machine`.

    The rule is `state.routing.machine_keys`; the scope was computed where the record was read.
    """
    return events.withColumn(KEY, F.explode(machine_keys(F.col("scope"), slots))).drop("scope")


def machine_keys(scope: Column, slots: int) -> Column:
    """Return the array of state keys for a column of scopes."""
    everyone = F.array(*[F.lit(key) for key in (CLUSTER_KEY, *range(slots))])
    slot = (scope % slots).cast("int")
    return (
        F.when(scope == ALL, everyone)
        .when(scope == CLUSTER, F.array(F.lit(CLUSTER_KEY)))
        .otherwise(F.array(slot))
    )
