"""Where things lie, as people write it: a path, a file:// URL, or a place in a bucket."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote

from promptchain_dagster.errors import InvalidInput

_URL = re.compile(r"(file|s3|gs|az|[a-z][a-z0-9+.-]+(?=:/)):", re.IGNORECASE)
_FILE_URL = re.compile(r"[^:]+:(//(?:localhost)?)?(/(?!/)[^?#]*)")
# Dots lead out of a place, also when they are written as %2e.
_PART = r"(?!(?:\.|%2[Ee]){1,2}(?:/|$))[^/?#]+"
_CLOUD_URL = re.compile(rf"[^:]+://([A-Za-z0-9][A-Za-z0-9._-]*)((?:/{_PART})*/?)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CLOUDS = ("s3", "gs", "az")
_ALLOWED = "a folder, s3://, gs://, az://"


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket's URL, without a slash at its end, or else a folder's absolute path."""

    where: str
    in_bucket: bool


def place_of(
    text: str, what: str, *, refused: str = "can't be read from this kind of URL"
) -> Place:
    """The place that `text` names; touches neither disk nor network.

    Raises `InvalidInput`, which calls it `what`, for what is no such place. Of a URL that is
    refused only the scheme is shown: the rest may hold a password.
    """
    if not text or _CONTROL.search(text):
        raise InvalidInput(f"{what} {text!r} is empty or holds a control character")
    url = _URL.match(text)
    if url is None:
        return Place(os.path.abspath(os.path.expanduser(text)), in_bucket=False)
    scheme = url[1].lower()
    if scheme != "file" and scheme not in _CLOUDS:
        raise InvalidInput(f"{what}: {refused}: {scheme}://…; allowed: {_ALLOWED}")
    host, path = _host_and_path(scheme, text, what)
    if scheme == "file":
        return Place(os.path.abspath(unquote(path) or "/"), in_bucket=False)
    return Place(f"{scheme}://{host}{path}", in_bucket=True)


def _host_and_path(scheme: str, url: str, what: str) -> tuple[str, str]:
    """The URL's two parts; the messages show none of it, as it may hold a credential."""
    if "@" in url and scheme != "file":
        raise InvalidInput(
            f"{what} {scheme}://…: credentials don't belong in a URL; set them in the environment"
        )
    match = (_FILE_URL if scheme == "file" else _CLOUD_URL).fullmatch(url)
    if match is None:
        expected = "file:///folder" if scheme == "file" else f"{scheme}://bucket/prefix"
        raise InvalidInput(f"{what} {scheme}://…: expected {expected}, without ? and #")
    return match[1] or "", match[2].rstrip("/")
