"""What tokens cost, from the price list that `genai-prices` ships; asks no network."""

from __future__ import annotations

from promptchain_dagster.models.base import to_the_token

_without_price: set[str] = set()


def cost_usd(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars for one reply of `model`; None where the list has no price for that name.

    A provider before the name is taken ("openai/gpt-4o"). The first call loads the list, which
    takes about a second; `models.openai.connect` sees to it before any reply is awaited.
    """
    if model in _without_price:
        return None
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        try:
            return to_the_token(float(calc_price(usage, name).total_price))
        except LookupError:
            continue
    _without_price.add(model)
    return None


def context_window(model: str) -> int | None:
    """How many tokens prompt and reply of `model` may have together; None where unlisted."""
    from genai_prices import Usage, calc_price

    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        try:
            return calc_price(Usage(input_tokens=0, output_tokens=0), name).model.context_window
        except LookupError:
            continue
    return None
