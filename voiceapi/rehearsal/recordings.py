"""Recordings of runs, calls and text chats alike."""

from __future__ import annotations

from dataclasses import replace

from ..service import Service
from ..store.runs import Run
from . import chat_recording, recording
from .recording import Recording


def of_run(service: Service, run: Run) -> Recording:
    """The recording of a run, as far as it has come; call it in a session.

    :raises NotPossible: with a sentence, when there is none, or it can't be read or followed.
    """
    found = chat_recording.of_chat(run) if run.mode == "textchat" else recording.of_call(run)
    # The replies of a host's model may look like those of the scripted one, which name no model.
    return found if service.model is None else replace(found, speaker="recorded")
