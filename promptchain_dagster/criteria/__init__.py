"""Ready-made criteria for an `AcceptSpec`. Each is made by a function, and has its three bars.

    AcceptSpec(word_count(150, 300), no_refusal(), matches(r"## Risks", bar=Bar.LENIENT))

They hold text; only `fits_schema` holds anything. A limit may be the name of one of the step's
fields in place of a number.
"""

from promptchain_dagster.criteria.counts import sections, word_count
from promptchain_dagster.criteria.facts import keeps_names_and_numbers
from promptchain_dagster.criteria.headings import headings_match
from promptchain_dagster.criteria.languages import in_language
from promptchain_dagster.criteria.patterns import fits_schema, matches
from promptchain_dagster.criteria.refusals import no_refusal, not_empty

__all__ = [
    "fits_schema",
    "headings_match",
    "in_language",
    "keeps_names_and_numbers",
    "matches",
    "no_refusal",
    "not_empty",
    "sections",
    "word_count",
]
