"""Where assets keep their values: a file for people each, and for each partition.

A place such as `posts/{partition}/outline.json` names the files of an asset under the home; text
lies in a `.md` file as it is, anything else as JSON.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from promptchain_dagster.errors import StoreError
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store import Store

PARTITION = "{partition}"
"""Stands in a place for the partition's name."""

_PLAIN = re.compile(r"[a-z0-9_-]{1,100}")


def segment_of(name: str) -> str:
    """A part of a key for any name, distinct for distinct names (f4, f5).

    Lower-case letters, digits, "_" and "-" stay as they are, since file systems that ignore case
    exist; all else becomes a readable slug and a hash behind a dot, which no plain name has.
    """
    if _PLAIN.fullmatch(name):
        return name
    slug, _, digest = document_key(name).rpartition("-")
    return f"{slug}.{digest}"


def default_place(key: Sequence[str], *, partitioned: bool) -> str:
    """The place of an asset that names none: `assets/<its key>.json`, or a folder of partitions."""
    place = "/".join(["assets", *(segment_of(part) for part in key)])
    # A part with a dot and no hash is no segment, so no other asset's key leads there.
    return f"{place}.partitions/{PARTITION}.json" if partitioned else f"{place}.json"


def file_of(place: str, partition: str | None) -> str:
    """The store's key of the value at `place`, of that partition if there are any."""
    return place if partition is None else place.replace(PARTITION, segment_of(partition))


def to_bytes(key: str, value: Any) -> bytes:
    """`value` as the file at `key` holds it."""
    if key.endswith(".md"):
        return str(value).encode()
    value = to_jsonable_python(value)
    return f"{json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)}\n".encode()


def read_value(store: Store, key: str) -> Any:
    """The text or the JSON value at `key`; raises `StoreError` where it is damaged or missing."""
    data = store.read(key)
    if data is None:
        raise StoreError(f"nothing is stored at {store.url_of(key)}")
    try:
        return data.decode() if key.endswith(".md") else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{store.url_of(key)} can't be read: {error}") from None
