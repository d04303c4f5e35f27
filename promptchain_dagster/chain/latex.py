"""LaTeX whose backslash JSON has swallowed: `\\frac` decoded to a form feed and `rac` (case a8)."""

from __future__ import annotations

import re

# No text has reason to hold these, so each is a fault whatever follows.
_NEVER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NAMES = {"\x00": "NUL", "\b": "backspace", "\v": "vertical tab", "\f": "form feed"}

# Tabs and line breaks are good text unless they and what follows make a whole command. Commands
# that leave an ordinary word after them (\tan, \node) or a single letter (\nu) are not listed.
_COMMANDS = {
    "t": "times text theta tau tanh to triangle tilde tfrac textbf textit textrm texttt therefore"
    " triangleleft triangleright title textstyle",
    "n": "nabla neq neg not notin nolimits nonumber newline newcommand nmid nleq ngeq ncong"
    " natural nearrow nwarrow nexists nsim nparallel nsubseteq nsupseteq",
    "r": "rho right rightarrow rangle rceil rfloor rm rbrace rbrack rightharpoonup rVert rvert"
    " rightleftharpoons rtimes",
}
_SWALLOWED = re.compile(
    "|".join(
        f"{decoded}(?:{'|'.join(word[1:] for word in _COMMANDS[letter].split())})(?![A-Za-z])"
        for letter, decoded in (("t", "\t"), ("n", "\n"), ("r", "\r"))
    )
)
_LETTERS = {"\b": "b", "\f": "f", "\t": "t", "\n": "n", "\r": "r"}
_WORD = re.compile("[A-Za-z]*")


def swallowed_backslash(text: str) -> str | None:
    """What JSON's own escapes did to `text`, and how to write it instead; None when it is good."""
    match = _NEVER.search(text) or _SWALLOWED.search(text)
    if match is None:
        return None
    character = match.group()[0]
    name = _NAMES.get(character, "control character")
    if character in "\t\n\r":
        name = {"\t": "tab", "\n": "line break", "\r": "carriage return"}[character]
    fault = f"{name} (U+{ord(character):04X}) in the text"
    if character not in _LETTERS:
        return fault
    rest = _WORD.match(text, match.start() + 1)
    command = _LETTERS[character] + (rest.group() if rest else "")
    return f"{fault}: a backslash in \\{command} must be written \\\\{command}"
