"""Reads what is moved from a running service with this API, by its address and a key, which goes nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..errors import InvalidFields, InvalidInput, NotPossible
from ..http_client import OWNER_OPERATOR, HTTPClient, RequestFailed
from ..strict_json import parse
from . import references
from .bundle import FORMAT, Bundle, Left, read_export

API = "/api/v1"
SECONDS = 60.0
LARGEST, LARGEST_LIST = 64 * 1024 * 1024, 10 * 1024 * 1024
PAGE = 100
MOST_PAGES = 1000
# Campaigns in these states have called everybody that they will call.
ENDED = ("completed", "failed")


@dataclass(frozen=True, slots=True)
class RemoteService:
    """A running service.

    :param url: its address, with or without `/api/v1`.
    """

    http: HTTPClient
    url: str
    key: str

    def read(self, only: Collection[int], say: Callable[[str], None]) -> Bundle:
        """Everything that can be read there; of some workflows only, with what they refer to, if their ids are given.

        :param say: called with what is being read.
        :raises NotPossible: with a sentence, when the service can't be asked, or refuses the key.
        :raises InvalidInput: when an answer has another shape than the API's.
        """
        workflows = [each for each in self._list("/workflow/fetch") if not only or each.get("id") in only]
        for id in sorted(set(only) - {each.get("id") for each in workflows}):
            raise NotPossible(f"{self.url} has no workflow with id {id}.")
        for number, workflow in enumerate(workflows, 1):
            say(f"Reading workflow {number} of {len(workflows)}")
            workflow["versions"] = self._pages(f"/workflow/{workflow.get('id')}/versions")
            # Only a voiceapi has them, since its schema 7.
            workflow["cases"] = self._list(f"/workflow/{workflow.get('id')}/cases", optional=True)
        say("Reading tools, credentials, documents and campaigns")
        bundle = read_export(
            {
                "voiceapi_export": FORMAT,
                "workflows": workflows,
                "tools": self._list("/tools/"),
                "credentials": self._list("/credentials/"),
                "documents": self._pages("/knowledge-base/documents", "documents"),
                "campaigns": self._list("/campaign/", "campaigns"),
                "left_out": [],
            }
        )
        if only:
            _keep_referenced(bundle)
        bundle.left_out += self._not_moved()
        return bundle

    def contact_list(self, campaign: Mapping[str, Any]) -> bytes:
        """The contact list of a campaign.

        :raises NotPossible: with a sentence, when it can't be fetched.
        """
        answer = self._get(f"/campaign/{campaign.get('id')}/source-download-url")
        url = answer.get("download_url") if isinstance(answer, dict) else None
        if not isinstance(url, str):
            raise NotPossible("Its contact list has no address there.")
        # Its address is signed and needs no key. It may be that of a file server beside the service, but no address
        # that only this machine can reach.
        try:
            beside = urlsplit(url).hostname == urlsplit(self.url).hostname
            reply = self.http.send("GET", url, timeout=SECONDS, max_bytes=LARGEST_LIST, trusted=beside)
        except (RequestFailed, ValueError) as error:
            raise NotPossible(f"Its contact list can't be fetched: {error}") from None
        if reply.status != 200:
            raise NotPossible(f"Its contact list can't be fetched: the answer has the status {reply.status}.")
        return reply.body

    def _not_moved(self) -> list[Left]:
        """What is there and can't be moved, or has to be entered here."""
        left = []
        for each in self._list("/organizations/telephony-configs", "configurations", optional=True):
            numbers = each.get("phone_number_count")
            left.append(
                Left(
                    f"telephony configuration {each.get('name')!r} ({each.get('provider')}, {numbers} numbers)",
                    "Its secrets aren't shown. Enter it with its numbers here: POST /organizations/telephony-configs.",
                )
            )
        models = self._get("/organizations/model-configurations/v2", optional=True)
        # A voiceapi without any shows the one that it would begin with.
        if isinstance(models, dict) and models.get("configuration") and models.get("source") != "empty":
            reason = "Its keys aren't shown. Enter it here: PUT /organizations/model-configurations/v2."
            left.append(Left("model configuration of the organization", reason))
        for each in self._list("/workflow-recordings/", "recordings", optional=True):
            reason = "Audio isn't carried over; agents speak text."
            left.append(Left(f"recording {each.get('recording_id')!r}", reason))
        return left

    def _pages(self, path: str, member: str | None = None) -> list[dict[str, Any]]:
        """All items of a list that is read by `limit` and `offset`."""
        found: list[dict[str, Any]] = []
        for _ in range(MOST_PAGES):
            page = self._list(f"{path}?limit={PAGE}&offset={len(found)}", member)
            # One that doesn't know these parameters answers the same each time.
            if not page or page == found[: len(page)]:
                return found
            found += page
            if len(page) < PAGE:
                return found
        raise InvalidInput(f"{self._origin}{API}{path} goes on after {len(found)} items; that is more than is read.")

    def _list(self, path: str, member: str | None = None, *, optional: bool = False) -> list[dict[str, Any]]:
        answer = self._get(path, optional=optional)
        if optional and answer is None:
            return []
        found = answer.get(member) if member is not None and isinstance(answer, dict) else answer
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise InvalidInput(f"{self._origin}{API}{path.partition('?')[0]} doesn't answer with a list of objects.")
        return found

    def _get(self, path: str, *, optional: bool = False) -> Any:
        """The answer to GET; None if it is `optional` and that service lacks it."""
        url = f"{self._origin}{API}{path}"
        try:
            headers = {"X-API-Key": self.key, "Accept": "application/json"}
            reply = self.http.send(
                "GET", url, headers=headers, timeout=SECONDS, max_bytes=LARGEST, trusted=True, owner=OWNER_OPERATOR
            )
        except RequestFailed as error:
            raise NotPossible(f"{error} --from names the address of a running service.") from None
        if reply.status == 200:
            try:
                return parse(reply.body.decode())
            except (UnicodeError, InvalidFields):
                raise NotPossible(
                    f"{url} doesn't answer with JSON that can be used, so it isn't such a service, or is broken."
                ) from None
        if optional and reply.status in (403, 404, 405):
            return None
        if reply.status in (401, 403):
            raise NotPossible(f"{self._origin} refuses the key; --key takes one of its API keys.")
        if 300 <= reply.status < 400:
            target = str(reply.headers.get("Location", "another address")).partition(API)[0]
            raise NotPossible(f"{self._origin} leads to {target}; give that address to --from.")
        raise NotPossible(f"{url} answers with the status {reply.status}, so it isn't such a service, or is broken.")

    @property
    def _origin(self) -> str:
        return self.url.rstrip("/").removesuffix(API)


def _keep_referenced(bundle: Bundle) -> None:
    """Keep only what the workflows refer to: tools, documents, credentials; and their campaigns."""
    definitions = [version.workflow_json for workflow in bundle.workflows for version in workflow.versions]
    used = {(each.kind, each.uuid) for definition in definitions for each in references.in_definition(definition)}
    bundle.tools = [each for each in bundle.tools if (references.TOOL, each.get("tool_uuid")) in used]
    used |= {
        (each.kind, each.uuid)
        for tool in bundle.tools
        if isinstance(tool.get("definition"), dict)
        for each in references.in_tool(tool["definition"])
    }
    bundle.credentials = [each for each in bundle.credentials if (references.CREDENTIAL, each.get("uuid")) in used]
    bundle.documents = [each for each in bundle.documents if (references.DOCUMENT, each.get("document_uuid")) in used]
    ids = {workflow.id for workflow in bundle.workflows}
    bundle.campaigns = [each for each in bundle.campaigns if each.get("workflow_id") in ids]
