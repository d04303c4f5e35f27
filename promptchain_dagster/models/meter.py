"""`Meter`: about how many tokens a request will take, and how many one took that did not tell."""

from __future__ import annotations

from promptchain_dagster.models.base import NO_USAGE, Usage

_TOKENS_PER_BYTE = 0.25
"""Of most text, also of Chinese with its three bytes a character, until replies tell better."""


class Meter:
    """Learns from what replies tell: tokens per byte of the prompts, mean tokens of the replies.

    Before the first reply nothing is assumed about its length.
    """

    def __init__(self) -> None:
        # Weighs as much as one prompt of 1,000 bytes: the first short prompt decides nothing.
        self._bytes, self._tokens = 1000.0, 1000 * _TOKENS_PER_BYTE
        self._replies = self._output = 0

    def before(self, prompt: str) -> tuple[int, int]:
        """Input and output tokens that a request with `prompt` may take."""
        output = round(self._output / self._replies) if self._replies else 0
        return self._tokens_of(prompt), output

    def after(self, prompt: str, usage: Usage, reply: str | None) -> tuple[int, int]:
        """Input and output tokens of a request, as told or else by estimate; learns from them."""
        if usage == NO_USAGE:
            return 0, 0
        tokens_in, tokens_out = self.before(prompt)
        if usage.input_tokens is not None:
            tokens_in = usage.input_tokens
            self._bytes += _bytes(prompt)
            self._tokens += tokens_in
        if usage.output_tokens is not None:
            tokens_out = usage.output_tokens
        elif reply is not None:
            tokens_out = self._tokens_of(reply)
        if usage.output_tokens is not None or reply is not None:
            self._replies += 1
            self._output += tokens_out
        return tokens_in, tokens_out

    def _tokens_of(self, text: str) -> int:
        return max(1, round(_bytes(text) * self._tokens / self._bytes))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
