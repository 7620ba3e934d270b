"""The site that is crawled: pages linked as a graph on two hosts, and the log that judges every crawl."""

import asyncio
import dataclasses
import math
import time

PAGES = 500
# Seconds between two requests to a host that every crawler is told to keep, and that an answer takes.
INTERVAL, LATENCY = 0.1, 0.08
# Every fifth page is on the second host.
HOSTS = ("127.0.0.1", "127.0.0.2")
ROBOTS = b"User-agent: *\nAllow: /\n"


def host_of(page):
    return HOSTS[page % 5 == 4]


def links_of(page):
    """A tree, so that the frontier grows, and two links across it, as real pages have."""
    linked = [2 * page + 1, 2 * page + 2, (37 * page + 11) % PAGES, (91 * page + 29) % PAGES]
    return sorted({other for other in linked if other < PAGES} - {page})


@dataclasses.dataclass
class Request:
    """One request for a page; its status is None as long as it has no answer, and stays None if the client went away."""

    at: float
    host: str
    page: int
    status: int | None = None


class Site:
    """Serves the pages and logs each request. `watch` is called with each request before it is answered."""

    def __init__(self):
        self.log, self.served, self.watch = [], set(), None
        self.connections, self.listeners, self.port = set(), [], 0
        # The connections of clients that were killed: on a busy machine they take a moment to die.
        self.dead = set()
        # What faults change: the page that kills who asks for it, until when the first host refuses, and how long an
        # answer of the second takes.
        self.lethal, self.refuses_until, self.slow = None, 0.0, LATENCY

    async def open(self):
        for host in HOSTS:
            listener = await asyncio.start_server(self.serve, host, self.port)
            self.port = listener.sockets[0].getsockname()[1]
            self.listeners.append(listener)

    def close(self):
        """Cuts every connection and refuses new ones, until it is opened again."""
        for listener in self.listeners:
            listener.close()
        self.listeners.clear()
        for writer in list(self.connections):
            writer.transport.abort()

    def forsake(self, ports):
        """Answers nothing more on the connections from these ports of clients."""
        self.dead |= {writer for writer in self.connections if writer.get_extra_info("peername")[1] in ports}

    def url(self, page):
        return f"http://{host_of(page)}:{self.port}/page/{page}"

    async def serve(self, reader, writer):
        self.connections.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self.answer(head.split(b" ", 2)[1].decode(), reader, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.connections.discard(writer)
            writer.close()

    async def answer(self, path, reader, writer):
        name, _, number = path.removeprefix("/").partition("/")
        page = int(number) if name == "page" and number.isdigit() else PAGES
        if page < PAGES:
            await self.answer_page(page, reader, writer)
        elif path == "/robots.txt":
            writer.write(response("200 OK", ROBOTS, "text/plain"))
        else:
            writer.write(response("404 Not Found", b""))

    async def answer_page(self, page, reader, writer):
        request = Request(time.monotonic(), writer.get_extra_info("sockname")[0], page)
        self.log.append(request)
        if self.watch:
            self.watch(request, writer.get_extra_info("peername")[1])
        left = self.refuses_until - time.monotonic()
        if request.host == HOSTS[0] and left > 0:
            request.status = 429
            writer.write(response("429 Too Many Requests", b"", more=f"Retry-After: {math.ceil(left)}\r\n"))
            return
        await asyncio.sleep(LATENCY if request.host == HOSTS[0] else self.slow)
        if writer in self.dead or reader.at_eof() or writer.is_closing():
            raise ConnectionResetError
        request.status = 200
        self.served.add(page)
        links = "".join(f'<li><a href="{self.url(other)}">{other}</a></li>' for other in links_of(page))
        body = f"<!doctype html><title>Page {page}</title><ul>{links}</ul>"
        writer.write(response("200 OK", body.encode()))


def response(status, body, kind="text/html", more=""):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
