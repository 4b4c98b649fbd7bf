"""What an organization's webhooks are signed with: one secret, or two while its receivers change over."""

from __future__ import annotations

import hashlib
import hmac

from ..errors import Conflict
from ..security import SecretError, Vault, new_token
from ..store.database import write
from ..store.postcall import WebhookSecret

MOST = 2


def of(vault: Vault, organization: int) -> list[tuple[WebhookSecret, str]]:
    """The organization's secrets, each with its text, the newest first; none before the first one was needed.

    One that was encrypted with another secret of the service can't be read and comes with an empty text.
    """
    rows = WebhookSecret.select().where(WebhookSecret.organization == organization).order_by(WebhookSecret.id.desc())
    return [(row, _text(vault, row)) for row in rows]


def to_sign_with(vault: Vault, organization: int) -> list[str]:
    """The texts of the secrets that sign; the first one is made here when there is none yet."""
    texts = [text for _, text in of(vault, organization) if text]
    if texts:
        return texts
    with write():
        texts = [text for _, text in of(vault, organization) if text]
        return texts or [_make(vault, organization)[1]]


def rotate(vault: Vault, organization: int) -> tuple[WebhookSecret, str]:
    """A new secret; the one before it goes on signing as well, until it is retired.

    :raises Conflict: when two are in use already.
    """
    with write():
        if len(of(vault, organization)) >= MOST:
            raise Conflict("Two secrets are in use. Retire the older one before you make another.")
        return _make(vault, organization)


def retire(vault: Vault, organization: int) -> list[tuple[WebhookSecret, str]]:
    """Let the newest secret sign alone; returns it.

    :raises Conflict: when there is no older one.
    """
    with write():
        found = of(vault, organization)
        kept, retired = found[:1], found[1:]
        if not retired:
            raise Conflict("There is no older secret to retire.")
        WebhookSecret.delete().where(WebhookSecret.id.in_([row.id for row, _ in retired])).execute()
    return kept


def signature(secrets: list[str], body: bytes, at: int) -> str:
    """`t=` the Unix time, then a `v1=` for each secret: the hexadecimal HMAC-SHA256 of time, full stop and body."""
    signed = b"%d." % at + body
    each = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={at}", *(f"v1={digest}" for digest in each)])


def _make(vault: Vault, organization: int) -> tuple[WebhookSecret, str]:
    text = f"whsec_{new_token()}"
    return WebhookSecret.create(organization=organization, secret=vault.encrypt(text)), text


def _text(vault: Vault, row: WebhookSecret) -> str:
    try:
        return vault.decrypt(row.secret)
    except SecretError:
        return ""
