"""A server on loopback that a test plays."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, bytes], tuple[int, bytes]]


@contextmanager
def played(answer: Answer) -> Iterator[str]:
    """Its address; `answer` makes a status and a body of the path and the body of each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, said = answer(self.path, self.rfile.read(int(self.headers.get("Content-Length", 0))))
            with suppress(ConnectionError):  # whoever asked has gone
                self.send_response(status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        do_GET = do_POST  # noqa: N815 - named by the library

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
