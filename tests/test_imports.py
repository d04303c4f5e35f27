"""Imports run one way, and importing costs what it must and no more."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "promptchain_dagster"

LAYERS = [
    {"errors", "files", "importing", "words", "reattempt", "telemetry", "thinking", "threads"},
    {"prompts", "models", "readers", "store", "tokens"},
    {"chain"},
    {"criteria"},
    {"testing"},
    {"refine"},
    {"library"},
    {"report"},
    {"blog_post"},
    {"pipelines"},
    {"cli"},
]
FLOOR = {name: floor for floor, names in enumerate(LAYERS) for name in names}


def _loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


def test_importing_the_core_loads_neither_dagster_nor_openai_nor_a_tokenizer():
    loaded = _loaded_after("import promptchain_dagster")
    late = {"openai", "tiktoken", "genai_prices", "xllamacpp", "obstore", "opentelemetry"}
    assert not loaded & {"dagster", *late}


def test_b4_loading_the_definitions_loads_no_model_client_and_no_tokenizer():
    loaded = _loaded_after(f"sys.path.insert(0, {str(PACKAGE.parent)!r}); import definitions")
    assert "dagster" in loaded
    assert not loaded & {"openai", "tiktoken", "genai_prices", "xllamacpp", "obstore"}


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    here = path.relative_to(PACKAGE).with_suffix("").parts[0]
    source = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:from|import) promptchain_dagster\.(\w+)", source):
        assert FLOOR[name] <= FLOOR[here], f"{here} imports {name}"
    if here not in ("pipelines", "cli"):
        assert not re.search(r"^\s*(from|import) dagster\b", source, re.MULTILINE)
    if path.name != "openai.py":
        assert not re.search(r"^\s*(from|import) openai\b", source, re.MULTILINE)


def test_e11_nothing_depends_on_the_transport_of_the_sdk():
    """The SDK 3.57 is built on httpx2: `import httpx` fails on a clean install."""
    for path in (*MODULES, *PACKAGE.parent.glob("tests/**/*.py")):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from|import) (httpx2?|respx)\b", source, re.MULTILINE), path
    declared = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert '"openai>=3.57,<4"' in declared
