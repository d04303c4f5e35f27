"""What of a model's reply is the summary: not its lead-in, not its word that nothing changes (d1).

Models that find nothing to add say so instead of repeating the summary, and models that do repeat
it announce it. A remark is told by what it says of the summary or of the part just read: "the
existing summary remains valid", "this part adds nothing new". Whatever is in doubt is a summary.
English only.
"""

from __future__ import annotations

import re

MAX_REMARK_CHARACTERS = 400
"""A remark about the summary is shorter; whatever is longer is a summary."""

# All patterns are for text in lower case without emphasis, its quotes straight.
_WHICH = (
    "(?:existing|current|previous|prior|earlier|original|running|updated|refined|revised|final|new"
    "|given|provided|above|overall|latest|last|next|short(?:er|ened)|con(?:cise|densed)|compressed"
    "|additional)"
)
_SUMMARY = rf"(?:(?:the|this|your|my|our|an?) )?(?:{_WHICH} )*summary\b(?: so far| above| itself)?"
_PIECE = (
    r"(?:part|chunk|section|passage|excerpt|context|segment|portion|page|material|text|content"
    r"|information)\b(?: \d+)?(?: of \d+)?"
)
_PART = rf"(?:(?:the|this|that) )?(?:{_WHICH} )*{_PIECE}"
_NEW = "(?:new|additional|further|relevant|substantive|significant|meaningful|useful)"
_FACTS = rf"(?:{_NEW} )+(?:information|details?|content|facts?|material|points?|context)"
_ADD = "(?:add|contain|provide|introduce|offer|include|bring|contribute)"
_CHANGE = "(?:change|update|edit|revise|modify|adjust|alter|refine|expand|add)"
_CHANGED = "(?:changed|updated|edited|revised|modified|adjusted|altered|added)"
_CHANGES = "(?:change|update|edit|revision|modification|addition|adjustment|alteration)s?"
_NO_CHANGES = (
    rf"no (?:other |further |additional |new |more |major )*{_CHANGES}(?:,? or {_CHANGES})*"
)
_NEEDED = "(?:needed|necessary|required|warranted)"
_WERE = "(?:is|are|was|were|have been)"
_NOT = "(?:(?:do|does|did|is|was|has)(?: not|n't)|cannot|can't)"
_STILL = "(?:(?:already|still|also|therefore|thus|fully|completely) )*"
_STATE = (
    "(?:unchanged|unaltered|unmodified|intact|the same(?: as [^,;.]*)?|as (?:it )?(?:is|was)"
    "|accurate|valid|sufficient|complete|comprehensive|adequate|correct|current|up[ -]to[ -]date"
    "|applicable|fine|(?:under|within|below) [^,;.]*)"
)
_IS = rf"(?:(?:is|remains|stays|has been|(?:can|should|will) (?:be|remain|stay)) {_STILL})"

_STANDS = (
    rf"{_STILL}(?:(?:{_IS}(?:left |kept )?{_STATE}(?:,? and {_STILL}{_STATE})*|unchanged|stands"
    r"(?: as (?:it )?is)?)(?= ?[,;:.)–—-]| ?$| (?:as|because|since|given|after|and|so|here)\b)"
    rf"|{_NOT} (?:need|require|warrant|been {_CHANGED}|{_CHANGED})\b|(?:needs|requires) no\b"
    rf"|(?:covers|captures|reflects|includes|contains) {_PART})"
)
_LEFT = (
    rf"i(?:'ve| have)? (?:therefore )?(?:(?:left|kept) {_SUMMARY} {_STATE}"
    rf"|made {_NO_CHANGES} to {_SUMMARY})"
)
_OF_SUMMARY = (
    rf"(?:^|[,;:–—-] ?|\b(?:so|thus|therefore|and) )(?:{_SUMMARY}:? {_STANDS}|{_LEFT}"
    rf"|{_NO_CHANGES} (?:(?:{_WERE} )?(?:{_NEEDED}|made) )?(?:to|in|for) {_SUMMARY}"
    rf"|(?:there is )?no need to {_CHANGE} {_SUMMARY}"
    rf"|nothing (?:needs to be |was |is )?{_CHANGED} (?:to|in) {_SUMMARY})"
)
_OF_PART = (
    rf"^(?:since |as |because )?{_PART} (?:(?:only |also )?{_ADD}s? (?:nothing(?: {_NEW})?"
    rf"|no {_FACTS})|{_NOT} {_ADD} (?:anything(?: {_NEW})?|(?:any )?{_FACTS})"
    rf"|(?:[^,;.]* )?{_NOT} (?:{_CHANGE}|affect|require|warrant) [^,;.]*{_SUMMARY})"
    rf"(?: to {_SUMMARY})?(?= ?[,;.)]| ?$)"
)
_NOTHING_NEEDED = rf"{_NO_CHANGES} (?:(?:is|are) )?{_NEEDED}"
_BARE = (
    rf"(?:{_NO_CHANGES}(?: (?:{_WERE} )?(?:{_NEEDED}|made))?"
    rf"|nothing (?:needs|has) to be {_CHANGED}|(?:there is |there's )?(?:no {_FACTS}|nothing"
    rf"(?: new| else| more)?)(?: to {_CHANGE}| to include| in {_PART})+)"
)
_REMARK = re.compile(rf"{_OF_SUMMARY}|{_OF_PART}|^{_NOTHING_NEEDED}$")
_BARE_REMARK = re.compile(rf"{_BARE}|(?:this|the {_WHICH}) {_PIECE} [^.]*[,;] (?:so )?{_BARE}")
_NO_REMARK = re.compile(r"\b(?:but|except|however|although|though|apart from|other than)\b")
# Goes with a remark, and is none without one.
_BESIDE = re.compile(
    rf"(?:since |as )?(?:(?:this|that|the {_WHICH}|{_SUMMARY}) |the (?:part|chunk|passage|excerpt)"
    r"|part \d|it (?:already |still |only )|(?:sure|okay|certainly)$"
    r"|i(?:'ve| have)? (?:re)?(?:view|read))"
)
_ONE_WORD = re.compile(
    "(?:none|nothing|no|n/?a|not applicable|same(?: as (?:above|before))?|unchanged"
    "|nothing changed|nothing new)"
)
_BEFORE = (
    "(?:sure|certainly|okay|ok|of course|understood"
    r"|(?:since|as|because|based on|after|given) [^:.\n]*)[,.!]* "
)
_ANNOUNCES = re.compile(
    rf"(?:{_BEFORE})?(?:here it is(?: again)?|(?:here(?: is|'s)|below is|(?:the )?following is) "
    rf"(?:(?:the |your |my )?(?:original|{_WHICH} version)(?: again)?|{_SUMMARY}[^:.]*)"
    rf"|{_SUMMARY} (?:is|reads|is as follows)"
    rf"|i(?:'ve| have) (?:updated|revised|refined|shortened|condensed) {_SUMMARY}[^:.]*)"
)
_TITLE = re.compile(rf"{_SUMMARY}(?: of {_PART})?(?: \([^)]*)?")
_FIRST_LINE = re.compile(r"[^:\n]{1,300}(?:\n|:[*_]{0,3}(?=\s|\Z))")
_FIRST_SENTENCE = re.compile(r"[^.\n]{1,300}(?:\.(?=\s)|\n)")
_LONGEST_LINE = 301  # with the line end before it
_SENTENCES = re.compile(r"[.!?]+[)*_]*(?:\s+|\Z)|\n+")
_IN_TAGS = re.compile(r"<(\w*summary\w*)>((?:(?!</?\1>).)*)</\1>", re.DOTALL | re.IGNORECASE)
_MARKS = re.compile(r"[*_#>\[\]\"“”]+")


