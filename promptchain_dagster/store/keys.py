"""Which names an object may have: the same in every store, and none that leads out of it."""

from __future__ import annotations

import re

from promptchain_dagster.errors import InvalidInput

MAX_KEY = 800  # characters; S3 ends at 1,024 bytes, of which the home's own prefix takes some
PROBE = "probe-"
"""How an object begins, at the top, that only shows whether the home can be written."""

_SEGMENT = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}"
_KEY = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_PROBE = re.compile(PROBE + "[0-9a-f]{16}")
_KEY_RULE = (
    f"a key is at most {MAX_KEY} characters: parts of 1 to 200 of A-Z a-z 0-9 . _ -, "
    "none starting with a dot, joined by /"
)


def check_key(key: str) -> str:
    if len(key) > MAX_KEY or not _KEY.fullmatch(key):
        raise InvalidInput(f"key {key[:MAX_KEY]!r} is refused: {_KEY_RULE}")
    return key


def check_prefix(prefix: str) -> str:
    if not prefix.endswith("/"):
        raise InvalidInput(f"prefix {prefix[:MAX_KEY]!r} is refused: it must end in /")
    return check_key(prefix[:-1])


def is_probe(name: str) -> bool:
    return _PROBE.fullmatch(name) is not None


def is_key(name: str) -> bool:
    return len(name) <= MAX_KEY and _KEY.fullmatch(name) is not None
