"""API keys, masks of secrets, and the service's own secret, with which it encrypts and signs."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itsdangerous import BadData, URLSafeSerializer

from .errors import NotPossible

if TYPE_CHECKING:
    from cryptography.fernet import Fernet
    from limits.strategies import FixedWindowRateLimiter

KEY_PREFIX_LENGTH = 8
MIN_SECRET_LENGTH = 32
# How many decrypted values a vault caches.
CACHED = 64
# How many requests with a wrong key an address may send within a minute before they are refused as too many.
WRONG_KEYS_A_MINUTE = 60
# Addresses are counted in so many groups, so that no number of addresses takes more memory.
ADDRESS_GROUPS = 4096


class SecretError(Exception):
    """The service's secret is too short, or isn't the one that a stored value was encrypted with."""


def new_api_key() -> str:
    """A new API key: `va_` and 43 url-safe characters, 256 random bits."""
    return f"va_{new_token()}"


def new_token() -> str:
    """A random token: 43 url-safe characters, 256 random bits."""
    return secrets.token_urlsafe(32)


def key_prefix(key: str) -> str:
    """The part of an API key that is stored and shown: its first 8 characters."""
    return key[:KEY_PREFIX_LENGTH]


def hash_key(key: str) -> str:
    """The SHA-256 of an API key in hexadecimal, as it is stored. Keys are random and long, so they need no salt."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def mask(value: Any) -> Any:
    """A secret as answers show it: a star for each character, except the last 4 of one that is longer than 4.

    Lists are masked item by item; empty values stay as they are.
    """
    if not value:
        return value
    if isinstance(value, list):
        return [mask(item) for item in value]
    text = str(value)
    end = text[-4:] if len(text) > 4 else ""
    return end.rjust(len(text), "*")


def unmask(value: Any, stored: Any) -> Any:
    """The stored secret if the value is its mask, which a client sent back unchanged; else the value."""
    return stored if stored and value == mask(stored) else value


def unmask_fields(incoming: Mapping[str, Any], stored: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The incoming values, those of `names` unmasked with the stored value of the same name."""
    return {name: unmask(value, stored.get(name)) if name in names else value for name, value in incoming.items()}


class Vault:
    """Encrypts and signs with keys derived from one secret, the service's own."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._keys: dict[str, bytes] = {}

    def encrypt(self, text: str) -> str:
        """The text as a Fernet token."""
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, token: str) -> str:
        """The text that `encrypt` was given.

        :raises SecretError: when the token was made with another secret.
        """
        from cryptography.fernet import InvalidToken

        try:
            return self._decrypt(token.encode()).decode()
        except InvalidToken:
            raise SecretError(
                "A stored credential can't be decrypted, because it was encrypted with another secret. "
                "Restore that secret, or enter the credentials again."
            ) from None

    def sign(self, payload: Mapping[str, Any], purpose: str, expires_at: float) -> str:
        """A signed url-safe token with a JSON payload: not encrypted, valid for one purpose until `expires_at`.

        :param expires_at: in seconds since 1970.
        """
        token: str = self._signer(purpose).dumps([expires_at, dict(payload)])
        return token

    def verify(self, token: str, purpose: str, now: float) -> dict[str, Any] | None:
        """The payload of a token that was signed for this purpose and hasn't expired, else None.

        :param now: in seconds since 1970.
        """
        try:
            expires_at, payload = self._signer(purpose).loads(token)
        except (BadData, UnicodeEncodeError):
            return None
        return payload if now < expires_at else None

    def key(self, purpose: str) -> bytes:
        """A key of 32 bytes for one purpose, derived from the secret."""
        if purpose not in self._keys:
            self._keys[purpose] = hmac.digest(self._secret, f"voiceapi {purpose}".encode(), "sha256")
        return self._keys[purpose]

    def _signer(self, purpose: str) -> URLSafeSerializer:
        return URLSafeSerializer(
            self._secret,
            salt=f"voiceapi link {purpose}",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    @cached_property
    def _decrypt(self) -> Callable[[bytes], bytes]:
        """Fernet's decrypt with a cache: every webhook of a call reads the credentials of its carrier account."""
        return lru_cache(maxsize=CACHED)(self._fernet.decrypt)

    @cached_property
    def _fernet(self) -> Fernet:
        import base64

        from cryptography.fernet import Fernet
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        key = HKDF(SHA256(), length=32, salt=None, info=b"voiceapi credentials").derive(self._secret)
        return Fernet(base64.urlsafe_b64encode(key))


def encrypt_json(vault: Vault, value: Mapping[str, Any]) -> str:
    """A JSON object as encrypted text."""
    return vault.encrypt(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def decrypt_json(vault: Vault, text: str) -> dict[str, Any]:
    """The object that `encrypt_json` was given.

    :raises NotPossible: when it was encrypted with another secret than this service's.
    """
    try:
        found: dict[str, Any] = json.loads(vault.decrypt(text))
    except SecretError as error:
        raise NotPossible(str(error)) from error
    return found


def read_or_create_secret(path: str | os.PathLike[str]) -> bytes:
    """The secret in a file. A missing file is created, readable by its owner only, in a folder that must exist.

    Processes that start at the same time get the same secret, since the file is created whole or not at all.

    :raises SecretError: when the file holds less than 32 bytes.
    :raises OSError: when it can't be read or created.
    """
    path = Path(path)
    if not path.exists():
        _create_secret(path)
    secret = path.read_bytes().strip()
    if len(secret) < MIN_SECRET_LENGTH:
        raise SecretError(
            f"The file {path} must hold a secret of at least {MIN_SECRET_LENGTH} characters. Restore it from a backup, "
            "or delete it: a new one is made then, and the carriers' credentials have to be entered again."
        )
    return secret


def _create_secret(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(handle)
        os.link(draft, path)  # unlike a rename, this fails when another process created it first
    except FileExistsError:
        pass
    finally:
        draft.unlink()


class WrongKeys:
    """Counts the requests with a wrong API key by the address that sent them, in this process.

    An address is an IPv4 address or, since a single host usually has that many, the /64 network of an IPv6 address.
    Two addresses may share a count: that only refuses a wrong key in another way, since a right one is never counted.
    """

    @cached_property
    def _limiter(self) -> FixedWindowRateLimiter:
        # Made by the first wrong key: the library takes 16 MB, and its storage starts a short-lived thread.
        from limits.storage import MemoryStorage
        from limits.strategies import FixedWindowRateLimiter

        return FixedWindowRateLimiter(MemoryStorage())

    def count(self, address: str | None) -> int | None:
        """Count a request from `address`; the seconds until its requests are answered as usual again, if too many.

        :param address: as the server gives it; None where it gives none, as for a Unix socket.
        """
        from limits import RateLimitItemPerMinute

        most, group = RateLimitItemPerMinute(WRONG_KEYS_A_MINUTE), str(hash(_network(address)) % ADDRESS_GROUPS)
        if self._limiter.hit(most, group):
            return None
        seconds = math.ceil(self._limiter.get_window_stats(most, group).reset_time - time.time())
        return min(max(seconds, 1), most.get_expiry())


def _network(address: str | None) -> object:
    """What an address is counted as: itself, or the /64 network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return parsed.ipv4_mapped or int(parsed) >> 64
    return parsed
