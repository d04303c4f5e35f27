"""What goes wrong, by whose doing: the caller's mistake, or a definition that cannot work.

A model call's misfortune is a `CallError` (`models.base`); a chain or a document that ends without
a result is not an exception at all but an outcome, returned.
"""

from __future__ import annotations


class PromptChainError(Exception):
    """Everything this package raises on purpose."""


class InvalidInput(PromptChainError, ValueError):
    """The caller's mistake, found before any call: names the thing, its value and the limit."""


class ChainDefinitionError(PromptChainError, ValueError):
    """A chain whose steps cannot fit, found when it is defined; names step and field."""


class GuardRejection(InvalidInput):
    """Input refused at a boundary. `guards` names the component, `problems` every reason."""

    def __init__(self, guards: str, problems: list[str]) -> None:
        self.guards = guards
        self.problems = problems
        super().__init__(f"{guards}: " + "; ".join(problems))


class StoreError(PromptChainError):
    """The home can't be read or written, or offers no atomic writes; names the place."""
