"""No test reaches beyond this machine, or sees the settings of whoever runs it."""

from __future__ import annotations

import ipaddress
import os
import sys

os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
for name in list(os.environ):
    if name.startswith(("OPENAI_", "PROMPTCHAIN_", "DAGSTER_HOME")):
        del os.environ[name]


def _only_loopback(event: str, args: tuple[object, ...]) -> None:
    if event != "socket.connect" or not isinstance(args[1], tuple):
        return
    host = args[1][0]
    if host in ("localhost", "") or ipaddress.ip_address(host).is_loopback:
        return
    raise RuntimeError(f"a test reached for {args[1]}, beyond this machine")


sys.addaudithook(_only_loopback)
