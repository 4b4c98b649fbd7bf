"""What comes with workflows and has transactions of its own: documents, whose files are given, and campaigns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..api.schemas.campaigns import SettingsSchema
from ..campaigns import campaigns
from ..errors import NotPossible, ServiceError
from ..runs import files
from ..service import Service
from ..store import knowledge
from ..tools.knowledge import documents
from .importing import HERE, NEW, ImportedPart, ImportReport, messages
from .references import DOCUMENT
from .source import ENDED

SETTINGS = (
    *("retry_config", "max_concurrency", "schedule_config", "circuit_breaker", "calling_hours"),
    "max_attempts_per_day",
)


def find_documents(
    service: Service,
    organization: int,
    given: Iterable[Mapping[str, Any]],
    folder: Path | None,
    report: ImportReport,
    *,
    dry_run: bool,
) -> None:
    """Find the documents here that were made of the same files; the others are made of the files in the folder.

    No service gives the files of its documents. A file there counts if its content is the document's, or else its name.

    :raises NotPossible: when the folder, or a file in it, can't be read.
    """
    found = {} if folder is None else _files(folder)
    hashes = {hashlib.sha256(content).hexdigest(): content for content in found.values()}
    for document in given:
        uuid, name, file_hash = (str(document.get(each) or "") for each in ("document_uuid", "filename", "file_hash"))
        place = f"document {name!r}"
        known = knowledge.with_hash(organization, file_hash)
        content = hashes.get(file_hash, found.get(name))
        if known is not None:
            report.here[DOCUMENT, uuid] = known.document_uuid
            report.carried.append(ImportedPart("document", name, known.document_uuid, HERE, "agents search it"))
        elif content is None:
            report.leave(
                place, "No service gives the files of its documents. Put the file into the folder of --documents."
            )
        elif dry_run:
            report.here[DOCUMENT, uuid] = uuid
            report.carried.append(ImportedPart("document", name, uuid))
        else:
            mode = document.get("retrieval_mode")
            metadata = document.get("custom_metadata")
            try:
                record = documents.upload(
                    service,
                    organization,
                    name,
                    content,
                    mode if mode in documents.MODES else documents.CHUNKED,
                    metadata if isinstance(metadata, dict) else {},
                )
            except ServiceError as error:
                report.leave(place, str(error.detail))
                continue
            report.here[DOCUMENT, uuid] = record.document_uuid
            note = "" if record.processing_error is None else f"failed: {record.processing_error}"
            report.carried.append(ImportedPart("document", name, record.document_uuid, NEW, note))


def _files(folder: Path) -> dict[str, bytes]:
    """The files of a folder that may be documents, by name; longer ones can't."""
    try:
        paths = [path for path in sorted(folder.iterdir()) if path.is_file()]
        return {path.name: path.read_bytes() for path in paths if path.stat().st_size <= documents.MAX_BYTES}
    except OSError as error:
        raise NotPossible(f"{error.filename} can't be read: {error.strerror}. --documents names the folder.") from None


def store_campaign(
    service: Service,
    organization: int,
    given: Mapping[str, Any],
    contact_list: Callable[[Mapping[str, Any]], bytes],
    report: ImportReport,
    *,
    dry_run: bool,
) -> None:
    """Make a campaign with the settings and the contact list of another service's; it isn't started.

    One that has ended there is left out: here it would call everybody again. Its telephony configuration is the
    default for outbound calls.

    :param contact_list: fetches the list; it raises NotPossible when it can't.
    """
    name, state, there = str(given.get("name") or ""), given.get("state"), given.get("workflow_id")
    place = f"campaign {name!r}"
    workflow = report.workflow_ids.get(there) if isinstance(there, int) else None
    if workflow is None:
        report.leave(place, "Its workflow isn't carried over.")
        return
    if state in ENDED:
        report.leave(place, f"It is {state}; here it would call everybody again.")
        return
    same = [each for each in campaigns.listed(organization) if (each.name, each.workflow_id) == (name, workflow)]
    if same:
        report.carried.append(ImportedPart("campaign", name, same[0].id, HERE, "nothing was changed"))
        return
    settings = {member: given.get(member) for member in SETTINGS}
    for member, wrong in SettingsSchema().validate(settings).items():
        report.leave(f"{place}, {member}", f"It can't be stored, so the default counts: {messages({member: wrong})}")
        settings[member] = None
    note = "not started"
    if given.get("executed_count"):
        note = f"not started; there it has placed {given['executed_count']} calls, and here it begins anew"
    if dry_run:
        report.carried.append(ImportedPart("campaign", name, 0, NEW, note))
        return
    file_name = f"{name}.csv"
    try:
        with files.stored(organization, file_name, contact_list(given)) as key:
            wanted = {
                **SettingsSchema().load(settings),
                "name": name[:255] or "campaign",
                "workflow_id": workflow,
                "source_type": "csv",
                "source_id": key,
                "telephony_configuration_id": None,
                "strict": False,
            }
            record = campaigns.create(service, organization, wanted)
    except ServiceError as error:
        report.leave(place, str(error.detail))
        return
    report.carried.append(ImportedPart("campaign", name, record.id, NEW, note))
