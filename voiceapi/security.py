"""API keys, masks of secrets, and the service's own secret, with which it encrypts and signs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import logging
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itsdangerous import BadData, URLSafeSerializer

from .errors import NotPossible

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet
    from limits.strategies import FixedWindowRateLimiter

KEY_PREFIX_LENGTH = 8
MIN_SECRET_LENGTH = 32
# How every Fernet token begins, and one of at least one byte, whatever stands around it.
TOKEN_START = "gAAAA"
TOKEN = re.compile(r"(?<![\w-])gAAAA[\w-]{90,}={0,2}", re.ASCII)
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


class _Keys:
    """What is derived from secrets: it encrypts and signs with the first one, and decrypts with all."""

    def __init__(self, *secrets: bytes) -> None:
        self.secrets = tuple(dict.fromkeys(secrets))
        self._derived: dict[str, bytes] = {}

    @cached_property
    def fernet(self) -> MultiFernet:
        from cryptography.fernet import MultiFernet

        return MultiFernet(_fernet_of(secret) for secret in self.secrets)

    @cached_property
    def decrypt(self) -> Callable[[bytes], bytes]:
        """Fernet's decrypt with a cache: every webhook of a call reads the credentials of its carrier account."""
        return lru_cache(maxsize=CACHED)(self.fernet.decrypt)

    def derived(self, purpose: str) -> bytes:
        if purpose not in self._derived:
            self._derived[purpose] = hmac.digest(self.secrets[0], f"voiceapi {purpose}".encode(), "sha256")
        return self._derived[purpose]