def summary_in(reply: str, earlier: str = "") -> str | None:
    """The summary that `reply` holds; None where it only says that nothing needs changing.

    A reply such as "None." says that only where there is an `earlier` summary to keep.
    """
    text = _out_of_tags(sendable(reply).strip())
    if _says_no_change(text) or (earlier and _ONE_WORD.fullmatch(_plain(text))):
        return None
    # A remark, an announcement and a title may follow one another.
    while end := _end_of_lead_in(text):
        text = _out_of_tags(text[end:].strip())
        if not text or _says_no_change(text):
            return None
    return text[: _start_of_closing_remarks(text)] or None


def sendable(text: str) -> str:
    """`text` without what can't be sent on: it would stop every later run at this chunk."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _out_of_tags(text: str) -> str:
    """`text` without the one pair of summary tags that the whole of it stands in."""
    whole = _IN_TAGS.fullmatch(text)
    return whole[2].strip() if whole else text


def _says_no_change(text: str) -> bool:
    """Whether every sentence is a remark or goes with one, and one at least is a remark."""
    if len(text) > MAX_REMARK_CHARACTERS:
        return False
    sentences = [plain for one in _SENTENCES.split(text) if (plain := _plain(one))]
    remarks = [one for one in sentences if _is_remark(one) or _BARE_REMARK.fullmatch(one)]
    return bool(remarks) and all(one in remarks or _BESIDE.match(one) for one in sentences)


def _end_of_lead_in(text: str) -> int:
    """Where the lead-in that `text` begins with ends; 0 where it begins with none."""
    first = _FIRST_LINE.match(text)
    if first:
        plain = _plain(first[0])
        if _ANNOUNCES.fullmatch(plain) or _TITLE.fullmatch(plain):
            return first.end()
    first = _FIRST_SENTENCE.match(text)
    return first.end() if first and _is_remark(_plain(first[0])) else 0


def _start_of_closing_remarks(text: str) -> int:
    """Where what goes before the remarks on the last lines of `text` ends."""
    end = len(text)
    while (line_end := text.rfind("\n", 0, end)) >= 0:
        if end - line_end > _LONGEST_LINE or not _closes(text[line_end:end].strip()):
            break
        # Of a model that says one thing over and over, no line is looked at twice.
        end = line_end
        while text[end - 1].isspace():
            end -= 1
    return end


def _closes(line: str) -> bool:
    """Whether a last line is a remark: one of the summary, or any in brackets."""
    in_brackets = line.strip("*_").startswith(("(", "["))
    plain = _plain(line)
    return _is_remark(plain) or (in_brackets and _BARE_REMARK.fullmatch(plain) is not None)


def _is_remark(sentence: str) -> bool:
    found = _REMARK.search(sentence)
    return found is not None and not _NO_REMARK.search(sentence, found.end())


def _plain(text: str) -> str:
    """`text` in lower case on one line, without emphasis, brackets and the stop at its end."""
    plain = " ".join(_MARKS.sub(" ", text.replace("’", "'")).lower().split())
    return plain.strip(" ():.!,;").removeprefix("note: ")
