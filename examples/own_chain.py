"""A chain of one's own, with a tool step, as a Dagster job.

dagster job execute -f examples/own_chain.py -j answer_review -c examples/own_chain.yaml
"""

import dagster as dg
from pydantic import BaseModel

from promptchain_dagster import AcceptSpec, Chain, Criterion, PromptStep, PromptTemplate, ToolStep
from promptchain_dagster.pipelines import chain_job, chain_resources

WARRANTY_YEARS = {"kettle": 2, "toaster": 2, "lamp": 5}


class Review(BaseModel):
    """What the chain is given."""

    review: str


class Complaint(BaseModel):
    """What the first step finds in it."""

    product: str = ""
    problem: str = ""


def warranty(complaint: Complaint) -> int:
    """The years of warranty on the product: a tool step, its arguments checked like any other."""
    return WARRANTY_YEARS.get(complaint.product.strip().lower(), 1)


def _is_named(complaint: Complaint, fields: object) -> list[str]:
    return [f"{name} is empty" for name, value in complaint if not value.strip()]


chain = Chain(
    "answer_review",
    inputs=Review,
    steps=[
        PromptStep(
            name="complaint",
            prompt=PromptTemplate(
                "Which product is this review about, in one word, and what is wrong with it?\n"
                'Output JSON: {"product": "...", "problem": "..."}\n\n'
                "<review>{{ review }}</review>\n"
                "{% if errors %}\nYour previous answer failed these checks:\n"
                "<errors>{{ errors }}</errors>{% endif %}",
                name="complaint",
            ),
            reads={"review": str},
            output_type=Complaint,
            accept=AcceptSpec(Criterion("named", _is_named)),
            max_retries_per_step=2,
        ),
        ToolStep(name="warranty", function=warranty),
        PromptStep(
            name="answer",
            prompt=PromptTemplate(
                "Write a short, kind answer to the customer who has this complaint. The warranty"
                " is {{ warranty }} years.\n\n<complaint>{{ complaint }}</complaint>",
                name="answer",
            ),
            reads={"complaint": Complaint, "warranty": int},
        ),
    ],
)

defs = dg.Definitions(jobs=[chain_job(chain)], resources=chain_resources())
