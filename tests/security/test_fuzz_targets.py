"""The fuzzer's targets without the fuzzer: on every kept input, and on what hypothesis comes up
with. `make fuzz` looks further."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz.inputs import text_of, texts_of
from fuzz.prompts import tags_in
from fuzz.replies import objects_in
from fuzz.stored import SUMMARY, found_in, good_checkpoint
from fuzz.targets import CORPUS, TARGETS, corpus_of

KEPT = [(name, path) for name in TARGETS for path in corpus_of(name)]
WORDS = [
    line.strip()[1:-1].encode().decode("unicode_escape").encode("latin-1")
    for line in (CORPUS.parent / "words.dict").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "path"), KEPT, ids=[f"{name}-{path.name}" for name, path in KEPT])
def test_no_kept_input_finds_a_fault(name: str, path: Path) -> None:
    """What each target begins with, and what once found one."""
    TARGETS[name](path.read_bytes())


def test_every_target_has_kept_inputs() -> None:
    """And every kept input a target."""
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_find_a_fault(name: str) -> None:
    """Any bytes, and the words of the dictionary in any order."""
    words = st.lists(st.sampled_from(WORDS) | st.binary(max_size=6), max_size=12).map(b"".join)

    @settings(max_examples=60, deadline=None)
    @given(st.binary(max_size=100) | words)
    @example(b"")
    def holds(data: bytes) -> None:
        if b"\xff" not in data:  # repeated texts are for the fuzzer, they take their time
            TARGETS[name](data)

    holds()


def test_the_oracles_see_what_they_are_there_for() -> None:
    """Each says no to what it must not let pass."""
    assert list(objects_in('x {"a": [1,],} y')) == [{"a": [1]}]
    assert list(objects_in('{"a": 1, "a": 2} {"b": NaN} {"c": ",}"')) == []
    assert list(objects_in('"{\\"a\\": 1}"'))[-1] == {"a": 1}
    assert tags_in("<part>a＜ / ｐ\u200bart b</part_x>", "part") == ["<part", "< / part"]
    assert found_in(good_checkpoint()).summary == SUMMARY
    assert text_of(b"\xff\x01\xffab\xffc") == "ab" * 64 + "c"
    assert texts_of(b"a\xfeb", 3) == ["a", "b", ""]
