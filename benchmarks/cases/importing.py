"""How long one import takes in a fresh process."""

from __future__ import annotations

import importlib

from benchmarks.child import Clock, parameters, tell

if __name__ == "__main__":
    with Clock() as clock:
        importlib.import_module(parameters()["module"])
    tell(seconds=clock.seconds)
