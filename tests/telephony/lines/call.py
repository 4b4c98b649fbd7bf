"""A call, from its carrier's side: it sends webhooks and follows our documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from voiceapi.service import Service
from voiceapi.store.database import write
from voiceapi.store.runs import SPEAKERS, Run, RunEvent, StatusCallback, Step, Turn
from voiceapi.store.telephony import PhoneNumber, RejectedCall
from voiceapi.store.workflows import Workflow

from .line import Line, Request, Verb

API = "/api/v1"
# The public URL that carriers are given; nothing listens there, requests go through the test client.
PUBLIC = "https://voice.example.org"


@dataclass
class Call:
    """A call whose webhooks go to an app's test client."""

    client: FlaskClient
    line: Line
    service: Service
    base: str = ""
    run_id: int = 0
    next: str = ""
    silence: str = ""
    transfer: str = ""

    def send(self, request: Request) -> TestResponse:
        return self.client.open(
            request.url.removeprefix(PUBLIC), method=request.method, headers=dict(request.headers), data=request.body
        )

    def hear(self, response: TestResponse) -> list[Verb]:
        """The verbs of our answer; sets the URLs that the carrier requests next."""
        assert response.status_code == 200, response.text
        verbs = self.line.read(response.data)
        self.next = self.silence = self.transfer = ""
        for verb in verbs:
            match verb.name:
                case "listen":
                    self.next = self.silence = self._url(verb.url)
                case "redirect" if self.next:
                    self.silence = self._url(verb.url)
                case "redirect":
                    self.next = self._url(verb.url)
                case "transfer":
                    self.transfer = self._url(verb.url, "/transfer")
        return verbs

    def _url(self, url: str, after: str = "") -> str:
        """A URL as the carrier requests it: without the fragment."""
        if url.startswith("#"):
            return f"{self.base}/turns/{url[1:]}{after}"
        asked, mark, fragment = url.partition("#")
        assert f"{mark}{fragment}" == self.line.retries
        return asked

    def answered(self) -> list[Verb]:
        return self.hear(self.send(self.line.webhook("turns", "answered", f"{self.base}/turns/0")))

    def says(self, text: str) -> list[Verb]:
        return self.hear(self.send(self.line.words(self.next, text)))

    def is_silent(self) -> list[Verb]:
        """The caller is silent: the carrier reports it to the listening's URL, or follows the redirect after it."""
        name = "silence" if self.silence == self.next else "answered"
        return self.hear(self.send(self.line.webhook("turns", name, self.silence)))

    def status(self, name: str, **fields: Any) -> TestResponse:
        return self.send(self.line.webhook("statuses", name, f"{self.base}/status", **fields))

    @property
    def run(self) -> Run:
        with self.service.store.session():
            return Run.get_by_id(self.run_id)

    @property
    def transcript(self) -> list[str]:
        """What was said, by either side."""
        with self.service.store.session():
            events = RunEvent.select().where(RunEvent.run == self.run_id).order_by(RunEvent.id)
            return [event.payload["text"] for event in events if event.type in SPEAKERS]

    @property
    def stored(self) -> Any:
        """All that is stored of the call."""
        with self.service.store.session():
            tables = (Turn, RunEvent, Step, StatusCallback)
            rows = [list(each.select().where(each.run == self.run_id).dicts()) for each in tables]
            return [Run.get_by_id(self.run_id).columns(), *rows]

    def follow(self, run_id: int) -> None:
        """Set the call's run and its webhook URLs."""
        with self.service.store.session():
            token = Run.get_by_id(run_id).token
        self.base, self.run_id = f"{PUBLIC}{API}/telephony/calls/{token}", run_id


def empty(service: Service) -> None:
    """Remove all workflows with their runs, and the calls that were rejected."""
    with service.store.session(), write():
        PhoneNumber.update(inbound_workflow=None).execute()
        RejectedCall.delete().execute()
        Workflow.delete().execute()
