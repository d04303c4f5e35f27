"""One target under the fuzzer, in this process: `python -m fuzz.worker NAME [OPTIONS]`."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris  # pyright: ignore[reportMissingModuleSource]

with atheris.instrument_imports(  # pyright: ignore[reportAttributeAccessIssue]
    include=["promptchain_dagster", "yaml"]
):
    from fuzz.targets import CORPUS, TARGETS

DICTIONARY = Path(__file__).with_name("words.dict")


def main() -> None:
    """Fuzz until the options say to stop; a fault ends the process with its input."""
    name, *options = sys.argv[1:]
    arguments = [sys.argv[0], *options, f"-dict={DICTIONARY}"]
    kept = CORPUS / name
    if kept.is_dir():
        arguments.append(str(kept))
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
