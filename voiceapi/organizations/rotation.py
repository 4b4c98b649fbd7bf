"""Replaces the service's secret: everything is encrypted again, and a kill at any point leaves all of it readable."""

from __future__ import annotations

from ..security import MIN_SECRET_LENGTH, new_secret, write_secret
from ..service import Service
from ..store import encryption
from ..store.database import truncating_wal, write
from ..store.encryption import SecretCheck
from ..store.migrations import TABLES


def is_unfinished(service: Service) -> bool:
    """True if the secret was being replaced when a process was killed; `rotate` then goes on with that secret."""
    with service.store.session():
        return encryption.new_secret(service.vault) is not None


def rotate(service: Service, new: str | None = None) -> int:
    """Replace the service's secret, and return how many rows were encrypted again.

    The database holds the old and the new secret, each encrypted with the other, until all is done. So a process that
    has either of them can read everything, wherever another was killed. A secret that is from a file is replaced there
    inside a transaction: others encrypt inside transactions only, and read the file again when it has changed.

    :param new: the new secret, of at least 32 characters; None makes one. An unfinished replacement keeps its own.
    :raises ValueError: when it is shorter.
    """
    if new is not None and len(new.encode()) < MIN_SECRET_LENGTH:
        raise ValueError(f"The new secret must have at least {MIN_SECRET_LENGTH} characters.")
    vault = service.vault
    with service.store.session(), truncating_wal(service.store):
        with write():
            secret = encryption.new_secret(vault)
            if secret is None:
                secret = (new or new_secret()).encode()
                encryption.begin_rotation(vault, secret)
        with write():
            if vault.file is not None and vault.secret != secret:
                write_secret(vault.file, secret.decode(), replace=True)
            vault.replace(secret)
        tables = [table for table in TABLES if table is not SecretCheck]
        changed = 0
        # Until nothing is left: meanwhile, a row that was read before may have been copied behind the present one.
        while more := encryption.encrypt_again(vault, tables):
            changed += more
        with write():
            encryption.finish_rotation(vault)
    return changed
