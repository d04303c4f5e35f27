"""A fuzzer's bytes as text, and as texts that repeat until what is not linear shows."""

from __future__ import annotations

MOST = 50_000
"""Characters of a repeated text at most."""

# Neither byte stands in UTF-8, so both are free to have a meaning here.
_REPEATED = b"\xff"
_NEXT = b"\xfe"


def texts_of(data: bytes, count: int) -> list[str]:
    """`count` texts; those that the bytes do not tell are empty."""
    parts = data.split(_NEXT, count - 1)
    return [text_of(part) for part in parts] + [""] * (count - len(parts))


def text_of(data: bytes, most: int = MOST) -> str:
    """UTF-8, lone surrogates too; `FF n FF unit FF rest` is the unit 64 n times, then the rest."""
    if data.startswith(_REPEATED) and len(data) > 4:
        unit, _, rest = data[2:].lstrip(_REPEATED).partition(_REPEATED)
        if unit:
            times = min(64 * data[1], most // len(unit))
            return _decoded(unit) * times + _decoded(rest)
    return _decoded(data)


def refused(error: Exception, by_name: str) -> None:
    """A refusal says what it refuses."""
    assert by_name in str(error), error


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
