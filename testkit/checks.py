"""What the checks with programs of others share: a site, a fleet, and waiting for what must come."""

import contextlib
import http.server
import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

LIMIT = 60
TOKEN = "a-token-of-a-test-and-of-nothing-else"


class Site:
    """Pages on the loopback, and how often each was asked for. One that ends in `/slow` waits until the test says `goes_on`. Each page
    below a `/tree/` links to two others, down to names of three letters."""

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
                links = ""
                if "/tree/" in self.path and len(self.path.split("/tree/")[1]) < 3:
                    links = "".join(f'<a href="{self.path}{letter}">on</a>' for letter in "ab")
                body = f"<html><title>{self.path}</title><p>Hello{links}</html>".encode()
                self.send_response(broken.get(self.path, 200))
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                # Whoever asked may have given up.
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def urls(self, paths):
        return [self.origin + path for path in paths]


class Fleet:
    """Workers and the API in one folder, which has `files`. The operator `anna` has the token `TOKEN`."""

    def __init__(self, workers=2, files=(), **settings):
        self.folder = tempfile.TemporaryDirectory()
        for name, text in dict(files).items():
            path = Path(self.folder.name) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "RABBITMQ_URL", "REDIS_URL") if name in os.environ}
        self.environment = inherited | {
            "TRAWL__FETCH__ALLOW_PRIVATE": "true",
            "TRAWL__POLITENESS__RATE": "unlimited",
            "TRAWL__RECOVERY__LOST_AFTER": "4s",
            "TRAWL__API__OPERATORS__ANNA": TOKEN,
            **settings,
        }
        self.running = [self.start("worker") for _ in range(workers)]
        api = self.start("api", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        self.running.append(api)
        told = ""
        while "serving http://" not in told:
            told = api.stderr.readline()
            assert told, "trawl api has ended"
        self.url = told.split("serving ")[1].split("/api/v1")[0]
        threading.Thread(target=lambda: [None for _ in api.stderr], daemon=True).start()

    def start(self, *words, stderr=None):
        return subprocess.Popen(
            [os.environ["TRAWL"], *words], env=self.environment, cwd=self.folder.name, text=True, stderr=stderr
        )

    def end(self):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(LIMIT)


def until(what, holds):
    deadline = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {LIMIT} s in vain: {what}")
        time.sleep(0.1)
