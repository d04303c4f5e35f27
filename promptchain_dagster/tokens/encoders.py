"""Token counts by tiktoken, without a network; nothing is loaded before the first is asked for."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.tokens.seams import pieces
from promptchain_dagster.tokens.vocabularies import vocabulary_in_cache

if TYPE_CHECKING:
    import tiktoken

DEFAULT_ENCODING = "o200k_base"

logger = logging.getLogger(__name__)

# The encodings whose patterns the argument in `seams` is made for.
_ADDITIVE = frozenset({"o200k_base", "o200k_harmony", "cl100k_base"})
# tiktoken's pattern overflows its stack on about a million spaces (b7).
_LONGEST_AT_ONCE = 400_000

_lock = threading.Lock()
_loaded: dict[str, Encoder | str] = {}
_warned: set[str] = set()


@dataclass(frozen=True)
class Encoder:
    """Counts tokens as the encoding `name` makes them.

    `additive`: the counts of two parts that meet at a seam add up to that of the whole.
    """

    name: str
    additive: bool
    encoding: tiktoken.Encoding = field(repr=False)

    def count(self, text: str) -> int:
        """The tokens of `text`; the names of special tokens count as plain text (b1).

        Exact, but for texts over 400,000 characters in an encoding that is not additive, or with
        a run of a thousand characters without a seam: there a little off.
        """
        if len(text) <= _LONGEST_AT_ONCE:
            return len(self.encoding.encode_ordinary(text))
        return sum(len(self.encoding.encode_ordinary(piece)) for piece in pieces(text))


def get_encoder(name: str = DEFAULT_ENCODING) -> Encoder:
    """The encoder of a tiktoken encoding's name, loaded once per process.

    Raises InvalidInput for a name that tiktoken does not know, and for a vocabulary that is
    neither shipped nor in tiktoken's cache (b3); that too is remembered for the process (b4).
    """
    with _lock:
        if name not in _loaded:
            try:
                _loaded[name] = _load(name)
            except InvalidInput as error:
                _loaded[name] = str(error)
        found = _loaded[name]
    if isinstance(found, str):
        raise InvalidInput(found)
    return found


def encoding_for(
    model: str | None, encoding: str | None = None, *, default: str = DEFAULT_ENCODING
) -> tuple[Encoder, str | None]:
    """The encoder to count `model`'s tokens with, and a warning where that is a guess (b6).

    An explicit `encoding` wins. A model that tiktoken does not know is counted with the encoding
    of its name without the provider (`azure/gpt-4o`), or else with `default`; the warning, which
    names the model, is returned every time and logged once per process. Without a model (the
    embedded one) the default is used without a warning. Raises as `get_encoder` does.
    """
    if encoding is not None or model is None:
        return get_encoder(encoding or default), None
    known = _encoding_name(model)
    if known is not None:
        return get_encoder(known), None
    guess = _encoding_name(model.rsplit("/", 1)[-1]) or default
    warning = (
        f"model {model!r} is unknown to tiktoken: its tokens are counted with {guess}; "
        "set an encoding to choose another"
    )
    encoder = get_encoder(guess)
    with _lock:
        first = model not in _warned
        _warned.add(model)
    if first:
        logger.warning(warning)
    return encoder, warning


def _encoding_name(model: str) -> str | None:
    from tiktoken.model import encoding_name_for_model

    try:
        return encoding_name_for_model(model)
    except KeyError:
        return None


def _load(name: str) -> Encoder:
    import tiktoken

    with vocabulary_in_cache(name):
        return Encoder(name, name in _ADDITIVE, tiktoken.get_encoding(name))
