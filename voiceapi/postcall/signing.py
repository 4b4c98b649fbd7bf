"""The secrets that sign an organization's webhooks: one, or two while its receivers change to the new one."""

from __future__ import annotations

import hashlib
import hmac

from ..errors import Conflict
from ..security import SecretError, Vault, new_token
from ..store import postcall
from ..store.database import write
from ..store.postcall import WebhookSecret

MAX_SECRETS = 2


def listed(vault: Vault, organization: int) -> list[tuple[WebhookSecret, str]]:
    """The organization's secrets, each with its text, newest first; the first one is created when it is needed.

    The text is "" for a secret that was encrypted with another secret of the service.
    """
    return [(row, _text(vault, row)) for row in postcall.webhook_secrets_of(organization)]


def signing_secrets(vault: Vault, organization: int) -> list[str]:
    """The texts of the secrets to sign with, newest first; a first secret is created here when there is none."""
    texts = [text for _, text in listed(vault, organization) if text]
    if texts:
        return texts
    with write():
        # Another thread may have created it while this one waited for the write lock.
        texts = [text for _, text in listed(vault, organization) if text]
        return texts or [_create(vault, organization)[1]]


def rotate(vault: Vault, organization: int) -> tuple[WebhookSecret, str]:
    """Create a secret, and return it with its text; the previous one signs as well until it is retired.

    :raises Conflict: when there are two already.
    """
    with write():
        if len(listed(vault, organization)) >= MAX_SECRETS:
            raise Conflict("Two secrets are in use. Retire the older one before you make another.")
        return _create(vault, organization)


def retire(vault: Vault, organization: int) -> list[tuple[WebhookSecret, str]]:
    """Delete all secrets but the newest; returns that one.

    :raises Conflict: when there is no older one.
    """
    with write():
        found = listed(vault, organization)
        if len(found) < 2:
            raise Conflict("There is no older secret to retire.")
        postcall.delete_webhook_secrets([row for row, _ in found[1:]])
    return found[:1]


def signature(secrets: list[str], body: bytes, at: int) -> str:
    """The header `t=<at>,v1=<digest>`, with a `v1` for each secret: the hexadecimal HMAC-SHA256 of `<at>.<body>`.

    :param at: Unix time of the attempt, in seconds.
    """
    signed = b"%d." % at + body
    each = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={at}", *(f"v1={digest}" for digest in each)])


def _create(vault: Vault, organization: int) -> tuple[WebhookSecret, str]:
    text = f"whsec_{new_token()}"
    return WebhookSecret.create(organization=organization, secret=vault.encrypt(text)), text


def _text(vault: Vault, row: WebhookSecret) -> str:
    try:
        return vault.decrypt(row.secret)
    except SecretError:
        return ""
