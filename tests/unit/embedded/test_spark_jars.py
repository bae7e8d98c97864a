"""Jars of pyspark are found, and one that is missing is named."""

from __future__ import annotations

import re

import pytest

from streaming.embedded.spark_jars import SparkJarsMissing, spark_jars


def test_jars_come_in_the_patterns_order():
    zookeeper, *_, ivy = spark_jars(["zookeeper-[0-9]*.jar", "ivy-*.jar"])
    assert zookeeper.is_file()
    assert re.fullmatch(r"zookeeper-[\d.]+\.jar", zookeeper.name)
    assert re.fullmatch(r"ivy-[\d.]+\.jar", ivy.name)


def test_a_jar_that_is_not_there_is_named():
    with pytest.raises(SparkJarsMissing, match=r"jars/nothing-\*\.jar was not found; is pyspark"):
        spark_jars(["ivy-*.jar", "nothing-*.jar"])


def test_pyspark_may_be_missing_altogether(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SparkJarsMissing, match="the package pyspark was not found"):
        spark_jars(["ivy-*.jar"])
