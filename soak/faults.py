"""What the server does wrong, and what of that may be read in the error of a document."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """`rate` is the share of the requests that meet it; `reason` is a part of what the document
    says that fails of it, {number} being the request's; `tells_usage`: the reply says what it
    took, None where no request of that kind costs anything."""

    rate: float
    reason: str
    tells_usage: bool | None = False


FAULTS: dict[str, Fault] = {
    "429": Fault(0.004, "HTTP 429: request {number} of this server", None),
    "429, Retry-After": Fault(0.004, "HTTP 429: request {number} of this server", None),
    "500": Fault(0.01, "HTTP 500: request {number} of this server"),
    "502, a page": Fault(0.01, "HTTP 502: a web page"),
    "503": Fault(0.01, "HTTP 503: request {number} of this server"),
    "cut body": Fault(0.01, "the body of the reply is cut or no JSON"),
    "empty body": Fault(0.01, "the body of the reply is empty"),
    "a page": Fault(0.01, "it answered with a web page"),
    "slow bytes": Fault(0.01, "", True),
    "no end": Fault(0.002, "no reply within"),
    "reset": Fault(0.01, "no usable answer from"),
    "closed": Fault(0.01, "no usable answer from"),
    "no choices": Fault(0.01, "no choices in the reply", True),
    "output limit": Fault(0.003, "the reply was cut at the output limit", True),
}

OUTSIDE: dict[str, Fault] = {
    "": Fault(0, "", True),
    "refused": Fault(0, "the model refused: not this text", True),
    "gone": Fault(0, "no usable answer from"),
}
"""What is no matter of chance: a good reply, a text that is refused, a server that is gone."""

KINDS = {**FAULTS, **OUTSIDE}


def fault_of(seed: int, prompt: str, time: int) -> str:
    """The fault that a prompt meets when it is sent for the `time`-th time; mostly none, "".

    The order in which requests arrive has no say in it, so a seed gives the same faults again.
    """
    digest = hashlib.sha256(f"{seed} {time} {prompt}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    for name, fault in FAULTS.items():
        place -= fault.rate
        if place < 0:
            return name
    return ""
