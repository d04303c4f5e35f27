"""The table of `docs/reliability.md` names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_fault_of_the_table_names_a_test_and_every_test_here_is_named() -> None:
    """A row without a test would be a promise that nobody has tried to break."""
    page = (ROOT / "docs/reliability.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    named = [set(re.findall(r"`(\w+/test_\w+\.py)`", row.split(" | ")[2])) for row in rows]
    assert len(rows) > 20
    assert all(named)
    missing = {name for of_row in named for name in of_row if not (ROOT / "tests" / name).is_file()}
    assert not missing
    here = {f"faults/{file.name}" for file in Path(__file__).parent.glob("test_*.py")}
    assert here - set().union(*named) == {f"faults/{Path(__file__).name}"}
