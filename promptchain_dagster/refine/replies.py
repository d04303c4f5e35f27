"""What of a model's reply is the summary: not its lead-in, not its word that nothing changes (d1).

Models that find nothing to add say so instead of repeating the summary, and models that do repeat
it announce it. Such a remark is told by its words: each is one for talking about a summary, and
none says anything of the document. English only.
"""

from __future__ import annotations

import re

MAX_REMARK_CHARACTERS = 400
"""A remark about the summary is shorter; whatever is longer is a summary."""

_VOCABULARY = """
a about above accurate accurately add added adding addition additional additions adds
adequate adequately adjust adjusted adjustment adjustments affect affects again all alone
already also alter alteration alterations altered am amendment amendments an and any
anything applicable applied apply are as asked at based be because been before below both
brief briefly bring brings but by call called can captured captures certainly change changed
changes changing chunk chunks come comes complete completely comprehensive compress
compressed compression concise condensed consequently contain contained contains content
contents context continue continues contradict contradicts contribute contributes correct
cover covered covering covers current currently d date detail details did do document does
doesn don due earlier edit edited edits enough everything excerpt existing fact facts far
final fine first following for found from full fully further future given good got had has
have having hence here how however i if ignored impact in include included includes
including incorporate incorporated incorporates incorporating information instructed
instructions intact introduce introduced introduces irrelevant is isn it its itself just
keep keeping keeps kept key last latest leave leaving left length less limit ll longer made
main major make makes making material may meaningful meets mention mentioned mentions merged
minor modification modifications modified modify more my necessary need needed needing needs
neither new next no none nor not nothing now number of offer offers ok okay old on one only
or original other otherwise over overall page part parts passage pertinent please point
points portion present previous previously prior provide provided provides reads redundant
refine refined refinement refinements reflect reflected reflects relevant remain remained
remaining remains repeat repeated repeating request requested require required requires
return returned returning revise revised revising revision revisions running s same section
sections segment shorten shortened shortening shorter should shown significant significantly
simply since skip skipped skipping so stand stands stay stays still substantial substantive
sufficient sufficiently summaries summary sure t text than thank thanks that the there
therefore thereof these they this those thus time to unaltered unchanged under understood
until up update updated updates updating useful useless valid ve version warrant warranted
warrants was wasn we well were what which will with within without word words would yes yet
you your
"""
_WORDS = frozenset(_VOCABULARY.split())
"""The words for talking about a summary; a remark has no other."""

_TOPIC = frozenset(["here", "summaries", "summary"])
_NO_CHANGE_WORDS = """
adequate already complete comprehensive intact irrelevant neither no none nor not nothing redundant
same sufficient t unaltered unchanged
"""
_NO_CHANGE = frozenset(_NO_CHANGE_WORDS.split())
"""A remark that nothing changes holds one of these and some other word."""

_AS_IT_IS = frozenset(["remain", "remains", "left", "kept", "stands", "stays"])
"""Or one of these, said of the summary."""

_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(
    r"\b(?:part|chunk|section|page)s?\W{0,2}\d+(?: of \d+)?|\d+ words\b", re.IGNORECASE
)
_ANNOUNCEMENT = re.compile(r"[^:\n]{1,300}(?:\n|:[*_]{0,3}(?=\s|$))")
_SENTENCE = re.compile(r"[^.\n]{0,200}\bsummary\b[^.\n]{0,100}\.(?=\s)", re.IGNORECASE)
_LAST_LINE = re.compile(r"\n[^\n]{1,300}\Z")


def summary_in(reply: str) -> str | None:
    """The summary that `reply` holds; None where it only says that nothing needs changing."""
    # What can't be sent on or written down would stop every later run at this chunk.
    text = reply.replace("\0", "").encode(errors="replace").decode().strip()
    # A remark, an announcement and a title may follow one another.
    while end := _end_of_lead_in(text):
        text = text[end:].strip()
    while (last := _LAST_LINE.search(text)) and _says_no_change(last[0]):
        text = text[: last.start()].strip()
    return None if not text or _says_no_change(text) else text


def _end_of_lead_in(text: str) -> int:
    """Where the lead-in that `text` begins with ends; 0 where it begins with none."""
    first = _ANNOUNCEMENT.match(text)
    if first and (_remark_words(first[0]) & _TOPIC or _says_no_change(first[0])):
        return first.end()
    first = _SENTENCE.match(text)
    return first.end() if first and _says_no_change(first[0]) else 0


def _says_no_change(text: str) -> bool:
    words = _remark_words(text)
    if "summary" in words and words & _AS_IT_IS:
        return True
    return words == frozenset(["unchanged"]) or (len(words) > 1 and bool(words & _NO_CHANGE))


def _remark_words(text: str) -> frozenset[str]:
    """The words of a remark about the summary; none where `text` says anything else.

    A number says something, unless it counts parts or words.
    """
    if len(text) > MAX_REMARK_CHARACTERS:
        return frozenset()
    plain = _NUMBERED.sub(" ", text.replace("_", " ")).lower()
    words = frozenset(_WORD.findall(plain))
    return words if words <= _WORDS else frozenset()
