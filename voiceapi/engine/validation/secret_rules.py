"""The rule on secrets in clear text: keys and tokens in texts that are shown, logged, or sent to a language model.

Only what can hardly be anything else counts: the keys of known services, private keys, and literal values of what is
called a password, a token or a key.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..graph import data_of
from .finding import Finding
from .outline import Outline

# Members whose values are encrypted where they are stored, and are masked in answers: at the top of a node's data, and
# at any depth of the configurations.
_OF_A_NODE = re.compile(r"(?:qa|noveum|paygent|tuner)_api_key|custom_headers")
_OF_CONFIGURATIONS = re.compile("api_key|credentials|aws_access_key|aws_secret_key")
_NOTHING = re.compile("(?!)")
_KEYS = re.compile(
    # Of OpenAI and those who imitate it, Anthropic, Stripe, GitHub, GitLab, Slack, Google, AWS, Twilio, SendGrid,
    # Hugging Face, npm, and of this service. Slovak voices begin with sk-SK-.
    r"\b(?:sk-(?!SK-)(?:[a-z]+-)*[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|"
    r"github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abposr]-[\w-]{10,}|AIza[\w-]{35}|(?:AKIA|ASIA)[A-Z0-9]{16}|"
    r"SG\.[\w-]{16,}\.[\w-]{16,}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{30,}|va_[A-Za-z0-9_-]{43}\b|"
    # A signed token, not within a longer word, since a text of many beginnings would be searched for long; and the
    # beginning of a private key.
    r"(?<![\w-])eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,})|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"
)
_NAME = r"(?:api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|client[_-]?secret|secret|password|passwd|token)"
# A name and a value with a digit in it: "password: correct7horse", "?token=abc12345".
_NAMED = re.compile(
    rf"(?i:\b{_NAME}[\"']?\s*[=:]\s*[\"']?|\bBearer\s+)(?=[A-Za-z_+/.~-]*[0-9])([A-Za-z0-9_+/.~=-]{{8,}})"
)
_IS_NAME = re.compile(rf"(?:\w*[_-])?{_NAME}", re.IGNORECASE)
_LITERAL = re.compile(r"[^\s{}*]{8,}")
# Without any of these, in small letters, a definition holds no secret: most needn't be walked through.
_HINTS = (
    *("sk-", "sk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza", "akia"),
    *("asia", "sg.", "hf_", "npm_", "va_", "eyj", "private key", "key", "token", "secret", "passw", "bearer"),
)
MESSAGE = "A secret stands here in clear text. A credential, or a field that is made for it, keeps it encrypted."


def secret_findings(outline: Outline, configurations: Mapping[str, Any], variables: Mapping[str, Any]) -> list[Finding]:
    """Return a finding for each text of a definition, its configurations and its variables that holds a secret."""
    whole = json.dumps((outline.definition, configurations, variables), default=str).lower()
    if not any(each in whole for each in _HINTS):
        return []
    found: list[Finding] = []
    places: list[tuple[Any, list[dict[str, Any]]]] = [("node", [*outline.by_id.values()]), ("edge", outline.edges)]
    for kind, items in places:
        for item in items:
            if isinstance(id := item.get("id"), str):
                places_in = _in(
                    {name: each for name, each in data_of(item).items() if not _OF_A_NODE.fullmatch(name)}, "data"
                )
                found += [Finding(kind, id, place, MESSAGE, "clear-text-secret") for place in places_in]
    for name, value, encrypted in (
        ("workflow_configurations", configurations, _OF_CONFIGURATIONS),
        ("template_context_variables", variables, _NOTHING),
    ):
        found += [
            Finding("workflow", None, place, MESSAGE, "clear-text-secret") for place in _in(value, name, encrypted)
        ]
    return found


def _in(value: Mapping[str, Any], place: str, encrypted: re.Pattern[str] = _NOTHING) -> Iterator[str]:
    """Yield the places of the texts that hold a secret, but for members that are encrypted."""
    ahead: list[tuple[str, str, Any]] = [("", place, value)]
    while ahead:
        name, where, each = ahead.pop()
        if isinstance(each, str):
            if _KEYS.search(each) or _NAMED.search(each) or (_IS_NAME.fullmatch(name) and _is_literal(each)):
                yield where
        elif isinstance(each, Mapping):
            below = [(key, f"{where}.{key}", inner) for key, inner in each.items() if not encrypted.fullmatch(key)]
            ahead += reversed(below)
        elif isinstance(each, list):
            ahead += reversed([("", f"{where}.{index}", inner) for index, inner in enumerate(each)])


def _is_literal(text: str) -> bool:
    """Whether the value of a member that is named like a secret is one: a text without blanks that has a digit."""
    return _LITERAL.fullmatch(text) is not None and any(letter.isdigit() for letter in text)
