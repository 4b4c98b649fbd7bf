"""The carriers' own libraries as readers of our documents: a document that one of them can't express is wrong."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from plivo import plivoxml
from twilio.twiml import TwiML
from twilio.twiml.voice_response import VoiceResponse
from vonage_voice.models.ncco import Connect, Input, Notify, Talk, Wait

Ncco = list[dict[str, Any]]
BY_ACTION = {"talk": Talk, "input": Input, "connect": Connect, "notify": Notify, "wait": Wait}
VALIDATE = """
const {validateApp} = require('@jambonz/schema');
const documents = JSON.parse(require('fs').readFileSync(0));
console.log(JSON.stringify(documents.map((each) => validateApp(each).valid)));
"""


def read_as_twilio(document: bytes) -> None:
    """Build the document again with Twilio's library, and compare.

    Its verbs are methods of the element that they are in, and the attributes that it knows are their parameters.
    """

    def build(parent: TwiML, element: ET.Element) -> None:
        method = getattr(parent, snake(element.tag))
        attributes = {snake(name): value for name, value in element.attrib.items()}
        unknown = attributes.keys() - inspect.signature(method).parameters.keys()
        assert not unknown, f"{element.tag} has no such attribute: {unknown}"
        text = [element.text] if element.text else []
        made = method(*text, **attributes)
        for inner in element:
            build(made, inner)

    root, response = ET.fromstring(document), VoiceResponse()
    assert (root.tag, root.attrib) == ("Response", {})
    for element in root:
        build(response, element)
    assert ET.canonicalize(response.to_xml()) == ET.canonicalize(document.decode())


def read_as_plivo(document: bytes) -> None:
    """Build the document again with Plivo's library, and compare; it refuses what it doesn't nest or know."""

    def build(element: ET.Element) -> plivoxml.PlivoXMLElement:
        attributes = {snake(name): value for name, value in element.attrib.items()}
        text = [element.text] if element.text else []
        made = getattr(plivoxml, f"{element.tag}Element")(*text, **attributes)
        for inner in element:
            made.add(build(inner))
        return made

    root = ET.fromstring(document)
    # The library knows only numbers of seconds for what may also be left to the carrier.
    for listening in root.iterfind("GetInput[@speechEndTimeout='auto']"):
        del listening.attrib["speechEndTimeout"]
    built = build(root).to_string(pretty=False)
    assert ET.canonicalize(built) == ET.canonicalize(ET.tostring(root, "unicode"))


def read_as_vonage(document: bytes) -> Ncco:
    """Check every action of a document with the models of Vonage's library; returns the document."""
    ncco: Ncco = json.loads(document or b"[]")
    for action in ncco:
        model = BY_ACTION[action["action"]].model_validate({**action, "from_": action.get("from")})
        dumped = json.loads(model.model_dump_json(by_alias=True, exclude_none=True))
        # The model knows every key, and has no value of its own but for this one.
        dumped.get("speech", {}).pop("saveAudio", None)
        assert dumped == action
    return ncco


def read_as_jambonz(documents: Sequence[Any]) -> list[bool]:
    """Which of these documents, as parsed JSON, npm's @jambonz/schema finds valid; skips the test without it."""
    jambonz_schema()
    done = subprocess.run(["node", "-e", VALIDATE], input=json.dumps(documents), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[bool] = json.loads(done.stdout)
    return found


@cache
def jambonz_schema() -> Path:
    """The folder of npm's @jambonz/schema; NODE_PATH may name the folder of packages. Skips the test without it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    find = "console.log(require.resolve('@jambonz/schema/package.json'))"
    found = subprocess.run([node, "-e", find], capture_output=True, text=True)
    if found.returncode:
        pytest.skip("npm's @jambonz/schema is not where Node looks for packages; NODE_PATH may name the place")
    return Path(found.stdout.strip()).parent


def read_all(carrier: str, documents: Sequence[bytes]) -> None:
    """Read all documents of a call with the library of its carrier; skips the test where that isn't installed."""
    if carrier == "jambonz":
        # Its schema knows no empty document, which acknowledges a webhook.
        verbs = [each for each in map(json.loads, documents) if each]
        assert read_as_jambonz(verbs) == [True] * len(verbs)
        return
    for document in documents:
        READERS[carrier](document)


READERS: Mapping[str, Callable[[bytes], Any]] = {
    "plivo": read_as_plivo,
    "twilio": read_as_twilio,
    "vonage": read_as_vonage,
}


def snake(name: str) -> str:
    """A name of XML as Python spells it."""
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
