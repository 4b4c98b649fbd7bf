"""The sentences that the service speaks by itself, by language; a workflow may replace each of them."""

from collections.abc import Mapping
from typing import Any

DEFAULT_LANGUAGE = "en"
# By primary language subtag, then by name.
PHRASES: Mapping[str, Mapping[str, str]] = {
    "en": {
        # The model failed, and the caller is asked to speak again; or the call ends for it.
        "apology": "I'm sorry, something went wrong on my side. Could you say that again, please?",
        "failure_goodbye": "I have to end the call here. Goodbye.",
        # This service itself failed.
        "service_error": "I'm sorry, something went wrong on our side. Please try again later. Goodbye.",
        # The reply takes longer than the carrier waits.
        "wait": "One moment, please.",
        # Why an inbound call isn't taken.
        "number_not_in_service": "I'm sorry, this number is not in service. Goodbye.",
        "nobody_available": "I'm sorry, nobody can answer this number at the moment. Goodbye.",
        "lines_busy": "I'm sorry, all lines are busy. Please call again later. Goodbye.",
        # Of the scripted model.
        "not_understood": "Sorry, I didn't get that.",
        "yes_or_no": "Please say yes or no.",
        # Before a list of what the caller can say, "Sales, Support or Returns"; "or" is before the last of them.
        "you_can_say": "You can say:",
        "or": "or",
        "not_understood_goodbye": "I'm sorry, I couldn't understand you, so I'll end the call here. Goodbye.",
        # The caller asked for a person: a transfer has failed, or there is none.
        "person_unavailable": "I'm sorry, nobody can take your call at the moment.",
        "person_goodbye": "I'm sorry, I can't put you through to anybody from here, so I'll end the call. Goodbye.",
        "still_there": "Are you still there?",
        "silence_goodbye": "I can't hear you, so I'll end the call here. Goodbye.",
    },
}


def phrases(configurations: Mapping[str, Any]) -> Mapping[str, str]:
    """The phrases of a workflow with these configurations, by name.

    They are in its `language` (BCP 47), in English where that isn't known; `phrases` of the configurations, texts by
    name, replace them.
    """
    language = configurations.get("language")
    primary = language.strip().split("-")[0].lower() if isinstance(language, str) else ""
    given = configurations.get("phrases")
    own = given if isinstance(given, Mapping) else {}
    known = {**PHRASES[DEFAULT_LANGUAGE], **PHRASES.get(primary, {})}
    replaced = {name: text for name, text in own.items() if name in known and isinstance(text, str) and text.strip()}
    return {**known, **replaced}
