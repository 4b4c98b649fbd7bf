"""JSON web tokens (RFC 7519), the two kinds that Vonage uses: RS256 to ask it, HS256 by which it signs."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


def made(claims: Mapping[str, Any], private_key: str) -> str:
    """A token of these claims, signed with RS256.

    :param private_key: an RSA key in PEM form; line breaks may be written as ``\\\\n``, as in environment variables.
    :raises ValueError: when it is none.
    """
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT'})}.{_encoded(claims)}"
    return f"{signed}.{_base64(_rsa_key(private_key).sign(signed.encode(), PKCS1v15(), SHA256()))}"


def claimed(token: str, secret: str) -> dict[str, Any] | None:
    """The claims of a token that was signed with HS256 and this secret, None when it wasn't or isn't a token."""
    signed, _, signature = token.rpartition(".")
    header, _, claims = signed.partition(".")
    try:
        given = _bytes(signature)
        if not secret or _decoded(header).get("alg") != "HS256":
            return None
        expected = hmac.digest(secret.encode(), signed.encode(), "sha256")
        return _decoded(claims) if hmac.compare_digest(given, expected) else None
    except (ValueError, RecursionError):
        return None


def _rsa_key(pem: str) -> RSAPrivateKey:
    """:raises ValueError: when it is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.replace("\\n", "\n").strip().encode(), password=None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("not an RSA key")
    return key


def _encoded(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _decoded(text: str) -> dict[str, Any]:
    """:raises ValueError: when it isn't an object."""
    value = json.loads(_bytes(text))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """:raises ValueError: when it isn't base64."""
    try:
        return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
