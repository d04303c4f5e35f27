"""A bucket of very many small documents, listed as S3 does, a thousand to a page."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_PAGE = 1000


class ManyObjects:
    """`count` objects under `docs/`, which are nowhere; counts what it is asked for."""

    def __init__(self, count: int) -> None:
        self.listings = self.reads = 0
        self._keys = [f"docs/{n // 500:03}/{n:06}.txt" for n in range(count)]
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ManyObjects:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str, query: dict[str, list[str]]) -> bytes:
        with self._lock:
            if "list-type" not in query:
                self.reads += 1
                return f"the text of {path}".encode()
            self.listings += 1
        start = int(query.get("continuation-token", ["0"])[0])
        rest = start + _PAGE
        more = (
            f"<IsTruncated>true</IsTruncated><NextContinuationToken>{rest}</NextContinuationToken>"
            if rest < len(self._keys)
            else "<IsTruncated>false</IsTruncated>"
        )
        listed = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
            f'<ETag>"{hash(key):x}"</ETag><Size>40</Size></Contents>'
            for key in self._keys[start:rest]
        )
        return f"<ListBucketResult>{more}{listed}</ListBucketResult>".encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        many = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                data = many._answer(url.path, parse_qs(url.query))
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("ETag", '"1"')
                self.send_header("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
