"""Settings: read from the environment or a host app's config, checked once, at start."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .masking import HIDDEN, mask_password

PREFIX = "VOICEAPI_"
# Keys that are guessed first. docs/api.md shows them.
GUESSED_KEYS = (
    *("0123456789abcdef", "1234567890123456", "12345678901234567890", "123456789abcdefg", "1q2w3e4r5t6y7u8i"),
    *("abcdefghijklmnop", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfgh", "qwertyuiopasdfghjklzxcvbnm"),
    *("administrator123", "change-me-please", "correcthorsebatterystaple", "my-secret-api-key", "password12345678"),
    *("password123456789", "replace-this-key", "supersecretapikey", "voiceapi-api-key", "voiceapi_api_key"),
    *("your-api-key-here", "your-secret-api-key"),
)
API_KEY = (
    "16 to 128 printable ASCII characters without blanks, at least 8 of them different, and none of the keys that "
    "docs/api.md lists as easily guessed"
)
# The longest name of an unknown setting that is shown in full.
LONGEST_NAME = 60
PRIVATE_URLS = "on, off, or a list of hosts with or without a port such as 127.0.0.1:11434, *.home.arpa"
CARRIER_URL = "a URL of http or https such as http://127.0.0.1:4010"


# A name, perhaps of all names below it, or an IPv6 address in brackets; with or without a port.
_PRIVATE_HOST = re.compile(r"((\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:\d+)?")


class SettingError(ValueError):
    """A setting that can't be used; its text is one line for the person who starts the service."""


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = int(value)
        if isinstance(value, bool | float) or not low <= number <= high:
            raise ValueError
        return number

    return read


