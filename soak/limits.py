"""How fast a run may go and what it may spend: enough for all, near enough to be felt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Those of each run, for so many documents."""

    documents: int
    max_in_flight: int = 32
    timeout_seconds: float = 5.0

    @property
    def requests_per_minute(self) -> int:
        """About as many as are sent in the fastest minute."""
        return max(600, 2 * self.documents)

    @property
    def tokens_per_minute(self) -> int:
        """Some 200 a request."""
        return 200 * self.requests_per_minute

    @property
    def max_tokens(self) -> int:
        """Of a run, and of the day."""
        return 4000 * self.documents

    @property
    def max_cost_usd(self) -> float:
        """Of a run, and of the day: at the price of `server.MODEL`, about those tokens."""
        return 0.002 * self.documents
