"""The declarative condition that the documentation shows."""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from promptchain_dagster.refine.documents import document_key

ROOT = Path(__file__).parents[2]
SUMMARY = dg.AssetKey("document_summary")


def shown() -> dict[str, Any]:
    """What the snippet in `docs/automation.md` defines."""
    text = (ROOT / "docs" / "automation.md").read_text("utf-8")
    (snippet,) = [
        one
        for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "AutomationCondition" in one
    ]
    names: dict[str, Any] = {}
    exec(compile(snippet, "docs/automation.md", "exec"), names)
    return names


def test_the_condition_asks_for_what_is_new_or_changed_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running summary, materialized by the run itself, is no reason for another run."""
    root = tmp_path / "documents"
    root.mkdir()
    monkeypatch.setenv("PROMPTCHAIN_DOCUMENTS", str(root))
    monkeypatch.setenv("PROMPTCHAIN_HOME", str(tmp_path / "home"))
    names = shown()
    defs, sensor = names["defs"], names["documents_seen"]
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        cursor: Any = None

        def look() -> None:
            with dg.build_sensor_context(
                instance, resources={"home": names["HomeResource"]()}
            ) as context:
                sensor.evaluate_tick(context)

        def asked() -> set[str]:
            nonlocal cursor
            result = dg.evaluate_automation_conditions(
                defs, instance=instance, cursor=cursor, asset_selection=dg.AssetSelection.all()
            )
            cursor = result.cursor
            return result.get_requested_partitions(SUMMARY)

        def summarize(*keys: str) -> None:
            for key in keys:
                for asset in ("running_summary", "document_summary"):
                    event = dg.AssetMaterialization(asset, partition=key)
                    instance.report_runless_asset_event(event)

        a, b = document_key("a.txt"), document_key("b.txt")
        (root / "a.txt").write_text("some words of a document")
        look()
        assert asked() == {a}
        summarize(a)
        assert asked() == set()
        (root / "b.txt").write_text("some words of another")
        look()
        assert asked() == {b}
        summarize(b)
        assert asked() == set()
        (root / "a.txt").write_text("other words of the document")
        look()
        assert asked() == {a}
        summarize(a)
        look()
        assert asked() == set()
