"""Where a log is, as it is written in settings and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.errors import ConfigurationError
from streaming.log.location import KafkaTopic, log_location, topic_of
from streaming.paths import DataDir
from streaming.settings_loader import load_settings

URL = "kafka://a:9092,b:9093/helmstream.events-1"


def test_a_url_is_a_topic_and_everything_else_a_path():
    assert log_location(URL) == KafkaTopic("a:9092,b:9093", "helmstream.events-1")
    assert str(log_location(URL)) == URL
    assert log_location("data/events") == Path("data/events")
    assert topic_of(URL) == log_location(URL)


def test_an_address_of_ipv6_is_in_brackets():
    url = "kafka://[::1]:9092,b:9093/events"
    assert topic_of(url).bootstrap_servers == "[::1]:9092,b:9093"
    assert load_settings((), [f"event.log.url={url}"], {}).event_log_url == url


def test_a_url_may_name_the_properties_of_a_client():
    url = f"{URL}?config=/etc/kafka/client.properties"
    assert topic_of(url).config == "/etc/kafka/client.properties"
    assert str(topic_of(url)) == url
    assert load_settings((), [f"event.log.url={url}"], {}).event_log_url == url


@pytest.mark.parametrize(
    "text",
    [
        *("kafka://a/t", "kafka://a:1", "kafka://a:1/", "kafka://a:1,/t", "kafka://a:1/t/u"),
        *("kafka://", "kafka://a:1/t?config=relative", "kafka://a:1/t?other=/x", "kafka://a:1/t?"),
        *("kafka://::1:9092/t", "kafka://[::1]/t", "kafka://[::1:9092/t"),
    ],
)
def test_what_a_url_must_be(text):
    with pytest.raises(ConfigurationError, match=r"allowed is kafka://host:port\[,host:port"):
        log_location(text)
    for key in ("event.log.url", "decision.stream.url"):
        with pytest.raises(ConfigurationError) as refused:
            load_settings((), [f"{key}={text}"], {})
        assert f"{key} = '{text}' in --set is not allowed" in str(refused.value)
        assert "allowed is kafka://host:port" in str(refused.value)


def test_a_folder_is_no_topic():
    with pytest.raises(ConfigurationError, match="'data/events' is not a topic"):
        topic_of("data/events")


def test_the_event_log_is_in_the_data_folder_unless_settings_say_otherwise():
    assert load_settings((), [], {}).event_log_url == ""
    assert DataDir(Path("data")).event_log == Path("data/events")
    url = load_settings((), [f"event.log.url={URL}"], {}).event_log_url
    assert DataDir(Path("data"), url).event_log == log_location(URL)
