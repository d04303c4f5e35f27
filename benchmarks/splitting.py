"""Splitting prose into chunks, and four texts that nobody expects."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.child import CaseFailed, run_case
from benchmarks.options import Options
from benchmarks.report import Row, Section, Target
from benchmarks.workload import CHUNK_TOKENS, prose

OURS = {"paragraphs": "tiktoken, counting paragraphs (the floor)", "ours": "**ours**"}
PLAIN = {"greedy": "a plain greedy packer on tiktoken"}
PEERS = {
    "langchain": "LangChain recursive",
    "llamaindex": "LlamaIndex SentenceSplitter",
    "semantic": "semantic-text-splitter",
    "chonkie": "chonkie recursive",
}
NAMES = {**OURS, **PLAIN, **PEERS}
HOSTILE_SECONDS = 3.0
SEED = 7


def speed(options: Options) -> Section:
    """MB/s, and whether nothing is lost and every chunk is within the limit."""
    path = Path(options.scratch) / "prose.txt"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(prose(options.split_characters))
    megabytes = path.stat().st_size / 1e6
    rows: list[Row] = []
    found: dict[str, dict[str, Any]] = {}
    failures: dict[str, str] = {}
    for splits in ([*OURS, *PLAIN], *([peer] for peer in (PEERS if options.peers else ()))):
        try:
            found |= _run(splits, path, options, timeout=300, repetitions=options.repetitions)
        except CaseFailed as failed:
            failures |= dict.fromkeys(splits, str(failed))
    for split in _splits(options):
        if split in failures:
            rows.append((NAMES[split], failures[split], "", ""))
            continue
        one = found[split]
        rate = one["rate"] = megabytes / one["seconds"]
        whole = split == "paragraphs" or one["longest"] <= CHUNK_TOKENS
        lossless = "yes" if one["lossless"] else "no"
        rows.append((NAMES[split], f"{rate:.1f}", lossless, "yes" if whole else one["longest"]))
    path.unlink()
    about = (
        f"{megabytes:.0f} MB of generated prose into chunks of at most {CHUNK_TOKENS:,} tokens"
        f" (o200k). Medians of {options.repetitions} for the first three, one run for the others."
    )
    columns = ("", "MB/s", "lossless", "all within the limit")
    section = Section("Splitting", about, columns, rows)
    if "ours" in found and "paragraphs" in found:
        one = found["ours"]
        ratio = one["rate"] / found["paragraphs"]["rate"]
        right = one["lossless"] and one["longest"] <= CHUNK_TOKENS
        section.targets = [
            Target.at_least("splitting: of tiktoken's own paragraph speed", 0.8, ratio),
            Target.holds("– lossless, every chunk within the limit", "yes", right),
        ]
    return section


def hostile(options: Options) -> Section:
    """What each does with texts that are no prose."""
    texts = _hostile_texts(options.hostile_characters)
    rows: list[Row] = []
    slowest: float | None = 0.0
    for split in _splits(options):
        if split == "paragraphs":
            continue
        cells: list[str] = []
        for text in texts.values():
            path = Path(options.scratch) / "hostile.txt"
            path.write_text(text(), encoding="utf-8")
            try:
                one = _run([split], path, options, timeout=options.hostile_seconds)[split]
                cells.append(_told(one))
                wrong = not one["lossless"] or one["longest"] > CHUNK_TOKENS
            except CaseFailed as failed:
                cells.append(str(failed)[:60].replace("|", "/"))
                one, wrong = {}, True
            if split == "ours":
                known = None if wrong or slowest is None else max(slowest, one["seconds"])
                slowest = known
            path.unlink()
        rows.append((NAMES[split], *cells))
    about = f"Each in a process of its own, ended after {options.hostile_seconds:g} s."
    section = Section("Hostile texts", about, ("", *texts), rows)
    what = "the four hostile texts, lossless and within the limit: the slowest"
    measured = Target.at_most(what, HOSTILE_SECONDS, slowest, unit=" s")
    section.targets = [measured if slowest is not None else Target.holds(what, "≤ 3 s", False)]
    return section


def _told(one: dict[str, Any]) -> str:
    faults = [] if one["lossless"] else ["not lossless"]
    faults += [f"a chunk of {one['longest']:,}"] if one["longest"] > CHUNK_TOKENS else []
    return ", ".join([f"{one['seconds']:.2f} s", *faults])


def _hostile_texts(characters: int) -> dict[str, Callable[[], str]]:
    quarter = characters // 4
    size = f"{characters / 1e6:g} MB"

    def chinese() -> str:
        rng = random.Random(SEED)
        return "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(characters // 3))

    def no_space() -> str:
        return "".join(
            random.Random(SEED).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=quarter)
        )

    return {
        f"{size} of one letter": lambda: "a" * characters,
        f"{size} of spaces": lambda: f"a{' ' * characters}b",
        f"{size} of Chinese": chinese,
        f"{quarter / 1e3:g} KB without a space": no_space,
    }


def _splits(options: Options) -> list[str]:
    return [*OURS, *PLAIN, *(PEERS if options.peers else ())]


def _run(
    splits: list[str], path: Path, options: Options, *, timeout: float, repetitions: int = 1
) -> dict[str, dict[str, Any]]:
    sys.stderr.write(f"splitting: {', '.join(NAMES[split] for split in splits)}\n")
    is_peer = splits[0] in PEERS
    return run_case(
        "peers.splitters" if is_peer else "cases.splitting",
        python=options.peers if is_peer and options.peers else sys.executable,
        timeout=timeout,
        splits=splits,
        path=str(path),
        repetitions=repetitions,
    )["splits"]
