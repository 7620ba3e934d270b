"""What the checks with programs of others share: a site, and waiting for what must come."""

import http.server
import threading
import time
from collections import Counter

LIMIT = 60


class Site:
    """Pages on the loopback, and how often each was asked for. One that ends in `/slow` waits until the test says `goes_on`."""

    def __init__(self):
        self.asked, self.goes_on = Counter(), threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                site.asked[self.path] += 1
                if self.path.endswith("/slow"):
                    site.goes_on.wait(LIMIT)
                broken = {"/broken": 500, "/missing": 404, "/robots.txt": 404}
                body = f"<html><title>{self.path}</title><p>Hello</html>".encode()
                self.send_response(broken.get(self.path, 200))
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def urls(self, paths):
        return [self.origin + path for path in paths]


def until(what, holds):
    deadline = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {LIMIT} s in vain: {what}")
        time.sleep(0.1)
