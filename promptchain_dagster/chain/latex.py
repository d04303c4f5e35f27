"""LaTeX and paths whose backslash JSON has swallowed (case a8).

`\\frac` decodes to a form feed and `rac`, `C:\\temp` to a tab and `emp`.
"""

from __future__ import annotations

import re

# No text has reason to hold these, so each is a fault whatever follows.
_NEVER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NAMES = {"\x00": "NUL", "\b": "backspace", "\v": "vertical tab", "\f": "form feed"}

# Line breaks are good text unless they and what follows make a whole command, and so are tabs that
# indent a line. Commands that leave an ordinary word (\node) are not listed.
_COMMANDS = {
    "t": "times text theta tau tanh to triangle tilde tfrac textbf textit textrm texttt therefore"
    " triangleleft triangleright title textstyle",
    "n": "nabla neq neg not notin nolimits nonumber newline newcommand newpage noindent nmid nleq"
    " ngeq nless ngtr ncong natural nearrow nwarrow nexists nsim nparallel nsubset nsubseteq"
    " nsupset nsupseteq",
}
_WHOLE = "|".join(
    f"{decoded}(?:{'|'.join(word[1:] for word in _COMMANDS[letter].split())})(?![A-Za-z])"
    for letter, decoded in (("t", "\t"), ("n", "\n"))
)
# \nu, \ne and \ni leave a letter that may be a word: they count beside what only formulas have.
_SHORT = (
    r"\n[uei](?=[_^$}=)]| =)|(?<=[$({\[=+*/^_|])\n[uei](?![A-Za-z])|(?<=\S )\nu(?![A-Za-z])"
    r"|(?:(?<![A-Za-z])[A-Za-z]|[0-9)}\]$=]) \n[ei](?![A-Za-z])"
)
# A tab inside a line, as in C:\temp or \tan; a lone carriage return; C:\new and its like.
_ELSEWHERE = (
    r"(?:\A|[^\s]) *\t(?=[A-Za-z])|\r(?=[A-Za-z])"
    r"|(?<![A-Za-z])[A-Za-z]:(?:\\[^\s\\]{1,99}){0,20}\n(?:ew|otes?|ode|et|ginx|pm|tfs|vidia)(?![A-Za-z])"
)
_SWALLOWED = re.compile(f"{_WHOLE}|{_SHORT}|{_ELSEWHERE}")
_LETTERS = {"\b": "b", "\f": "f", "\t": "t", "\n": "n", "\r": "r"}
_WORD = re.compile("[A-Za-z]*")
_ESCAPED = re.compile("[\x00-\x1f]")


def swallowed_backslash(text: str) -> str | None:
    """What JSON's own escapes did to `text`, and how to write it instead; None when it is good."""
    match = _NEVER.search(text) or _SWALLOWED.search(text)
    if match is None:
        return None
    escaped = _ESCAPED.search(text, match.start())
    assert escaped is not None
    character = escaped.group()
    name = _NAMES.get(character, "control character")
    if character in "\t\n\r":
        name = {"\t": "tab", "\n": "line break", "\r": "carriage return"}[character]
    fault = f"{name} (U+{ord(character):04X}) in the text"
    if character not in _LETTERS:
        return fault
    rest = _WORD.match(text, escaped.end())
    command = _LETTERS[character] + (rest.group() if rest else "")
    return f"{fault}: a backslash in \\{command} must be written \\\\{command}"
