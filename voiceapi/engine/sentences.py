"""Where the sentences of a text end, in any language."""

import re

# The first of these marks ends a sentence only before a blank ("3.5"), the others, which no blank follows, anywhere.
_END = re.compile(
    r"[.!?\u2026\u06d4\u061f][\"'\u201d\u2019\u00bb)\]]*(?=\s|\Z)"
    r"|[\u3002\uff01\uff1f\u0964\u0965][\"'\u201d\u2019\u300d\u300f\uff09)\]]*|\n"
)


def last_end(text: str, longest: int) -> int:
    """Where the last sentence ends that lies within the first `longest` characters; 0 when none does."""
    end = 0
    for found in _END.finditer(text):
        if found.end() > longest:
            break
        end = found.end()
    return end


def cut(text: str, longest: int) -> str:
    """The beginning of a text, of at most `longest` characters: cut at a sentence end, else a blank, else anywhere."""
    if len(text) <= longest:
        return text
    end = last_end(text, longest) or text.rfind(" ", 0, longest + 1)
    return text[: end if end > 0 else longest].rstrip()


def whole(text: str) -> str:
    """The whole sentences of a text that breaks off; all of it when not even one is whole."""
    return text[: last_end(text, len(text)) or len(text)].rstrip()
