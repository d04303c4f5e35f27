"""Briefs as people write them: YAML files where `PROMPTCHAIN_BRIEFS` says, a folder or a URL."""

import os
from collections.abc import Iterator
from typing import Any, Protocol

import yaml
from pydantic import ValidationError

from promptchain_dagster.blog_post import Brief
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.files import open_regular
from promptchain_dagster.refine.documents import document_key
from promptchain_dagster.store.bucket import ObjectReader
from promptchain_dagster.store.places import place_of

VARIABLE = "PROMPTCHAIN_BRIEFS"
MAX_BYTES = 64 * 1024
MAX_BRIEFS = 10_000
_SUFFIXES = (".yaml", ".yml")
_OF_A_VALUE = (ArithmeticError, AttributeError, LookupError)
"""What the parser raises for a value that does not go with its tag."""
_PLAIN_MAPPING = "tag:yaml.org,2002:map"


class _Files(Protocol):
    """Where brief files lie. Methods raise `InvalidInput`."""

    root: str

    def paths(self) -> Iterator[str]: ...

    def read(self, path: str) -> bytes: ...


class BriefFolder:
    """The briefs in `folder`, a path or a URL, at any depth: `.yaml` and `.yml` files, none hidden.

    A brief's key is a readable slug and a hash of its path in the folder (f3, f4). A link that
    leads out of the folder is no brief. Methods raise `InvalidInput`, naming the file.
    """

    def __init__(self, folder: str | None = None) -> None:
        folder = folder or os.environ.get(VARIABLE, "").strip()
        if not folder:
            raise InvalidInput(f"{VARIABLE} is not set; it names the folder or URL with the briefs")
        place = place_of(folder, "briefs")
        self._files: _Files = _InBucket(place.where) if place.in_bucket else _InFolder(place.where)

    def keys(self) -> dict[str, str]:
        """The path, relative to the folder, of each brief by its key, sorted by path."""
        paths: list[str] = []
        for path in self._files.paths():
            if len(paths) == MAX_BRIEFS:
                raise InvalidInput(f"briefs: over {MAX_BRIEFS:,} in {self._files.root!r}")
            paths.append(path)
        return {document_key(path): path for path in sorted(paths)}

    def find(self, key: str) -> Brief:
        """The brief of that key, as its file says now."""
        path = self.keys().get(key)
        if path is None:
            raise InvalidInput(f"no brief in {self._files.root!r} has the key {key!r}")
        return self.read(path)

    def read(self, path: str) -> Brief:
        """The brief at `path` in the folder."""
        return parse_brief(self._files.read(path), path)


class _InFolder:
    def __init__(self, root: str) -> None:
        self.root = root
        if not os.path.isdir(root):
            raise InvalidInput(f"briefs: {root!r} is no folder; set {VARIABLE}")

    def paths(self) -> Iterator[str]:
        inside = os.path.join(os.path.realpath(self.root), "")
        for place, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                path = os.path.join(place, name)
                if name.startswith(".") or not name.lower().endswith(_SUFFIXES):
                    continue
                # A pipe has no end.
                if os.path.isfile(path) and os.path.realpath(path).startswith(inside):
                    yield os.path.relpath(path, self.root).replace(os.sep, "/")

    def read(self, path: str) -> bytes:
        try:
            full, what = os.path.join(self.root, path), f"brief {path!r}"
            with open_regular(full, what, within=self.root) as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise InvalidInput(f"brief {path!r} can't be read: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise InvalidInput(f"brief {path!r} has over {MAX_BYTES:,} bytes")
        return data


class _InBucket:
    def __init__(self, root: str) -> None:
        self.root = root
        self._objects = ObjectReader(root, "briefs")

    def paths(self) -> Iterator[str]:
        listed = self._objects.list(_SUFFIXES)
        if listed.unlisted:
            raise InvalidInput(f"briefs: {listed.unlisted[0]!r} in {self.root!r} can't be listed")
        return (one.path for one in listed.found)

    def read(self, path: str) -> bytes:
        return self._objects.read(path, MAX_BYTES, f"brief {path!r}")


def parse_brief(data: bytes, name: str) -> Brief:
    """The brief in a YAML file's bytes; `InvalidInput` names the file, the field, the value."""
    try:
        return Brief.model_validate(_mapping(data, name))
    except ValidationError as error:
        told = "; ".join(_problem(detail) for detail in error.errors())
        raise InvalidInput(f"brief {name!r}: {told}") from None


def _mapping(data: bytes, name: str) -> dict[str, Any]:
    try:
        loader = yaml.SafeLoader(data.decode("utf-8-sig"))
        node = loader.get_single_node()
        _check(node, name)
        return {str(key): value for key, value in loader.construct_document(node).items()}
    except InvalidInput:
        raise
    except UnicodeDecodeError:
        raise InvalidInput(f"brief {name!r} is not UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError, *_OF_A_VALUE) as error:
        reason = " ".join(str(error).split())[:200] or "a value does not go with its tag"
        raise InvalidInput(f"brief {name!r} is no YAML: {reason}") from None


def _check(node: yaml.Node | None, name: str) -> None:
    """A brief is plain values under plain keys, seen before anything is made of them: what is
    nested may refer to itself, or grow without bounds when it is merged."""
    if not isinstance(node, yaml.MappingNode) or node.tag != _PLAIN_MAPPING:
        raise InvalidInput(f"brief {name!r} must be a mapping: brief, audience, …")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise InvalidInput(f"brief {name!r}: a key must be a plain name")
        if not isinstance(value, yaml.ScalarNode):
            raise InvalidInput(f"brief {name!r}: {key.value} must be one plain value")
    written = [key.value for key, _ in node.value]
    # YAML itself would let the last one win (a10).
    if twice := sorted({key for key in written if written.count(key) > 1}):
        raise InvalidInput(f"brief {name!r}: {', '.join(twice)} stands there twice")


def _problem(detail: Any) -> str:
    message = str(detail["msg"]).removeprefix("Value error, ")
    if not detail["loc"]:
        return message  # of the whole, and names its fields
    field = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "missing":
        return f"{field} is missing"
    return f"{field}: {message}, got {_shown(detail['input'])}"


def _shown(value: object) -> str:
    try:
        return repr(value)[:100]
    except ValueError:  # Python's limit on the digits of an integer
        return "a number of thousands of digits"
