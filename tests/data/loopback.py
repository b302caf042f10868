"""A server on loopback that gives files away as well or as badly as a test wants."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Files:
    """What the server holds and does; the paths asked for are noted."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content
        self.cut_after: list[int] = []  # bytes after which the next answers break off, in order
        self.status: list[int] = []  # statuses of the next answers, in order
        self.requests: list[str] = []
        self.url = ""


@contextmanager
def serving(content: dict[str, bytes]) -> Iterator[Files]:
    """Serve the content on a free port until the block ends."""
    files = Files(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            files.requests.append(self.path.lstrip("/"))
            data = files.content.get(files.requests[-1])
            status = files.status.pop(0) if files.status else 200 if data is not None else 404
            if status != 200:
                self.send_error(status)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: files.cut_after.pop(0) if files.cut_after else None])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        files.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield files
        finally:
            server.shutdown()
            thread.join()
