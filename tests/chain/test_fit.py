"""Schema Continuity: what one step gives is proved to satisfy what a later step reads."""

import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from promptchain_dagster.chain.fit import misfits


class Colour(str, enum.Enum):
    RED = "red"
    BLUE = "blue"


class Wide(BaseModel):
    name: str
    size: int = 3
    note: str | None = None


class Narrow(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=10)]
    size: Annotated[int, Field(ge=1, le=5)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


class Tree(BaseModel):
    label: str
    children: list["Tree"] = []


class OtherTree(BaseModel):
    label: int
    children: list["OtherTree"] = []


class Nested(BaseModel):
    items: list[Wide]


class NestedNarrow(BaseModel):
    items: list[Narrow]


FITS = [
    (str, str),
    (str, Any),
    (Any, str),
    (int, float),
    (Wide, Wide),
    (Narrow, Wide),
    (Literal["a"], Literal["a", "b"]),
    (Literal["a"], str),
    (Colour, str),
    (Literal["red"], Colour),
    (Annotated[int, Field(ge=2, le=4)], Annotated[int, Field(ge=1, le=5)]),
    (Annotated[int, Field(gt=2)], Annotated[int, Field(ge=2)]),
    (Literal[2, 3], Annotated[int, Field(ge=1, le=5)]),
    (str, str | None),
    (str, Annotated[str, Field(min_length=0)]),
    (list[int], list[float]),
    (dict[str, int], dict[str, float]),
    (Tree, Tree),
    (NestedNarrow, Nested),
    (list[str], list[Any]),
    (tuple[int, str], tuple[float, str]),
    (bytes, bytes),
]


@pytest.mark.parametrize(("given", "required"), FITS, ids=str)
def test_the_same_or_a_narrower_type_fits(given, required):
    assert misfits(given, required, "x") == []


MISFITS = [
    (str, int, "x is a string, must be an integer"),
    (float, int, "x is a number, must be an integer"),
    (bool, int, "x is a boolean, must be an integer"),
    (str | None, str, "x is a null, must be a string"),
    (str, Colour, "x may be any string, must be"),
    (Literal["a", "c"], Literal["a", "b"], "x may be ['c'], must be one of ['a', 'b']"),
    (int, Annotated[int, Field(ge=1)], "x has no bound, must keep minimum 1"),
    (Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)], "x may be 0, must keep minimum 1"),
    (str, Annotated[str, Field(min_length=1)], "must keep minLength 1"),
    (list[str], Annotated[list[str], Field(max_length=3)], "must keep maxItems 3"),
    (Literal[7], Annotated[int, Field(le=5)], "x may be 7, must keep maximum 5"),
    (Wide, Narrow, "x.name may be 0, must keep minLength 1"),
    (Wide, Closed, "x.note is not allowed"),
    (Closed, Narrow, "x.size is missing, is required"),
    (Nested, NestedNarrow, "x.items[*].size has no bound, must keep minimum 1"),
    (list[str], list[int], "x[*] is a string, must be an integer"),
    (dict[str, str], dict[str, int], "x[*] is a string, must be an integer"),
    (Tree, OtherTree, "x.label is a string, must be an integer"),
    (Wide, str, "x is an object, must be a string"),
    (tuple[int, str], tuple[int, int], "x[1] is a string, must be an integer"),
    (int | str, int, "x is a string, must be an integer"),
    (float, str | int, "x is a number"),
]


@pytest.mark.parametrize(("given", "required", "reason"), MISFITS, ids=str)
def test_what_may_not_fit_is_told_with_its_path(given, required, reason):
    assert any(reason in told for told in misfits(given, required, "x")), misfits(
        given, required, "x"
    )