def _flag(value: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    return words[str(value).strip().lower()]


def host_and_port(host: str, port: int | None = None) -> str:
    """A host in the one spelling in which hosts are compared: names in small letters, IPv6 addresses in brackets.

    An IPv4 address in the form of an IPv6 one is the IPv4 address.
    """
    with suppress(ValueError):
        ip = ip_address(host.strip("[]"))
        ip = getattr(ip, "ipv4_mapped", None) or ip
        host = f"[{ip}]" if ip.version == 6 else str(ip)
    return host.lower().removesuffix(".") + (f":{port}" if port else "")


def _private_urls(value: Any) -> bool | frozenset[str]:
    with suppress(KeyError):
        return _flag(value)
    given = value.split(",") if isinstance(value, str) else value
    return frozenset(_private_host(_text(each).strip()) for each in given)


def _private_host(text: str) -> str:
    with suppress(ValueError):
        text = f"[{ip_address(text)}]" if ":" in text else text
    parts = urlsplit(f"//{text}")
    host = host_and_port(parts.hostname or "", parts.port)
    if parts.netloc != text or "@" in text or parts.port == 0 or not _PRIVATE_HOST.fullmatch(host):
        raise ValueError
    return host


def _choice(*allowed: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        return {word: word for word in allowed}[str(value).strip().lower()]

    return read


def _text(value: Any) -> str:
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        raise ValueError
    return str(value)


def _database(value: Any) -> str:
    location = _text(value)
    # Each thread opens its own connection, and each connection to :memory: is a separate, empty database.
    if ":memory:" in location or (location.startswith("sqlite:") and not location.startswith("sqlite:///")):
        raise ValueError
    return location


def _origin(value: Any, schemes: tuple[str, ...] = ("http", "https")) -> str:
    parts = urlsplit(_text(value))
    origin = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in schemes or not parts.hostname or "@" in parts.netloc or parts.port == 0:
        raise ValueError
    if parts.geturl().rstrip("/") != origin:
        raise ValueError
    return origin


def _base_url(value: Any) -> str:
    parts = urlsplit(_text(value).strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or parts.query or parts.fragment:
        raise ValueError
    return parts.geturl().rstrip("/")


def _seconds(value: Any) -> float:
    seconds = float(value)
    if isinstance(value, bool) or not 0 < seconds <= 120:
        raise ValueError
    return seconds


def _api_key(value: Any) -> str:
    key = _text(value)
    if not 16 <= len(key) <= 128 or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError
    if len(set(key)) < 8 or key.lower() in GUESSED_KEYS:
        raise ValueError
    return key


def _shown(value: Any) -> str:
    """A setting's value for messages, without a URL's password."""
    return repr(mask_password(value) if isinstance(value, str) else value)


def _setting(read: Callable[[Any], Any], allowed: str, default: Any = None, secret: bool = False) -> Any:
    return field(default=default, metadata={"read": read, "allowed": allowed, "secret": secret})


# What each setting means, in Markdown, and what an unset one stands for: the table of docs/settings.md, in its order.
# Links are relative to docs/.
MEANINGS: Mapping[str, tuple[str, str]] = {
    "database": (
        "`voiceapi.db` in the [instance folder](operations.md#files)",
        "a path, or the URL of a [PostgreSQL database](scaling.md#how-to-move)",
    ),
    "host": ("", "the name or address at which the service [listens](operations.md#ports-and-proxies)"),
    "port": ("", "the port at which it listens; 0 chooses a free one"),
    "public_url": (
        "`http://HOST:PORT`",
        "the origin at which clients and carriers [reach the service](operations.md#ports-and-proxies); calls through "
        "a real carrier need it, unless [`serve --tunnel`](commands.md#serve) has another one",
    ),
    "relay_url": (
        "`VOICEAPI_PUBLIC_URL` as wss, where `serve` runs",
        "the origin at which carriers reach [`voiceapi relay`](commands.md#relay), for their [text "
        "relays](carriers.md#a-text-relay)",
    ),
    "api_key": (
        "unset",
        "an API key to accept for the default organization: 16 to 128 printable characters without blanks, at least 8 "
        "of them different, and not [easily guessed](api.md#authentication)",
    ),
    "secret": (
        "created at the first start, in `<database>.secret`; needed with a database URL",
        "encrypts [what is secret](operations.md#the-secret) in the database, signs links",
    ),
    "console": (
        "",
        "whether the [console](console.md), a web page, is served at `/`, or at `/console` under a mount prefix",
    ),
    "llm_url": (
        "unset: the [scripted model](conversation.md#the-scripted-model)",
        "base URL of an OpenAI-compatible server, ending in `/v1`: see [language models](models.md)",
    ),
    "llm_key": ("unset", "that server's key, if it wants one"),
    "llm_model": ("unset: the server's choice", "the model to ask for"),
    "llm_timeout": ("", "seconds that one reply of the model may take, retries included"),
    "llm_stream": (
        "",
        "whether replies are [streamed](models.md#streaming), unless the model's configuration sets its own `stream`",
    ),
    "llm_max_tokens": ("", "the most tokens of one reply, unless the model's configuration sets its own `max_tokens`"),
    "concurrent_calls": ("", "[calls in progress](api.md#limits) allowed for each organization"),
    "worker": (
        "",
        "whether this process works in the background: dials campaigns, ends overdue calls and idle chats, reviews "
        "ended runs and sends their webhooks; with off, the [dial](commands.md#dial) command has to do it",
    ),
    "keep_runs_days": (
        "unset: for good",
        "the background jobs [remove ended runs](operations.md#keeping-runs-for-a-time) "
        "that are older than so many days",
    ),
    "log": ("", "how `serve` and `dial` write [log lines](operations.md#log) on standard error"),
    "log_requests": ("", "whether `serve` writes a [log line](operations.md#log) for each request"),
    "metrics_key": (
        "unset: no metrics",
        "serves [`/metrics`](operations.md#metrics) to whoever sends this key, of the same form as VOICEAPI_API_KEY; "
        "needs the extra `metrics`",
    ),
    "allow_private_urls": (
        "",
        "whether URLs that come in through the API may point into "
        "[private networks](security.md#requests-that-leave-the-service): on, off, or "
        "[a list of hosts](security.md#hosts-in-a-private-network) that they may point to",
    ),
    "max_body": ("", "the largest request body in bytes; a larger one is answered with [413](api.md#limits)"),
    "threads": (
        "",
        "how many requests are answered, or wait for something, at a time; half of them at most do "
        "[slow work](api.md#slow-requests)",
    ),
    "connections": (
        "",
        "connections that `serve` keeps open; beyond them, [new ones take the place of old ones]"
        "(operations.md#connections)",
    ),
    "idle_timeout": (
        "",
        "seconds after which `serve` closes [a connection](operations.md#connections) that makes no progress",
    ),
    **{
        f"{carrier}_url": ("the carrier's own", f"base URL of {name}'s REST API, for a proxy or a mock")
        for carrier, name in {
            "twilio": "Twilio",
            "signalwire": "SignalWire",
            "telnyx": "Telnyx",
            "cloudonix": "Cloudonix",
            "plivo": "Plivo",
            "vobiz": "Vobiz",
            "vonage": "Vonage",
            "jambonz": "jambonz",
        }.items()
    },
}


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """The settings of one app. Each is VOICEAPI_ and its name in capitals; None means unset."""

    database: str = _setting(_database, "a path or a Peewee database URL", "voiceapi.db")
    host: str = _setting(_text, "a host name or address to listen on", "127.0.0.1")
    port: int = _setting(_whole(0, 65535), "a whole number from 0 to 65535", 8000)
    threads: int = _setting(_whole(1, 512), "a whole number from 1 to 512", 64)
    connections: int = _setting(_whole(1, 100_000), "a whole number from 1 to 100000", 1000)
    idle_timeout: float = _setting(_seconds, "a number of seconds above 0, at most 120", 30.0)
    api_key: str | None = _setting(_api_key, API_KEY, secret=True)
    public_url: str | None = _setting(_origin, "an origin without a path, such as https://voice.example.org")
    relay_url: str | None = _setting(
        partial(_origin, schemes=("ws", "wss")), "an origin without a path, such as wss://relay.example.org"
    )
    concurrent_calls: int = _setting(_whole(1, 100_000), "a whole number from 1 to 100000", 10)
    max_body: int = _setting(_whole(1024, 2**30), "a number of bytes from 1024 to 1073741824", 1024 * 1024)
    worker: bool = _setting(_flag, "on or off", True)
    allow_private_urls: bool | frozenset[str] = _setting(_private_urls, PRIVATE_URLS, False)
    llm_url: str | None = _setting(_base_url, "a URL of http or https such as http://127.0.0.1:11434/v1")
    llm_key: str | None = _setting(_text, "any text that isn't blank", secret=True)
    llm_model: str | None = _setting(_text, "the name of a model")
    llm_timeout: float = _setting(_seconds, "a number of seconds above 0, at most 120", 20.0)
    llm_stream: bool = _setting(_flag, "on or off", True)
    llm_max_tokens: int = _setting(_whole(1, 100_000), "a whole number from 1 to 100000", 300)
    twilio_url: str | None = _setting(_base_url, CARRIER_URL)
    signalwire_url: str | None = _setting(_base_url, CARRIER_URL)
    telnyx_url: str | None = _setting(_base_url, CARRIER_URL)
    cloudonix_url: str | None = _setting(_base_url, CARRIER_URL)
    plivo_url: str | None = _setting(_base_url, CARRIER_URL)
    vobiz_url: str | None = _setting(_base_url, CARRIER_URL)
    vonage_url: str | None = _setting(_base_url, CARRIER_URL)
    jambonz_url: str | None = _setting(_base_url, CARRIER_URL)
    console: bool = _setting(_flag, "on or off", True)
    log: str = _setting(_choice("text", "json"), "text or json", "text")
    log_requests: bool = _setting(_flag, "on or off", False)
    metrics_key: str | None = _setting(_api_key, API_KEY, secret=True)
    keep_runs_days: int | None = _setting(_whole(1, 36_500), "a whole number of days from 1 to 36500")
    secret: str | None = _setting(_text, "any text that isn't blank", secret=True)

    def __repr__(self) -> str:
        shown = {name: _shown(getattr(self, name)) for name in (each.name for each in fields(self))}
        hidden = {each.name for each in fields(self) if each.metadata["secret"] and shown[each.name] != "None"}
        parts = (f"{name}={HIDDEN if name in hidden else value}" for name, value in shown.items())
        return f"Settings({', '.join(parts)})"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Settings:
        """Read the VOICEAPI_* entries of `given`; entries that are None or blank count as unset.

        :raises SettingError: naming the setting, what is allowed and, unless it is secret, the value.
        """
        values = {}
        for setting in fields(cls):
            name = PREFIX + setting.name.upper()
            value = given.get(name)
            if value is None or value == "":
                continue
            try:
                values[setting.name] = setting.metadata["read"](value)
            except (ValueError, KeyError, TypeError, OverflowError):
                shown = "" if setting.metadata["secret"] else f", not {_shown(value)}"
                raise SettingError(f"{name} must be {setting.metadata['allowed']}{shown}.") from None
        return cls(**values)

    @property
    def origin(self) -> str:
        """The origin that clients and carriers reach: public_url, else http://host:port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    def carrier_url(self, provider: str) -> str | None:
        """The base URL that is set for a carrier's REST API; None stands for the carrier's own."""
        url: str | None = getattr(self, f"{provider}_url", None)
        return url

    @property
    def database_file(self) -> Path | None:
        """The SQLite file, or None when the database is elsewhere."""
        if self.database.startswith("sqlite:///"):
            return Path(self.database.removeprefix("sqlite:///"))
        return None if "://" in self.database else Path(self.database)


# Settings that do nothing unless another one is set.
NEEDED: Mapping[str, str] = {f"{PREFIX}LLM_KEY": f"{PREFIX}LLM_URL", f"{PREFIX}LLM_MODEL": f"{PREFIX}LLM_URL"}


def without_effect(given: Iterable[str], settings: Settings) -> str | None:
    """A sentence that names the settings among the names `given` that do nothing; None if there are none.

    :param given: names from the environment and from a host app's config; those that don't begin with VOICEAPI_ are
        others' names, and those that begin with VOICEAPI_TEST_ are for the tests.
    """
    ours = {name for name in given if name.startswith(PREFIX) and not name.startswith(f"{PREFIX}TEST_")}
    found = [*_unknown(sorted(ours.difference(names())))]
    for name, needed in NEEDED.items():
        if _value(settings, name) is not None and _value(settings, needed) is None:
            found.append(f"{name} needs {needed}")
    return f"Settings without effect: {'; '.join(found)}." if found else None


def _unknown(wrong: Iterable[str]) -> Iterator[str]:
    for name in wrong:
        nearest = get_close_matches(name, names(), n=1, cutoff=0.8)
        shown = name[:LONGEST_NAME].encode("unicode_escape").decode()
        yield f"{shown} is unknown{f' (did you mean {nearest[0]}?)' if nearest else ''}"


def _value(settings: Settings, name: str) -> Any:
    return getattr(settings, name.removeprefix(PREFIX).lower())


def names() -> list[str]:
    """Every setting's name."""
    return [PREFIX + setting.name.upper() for setting in fields(Settings)]
