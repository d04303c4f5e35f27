"""The workload over bare asyncio connections: what shows that the server is no bottleneck."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

from benchmarks.child import Clock, parameters, tell
from benchmarks.workload import MODEL, Workload, refine_prompt

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def call(connection: Connection, prompt: str) -> str:
    """Send one prompt over a connection that is kept; the reply's text."""
    reader, writer = connection
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": prompt}]})
    data = body.encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.partition(b"content-length:")[2].split(b"\r\n")[0])
    return json.loads(await reader.readexactly(length))["choices"][0]["message"]["content"]


async def main(url: str, workload: Workload) -> None:
    address = urlsplit(url)
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(workload.in_flight):
        free.put_nowait(await asyncio.open_connection(address.hostname, address.port))

    async def summarize(chunks: list[str]) -> str:
        summary = ""
        for index, chunk in enumerate(chunks, start=1):
            prompt = refine_prompt(summary, chunk, index, len(chunks))
            connection = await free.get()
            summary = await call(connection, prompt)
            free.put_nowait(connection)
        return summary

    texts = list(workload.texts())
    with Clock() as clock:
        await asyncio.gather(*map(summarize, texts))
    tell(seconds=clock.seconds, cpu_seconds=clock.cpu_seconds)


if __name__ == "__main__":
    given = parameters()
    asyncio.run(main(given["url"], Workload(**given["workload"])))
