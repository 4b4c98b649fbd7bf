from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from voiceapi import create_app
from voiceapi.config import API_KEY, PRIVATE_URLS, SettingError, Settings, names, without_effect
from voiceapi.masking import mask_password

DEFAULTS = {
    "database": "voiceapi.db",
    "host": "127.0.0.1",
    "port": 8000,
    "threads": 64,
    "connections": 1000,
    "idle_timeout": 30.0,
    "api_key": None,
    "public_url": None,
    "relay_url": None,
    "concurrent_calls": 10,
    "max_body": 1024 * 1024,
    "worker": True,
    "allow_private_urls": False,
    "llm_url": None,
    "llm_key": None,
    "llm_model": None,
    "llm_timeout": 20.0,
    "llm_stream": True,
    "llm_max_tokens": 300,
    "twilio_url": None,
    "signalwire_url": None,
    "telnyx_url": None,
    "cloudonix_url": None,
    "plivo_url": None,
    "vobiz_url": None,
    "vonage_url": None,
    "jambonz_url": None,
    "console": True,
    "log": "text",
    "log_requests": False,
    "metrics_key": None,
    "keep_runs_days": None,
    "secret": None,
}


def values(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in DEFAULTS}


@pytest.mark.parametrize("unset", [None, ""])
def test_what_is_not_set_has_its_default(unset: Any) -> None:
    assert values(Settings.read({})) == DEFAULTS
    assert values(Settings.read(dict.fromkeys(names(), unset))) == DEFAULTS
    assert names() == [f"VOICEAPI_{name.upper()}" for name in DEFAULTS]


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("DATABASE", "/tmp/a b.db", "/tmp/a b.db"),
        ("DATABASE", Path("voice.db"), "voice.db"),
        ("DATABASE", "sqlite:////tmp/voice.db", "sqlite:////tmp/voice.db"),
        ("HOST", "0.0.0.0", "0.0.0.0"),
        ("PORT", "0", 0),
        ("PORT", 65535, 65535),
        ("THREADS", " 512 ", 512),
        ("CONNECTIONS", "100000", 100_000),
        ("IDLE_TIMEOUT", "0.5", 0.5),
        ("IDLE_TIMEOUT", 120, 120.0),
        ("API_KEY", "abcdefgh" * 2, "abcdefgh" * 2),
        ("API_KEY", "!~,;:_#'" * 16, "!~,;:_#'" * 16),
        ("PUBLIC_URL", "https://voice.example.org:8443/", "https://voice.example.org:8443"),
        ("RELAY_URL", "wss://relay.example.org/", "wss://relay.example.org"),
        ("CONCURRENT_CALLS", "100000", 100_000),
        ("MAX_BODY", "1024", 1024),
        ("WORKER", "OFF", False),
        ("WORKER", "Yes", True),
        ("WORKER", False, False),
        ("WORKER", 1, True),
        ("TWILIO_URL", "http://127.0.0.1:4711/", "http://127.0.0.1:4711"),
        ("ALLOW_PRIVATE_URLS", "True", True),
        ("ALLOW_PRIVATE_URLS", 0, False),
        ("ALLOW_PRIVATE_URLS", "127.0.0.1:11434, *.Home.Arpa", {"127.0.0.1:11434", "*.home.arpa"}),
        ("ALLOW_PRIVATE_URLS", ["Ollama.", "nas:080"], {"ollama", "nas:80"}),
        (
            "ALLOW_PRIVATE_URLS",
            "::1,[0:0::1]:8080,::ffff:10.0.0.1,[FD00::A],*.lan:99",
            {"[::1]", "[::1]:8080", "10.0.0.1", "[fd00::a]", "*.lan:99"},
        ),
        ("SECRET", "s", "s"),
        ("LOG", " JSON ", "json"),
        ("LOG_REQUESTS", "on", True),
        ("METRICS_KEY", "abcdefgh" * 2, "abcdefgh" * 2),
        ("KEEP_RUNS_DAYS", "36500", 36_500),
    ],
)
def test_a_setting_is_read(name: str, given: Any, read: Any) -> None:
    assert values(Settings.read({f"VOICEAPI_{name}": given})) == {**DEFAULTS, name.lower(): read}


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("DATABASE", " ", "a path or a Peewee database URL, not ' '"),
        ("DATABASE", 3, "a path or a Peewee database URL, not 3"),
        ("DATABASE", ":memory:", "a path or a Peewee database URL, not ':memory:'"),
        ("DATABASE", "sqlite:///:memory:", "a path or a Peewee database URL, not 'sqlite:///:memory:'"),
        ("DATABASE", "sqlite://voice.db", "a path or a Peewee database URL, not 'sqlite://voice.db'"),
        ("HOST", "\n", "a host name or address to listen on, not '\\n'"),
        ("PORT", "65536", "a whole number from 0 to 65535, not '65536'"),
        ("PORT", "-1", "a whole number from 0 to 65535, not '-1'"),
        ("PORT", "80a\nb", "a whole number from 0 to 65535, not '80a\\nb'"),
        ("PORT", True, "a whole number from 0 to 65535, not True"),
        ("PORT", 80.5, "a whole number from 0 to 65535, not 80.5"),
        ("PORT", float("inf"), "a whole number from 0 to 65535, not inf"),
        ("THREADS", "0", "a whole number from 1 to 512, not '0'"),
        ("CONNECTIONS", "0", "a whole number from 1 to 100000, not '0'"),
        ("IDLE_TIMEOUT", "0", "a number of seconds above 0, at most 120, not '0'"),
        ("IDLE_TIMEOUT", "nan", "a number of seconds above 0, at most 120, not 'nan'"),
        (
            "RELAY_URL",
            "https://relay.example.org",
            "an origin without a path, such as wss://relay.example.org, not 'https://relay.example.org'",
        ),
        ("CONCURRENT_CALLS", "many", "a whole number from 1 to 100000, not 'many'"),
        ("MAX_BODY", "1", "a number of bytes from 1024 to 1073741824, not '1'"),
        ("WORKER", "perhaps", "on or off, not 'perhaps'"),
        ("API_KEY", "short", API_KEY),
        ("API_KEY", "abcdefgh" * 16 + "i", API_KEY),
        ("API_KEY", "fifteen and more", API_KEY),
        ("API_KEY", "schlüssel" * 3, API_KEY),
        ("API_KEY", "abcdefg" * 3, API_KEY),
        ("API_KEY", "changemechangeme", API_KEY),
        ("API_KEY", "Your-API-Key-Here", API_KEY),
        ("SECRET", " ", "any text that isn't blank"),
    ]
    + [
        ("ALLOW_PRIVATE_URLS", hosts, f"{PRIVATE_URLS}, not {mask_password(hosts)!r}")
        for hosts in (
            *("maybe not", "*", "*.", "a,", ",", "10.0.0.0/8", "http://127.0.0.1", "a@127.0.0.1", "127.0.0.1:0"),
            *("127.0.0.1:99999", "127.0.0.1:a", "[::1", "::1:x", "a..b", "a.*.b", "fe80::1%lo", "a/b", "a?b", "ä.lan"),
        )
    ]
    + [("ALLOW_PRIVATE_URLS", 3, f"{PRIVATE_URLS}, not 3"), ("ALLOW_PRIVATE_URLS", [4], f"{PRIVATE_URLS}, not [4]")]
    + [
        (
            "PUBLIC_URL",
            url,
            f"an origin without a path, such as https://voice.example.org, not {mask_password(url)!r}",
        )
        for url in (
            *("voice.example.org", "ftp://voice.example.org", "https://", "https://voice.example.org/voice"),
            *("https://voice.example.org?a=b", "https://voice.example.org#a", "http://[::1", "http://voice:99999"),
            "https://ann:pass@voice.example.org",
        )
    ],
)
def test_a_wrong_setting_is_named_in_one_line(name: str, given: Any, text: str) -> None:
    with pytest.raises(SettingError) as raised:
        Settings.read({f"VOICEAPI_{name}": given})
    assert str(raised.value) == f"VOICEAPI_{name} must be {text}."


