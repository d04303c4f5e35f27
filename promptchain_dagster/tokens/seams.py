r"""Where a text can be cut so that the token counts of its parts add up to that of the whole.

A tokenizer first cuts a text into pieces by a pattern, reading from left to right, and then each
piece on its own into tokens. Counts therefore add up at every place where a piece ends, whatever
stands further left or right. By the patterns of o200k and cl100k a piece always ends

- between a visible character and a space: no piece holds that pair;
- after a line end that a visible character other than "/" follows: `\s*[\r\n]+` ends at the last
  line end of the white space it meets, and what may follow line ends inside a piece is "/" alone;
- between a letter or a digit and a full-width punctuation mark, for text without spaces.

A place that cuts nothing else may be inside a piece: there the counts only nearly add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SEAM = re.compile(r"\S(?= )|\n(?=[^\s/])|[^\W_](?=[，。、．！？；：])")

LONGEST = 1_000
_SLICE = 64


def cut_up(text: str, start: int, end: int) -> Iterator[tuple[int, bool]]:
    """The ends of parts of at most 1,000 characters from `start`, the last one left out.

    With each, whether it is a seam; a long run without any is cut into short slices.
    """
    while end - start > LONGEST:
        seam = SEAM.search(text, start + LONGEST // 2, start + LONGEST)
        if seam is not None:
            start = seam.end()
            yield start, True
            continue
        for _ in range(LONGEST // 2 // _SLICE):
            start += _SLICE
            yield start, False


def pieces(text: str) -> Iterator[str]:
    """`text` in parts of at most 1,000 characters, cut at seams where there are any."""
    start = 0
    for end, _ in cut_up(text, 0, len(text)):
        yield text[start:end]
        start = end
    yield text[start:]
