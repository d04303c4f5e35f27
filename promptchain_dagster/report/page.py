"""The report as one HTML page that needs nothing beside it: no script, no font, no picture."""

from __future__ import annotations

from collections import Counter
from importlib import resources

from promptchain_dagster.models.base import Usage
from promptchain_dagster.report.gather import Report

DOCUMENTS = 2000
"""The most documents of a page; those that failed come first."""


def page(report: Report) -> str:
    """HTML. Whatever a document, a model or a server said stands in it as text."""
    from jinja2 import Environment

    # Everything is escaped: what is shown is other people's text.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"tokens": _tokens, "cost": _cost, "count": _count, "share": _share}
    folder = resources.files("promptchain_dagster.report")
    template = environment.from_string((folder / "page.html.jinja").read_text(encoding="utf-8"))
    html = template.render(
        report=report,
        statuses=Counter(one["status"] for one in report.documents),
        documents=report.documents[:DOCUMENTS],
        more=max(0, len(report.documents) - DOCUMENTS),
        chain_statuses=Counter(one.status for one in report.chains),
        most_tokens=max((one.tokens for one in report.steps), default=0),
        dearest=report.spending.dearest(),
        Usage=Usage,
    )
    # Half characters, of paths that are no UTF-8, can't be written.
    return html.encode("utf-8", "replace").decode("utf-8")


def _tokens(usage: Usage) -> str:
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return f"{sum(known):,}" if known else "unknown"


def _cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else f"${usage.cost_usd:,.4f}"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _share(part: float) -> str:
    return f"{part:.0%}"