@pytest.mark.parametrize(
    ("database", "file"),
    [
        ("voice.db", Path("voice.db")),
        ("sqlite:///voice.db", Path("voice.db")),
        ("sqlite:////srv/voice.db", Path("/srv/voice.db")),
        ("postgresql://db/voice", None),
    ],
)
def test_the_file_of_a_database(database: str, file: Path | None) -> None:
    assert Settings.read({"VOICEAPI_DATABASE": database}).database_file == file


def test_the_apps_config_comes_before_the_environment(
    tmp_path: Path, database_at: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    location = database_at(tmp_path / "environment.db")
    monkeypatch.setenv("VOICEAPI_DATABASE", location)
    monkeypatch.setenv("VOICEAPI_PORT", "9001")
    monkeypatch.setenv("VOICEAPI_API_KEY", "test-key-0123456789")
    app = create_app({"VOICEAPI_PORT": 9002})
    service = app.extensions["voiceapi"]
    service.close()
    assert (service.settings.port, service.store.location) == (9002, location)
    assert service.settings.origin == "http://127.0.0.1:9002"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, None),
        ({"HOME": "/", "VOICEAPI_PORT": "80"}, None),
        ({"VOICEAPI_PROT": "80"}, "VOICEAPI_PROT is unknown (did you mean VOICEAPI_PORT?)"),
        ({"VOICEAPI_TIMEZONE": "UTC"}, "VOICEAPI_TIMEZONE is unknown"),
        ({"VOICEAPI_A\nB": ""}, "VOICEAPI_A\\nB is unknown"),
        ({"VOICEAPI_LLM_MODEL": "m"}, "VOICEAPI_LLM_MODEL needs VOICEAPI_LLM_URL"),
        ({"VOICEAPI_LLM_MODEL": "m", "VOICEAPI_LLM_URL": "http://127.0.0.1/v1"}, None),
        (
            {"VOICEAPI_LLM_KEY": "k", "VOICEAPI_DATABSE": "d", "VOICEAPI_THREAD": 1},
            "VOICEAPI_DATABSE is unknown (did you mean VOICEAPI_DATABASE?); VOICEAPI_THREAD is unknown (did you mean "
            "VOICEAPI_THREADS?); VOICEAPI_LLM_KEY needs VOICEAPI_LLM_URL",
        ),
        ({"VOICEAPI_TEST_SEED": "1", "VOICE_THREAD": "1"}, None),
    ],
)
def test_settings_without_effect_are_named_in_one_line(given: dict[str, Any], line: str | None) -> None:
    assert without_effect(given, Settings.read(given)) == (line and f"Settings without effect: {line}.")


def test_a_start_names_settings_without_effect(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VOICEAPI_THREAD", "a secret")
    given = {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_API_KEY": "test-key-0123456789"}
    create_app({**given, "VOICEAPI_HOTS": "::"}).extensions["voiceapi"].close()
    assert capsys.readouterr().err == (
        "Settings without effect: VOICEAPI_HOTS is unknown (did you mean VOICEAPI_HOST?); VOICEAPI_THREAD is unknown "
        "(did you mean VOICEAPI_THREADS?).\n"
    )