class Vault:
    """Encrypts and signs with keys derived from one secret, the service's own.

    What was encrypted with one of `others` can be decrypted, too, while the secret is being replaced. The secret's file
    is read again when it has changed, so that a running service takes part in that: call `encrypt` inside the
    transaction that stores its result, because the file is replaced inside one.

    :param others: the secret before this one or after it.
    :param file: where the secret is from; None if it is from a setting.
    """

    def __init__(self, secret: bytes, *others: bytes, file: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file = file
        # Of the file as it was last read here; at first None, since it may have been replaced since the caller read it.
        self._stamp: tuple[int, int] | None = None
        # Replaced as a whole, so that no thread sees keys of two secrets.
        self._keys = _Keys(secret, *others)

    def __repr__(self) -> str:
        return "Vault()"

    @property
    def secret(self) -> bytes:
        """The secret that it encrypts and signs with."""
        return self._refreshed().secrets[0]

    @property
    def file(self) -> Path | None:
        """The file that the secret is from; None if it is from a setting."""
        return self._file

    def add(self, other: bytes) -> None:
        """Decrypt what was encrypted with this secret, too."""
        self._keys = _Keys(*self._keys.secrets, other)

    def replace(self, secret: bytes) -> None:
        """Encrypt and sign with this secret from now on; decrypt with those before it, too."""
        self._keys = _Keys(secret, *self._keys.secrets)

    def encrypt(self, text: str) -> str:
        """The text as a Fernet token."""
        return self._refreshed().fernet.encrypt(text.encode()).decode()

    def decrypt(self, token: str) -> str:
        """The text that `encrypt` was given.

        :raises SecretError: when the token was made with another secret.
        """
        from cryptography.fernet import InvalidToken

        before = self._keys
        with suppress(InvalidToken):
            return before.decrypt(token.encode()).decode()
        if (keys := self._refreshed()) is not before:
            with suppress(InvalidToken):
                return keys.decrypt(token.encode()).decode()
        raise SecretError(
            "A stored credential can't be decrypted, because it was encrypted with another secret. "
            "Restore that secret, or enter the credentials again."
        )

    def made(self, token: str) -> bool:
        """True if a token was made with one of the secrets: it ends with their signature, an HMAC of 32 bytes.

        Fernet checks that before it decrypts. Here it is checked without Fernet, because each start asks this, and
        importing cryptography takes 7 MB.
        """
        try:
            content = base64.urlsafe_b64decode(token.encode())
        except ValueError:
            return False
        signed, signature = content[:-32], content[-32:]
        keys = [_fernet_key(secret) for secret in self._refreshed().secrets]
        return any(hmac.compare_digest(hmac.digest(key[:16], signed, "sha256"), signature) for key in keys)

    def rotate(self, text: str) -> str:
        """The text with each token of another secret encrypted again with the present one, if it can be decrypted."""
        from cryptography.fernet import InvalidToken

        keys = self._keys
        present = _fernet_of(keys.secrets[0])

        def reencrypted(found: re.Match[str]) -> str:
            token = found[0].encode()
            with suppress(InvalidToken):
                present.decrypt(token)
                return found[0]
            with suppress(InvalidToken):
                return keys.fernet.rotate(token).decode()
            return found[0]

        return TOKEN.sub(reencrypted, text)

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
        return self._refreshed().derived(purpose)

    def _signer(self, purpose: str) -> URLSafeSerializer:
        return URLSafeSerializer(
            self.secret,
            salt=f"voiceapi link {purpose}",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def _file_stamp(self) -> tuple[int, int] | None:
        try:
            found = None if self._file is None else self._file.stat()
        except OSError:
            found = None
        return None if found is None else (found.st_ino, found.st_mtime_ns)

    def _refreshed(self) -> _Keys:
        """The keys, of the secret that the file holds now: it is read again if it has changed."""
        stamp = self._file_stamp()
        if stamp is not None and stamp != self._stamp:
            with self._lock:
                if stamp != self._stamp and self._file is not None:
                    with suppress(OSError, SecretError):  # a file that can't be used leaves the secret as it was
                        secret = read_secret(self._file)
                        if secret != self._keys.secrets[0]:
                            self.replace(secret)
                    self._stamp = stamp  # after the secret, so that no other thread goes on with the one before
        return self._keys


def _fernet_key(secret: bytes) -> bytes:
    """The key of a secret's Fernet tokens: 16 bytes to sign and 16 to encrypt.

    It is HKDF-SHA256 without a salt (RFC 5869), whose first block is as long as the key.
    """
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, b"voiceapi credentials\x01", "sha256")


def _fernet_of(secret: bytes) -> Fernet:
    from cryptography.fernet import Fernet

    return Fernet(base64.urlsafe_b64encode(_fernet_key(secret)))


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
        write_secret(path, new_secret())
    return read_secret(path)


def new_secret() -> str:
    """A new secret of the service: 64 url-safe characters."""
    return secrets.token_urlsafe(48)


def read_secret(path: Path) -> bytes:
    """The secret in a file.

    :raises SecretError: when the file holds less than 32 bytes.
    :raises OSError: when it can't be read.
    """
    secret = path.read_bytes().strip()
    if len(secret) < MIN_SECRET_LENGTH:
        raise SecretError(
            f"The file {path} must hold a secret of at least {MIN_SECRET_LENGTH} characters. Restore it from a backup."
        )
    return secret


def write_secret(path: Path, secret: str, *, replace: bool = False) -> None:
    """Store a secret in a file that only its owner can read, whole or not at all.

    A file that exists stays as it is unless `replace` is true.

    :raises OSError: when it can't be written.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(handle)
        if replace:
            os.replace(draft, path)
        else:
            os.link(draft, path)  # unlike a rename, this fails when another process created it first
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)


def printable(text: str) -> str:
    """The text with control characters escaped, so that it can't forge lines of a log or of a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class OneLine(logging.Filter):
    """Keeps what others sent from forging lines of the log, whichever handlers write it.

    Control characters in the arguments of a message are escaped; the lines of a traceback are indented.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_argument(each) for each in record.args)
        if record.exc_info and not record.exc_text:
            lines = logging.Formatter().formatException(record.exc_info).split("\n")
            record.exc_text = "\n".join(f"  {printable(line)}" for line in lines)
        return True


def _argument(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = printable(str(value))
    return value if text == str(value) else text


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
