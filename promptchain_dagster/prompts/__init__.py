"""The prompts, as Markdown templates, and how values get into them without breaking out.

Everything outside a template's slots is sent word for word (spec). A value can neither open nor
close one of its prompt's own tags (cases d7, d8), and is never itself read as a template (d16).
"""

from promptchain_dagster.prompts.template import PromptTemplate
from promptchain_dagster.prompts.values import MAX_LINE_CHARACTERS, one_line_problem, to_text

__all__ = ["MAX_LINE_CHARACTERS", "PromptTemplate", "one_line_problem", "to_text"]
