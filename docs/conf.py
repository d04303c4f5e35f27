"""How the documentation is built: `make docs`, into `docs/_build`."""

from importlib.metadata import version as version_of

# Imported by autodoc alone, with `TYPE_CHECKING` set, Dagster's pydantic models would not load.
import promptchain_dagster.pipelines  # noqa: F401

project = "promptchain_dagster"
version = release = version_of("promptchain-dagster")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]

myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
# Docstrings are prose with code in single back quotes, as in Markdown.
default_role = "code"

html_theme = "alabaster"
html_theme_options = {"description": "Fixed chains of model calls, over whole collections"}
html_show_copyright = False
