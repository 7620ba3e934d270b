"""Sites that do harm, each in a process of its own: what it is asked, and how it answers."""

import asyncio
import gzip
import json
import multiprocessing
import random
import socket
import struct
import threading
import time

PORT = 18_090
PLAIN = "Content-Type: text/html\r\n"
MB = 1_000_000
# What a spider may be asked to read, and what its parser takes longest for.
DEEP = gzip.compress(b"<div><p class=a>x" * (10 * MB // 17))
# An interim answer, many times (RFC 9110 15.2).
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 25_000
# Rules that are slow to match, and URLs of which they almost match each.
RULES = "User-agent: *\n" + "".join(f"Disallow: /*a*a*a*a{number}$\n" for number in range(7_900))
LONG = "a" * 1_900
# What no coding packs.
NOISE = b"<pre>" + bytes(48 + value % 64 for value in random.Random(1).randbytes(2 * MB))


def head(status, length, more=PLAIN):
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\n\r\n".encode()


def answer(body, more=PLAIN, status="200 OK"):
    return head(status, len(body), more) + body


NOTHING = answer(b"", status="404 Not Found")


class Attack:
    """Hosts that behave in one way. `urls` are what the crawl is told to ask of them, and `neighbour` of whom beside them."""

    hosts, pages, rate, robots = 1, 40, "60/m", NOTHING
    engines = ("embedded", "fleet")
    # What its honest neighbour must have: pages a second, and no longer gap, in seconds.
    least, longest_gap = 45, 2
    # More of the spider's file, such as what it extracts.
    spider = ""

    def neighbour(self):
        return Honest()

    def addresses(self):
        return [f"127.8.{number // 200}.{number % 200 + 1}" for number in range(self.hosts)]

    def urls(self):
        for page in range(self.pages):
            for address in self.addresses():
                yield f"http://{address}:{PORT}{self.path(page)}"

    def path(self, page):
        return f"/{page}"

    def listeners(self):
        return [(address, PORT) for address in self.addresses()]

    async def serve(self, reader, writer):
        """One connection."""
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                if request.startswith(b"GET /robots"):
                    await self.rules(writer)
                else:
                    await self.page(writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def rules(self, writer):
        writer.write(self.robots)

    async def page(self, writer):
        writer.write(answer(b"<title>a page</title>"))


class Nobody(Attack):
    """no attack"""

    hosts = 0


class Drip(Attack):
    """200 hosts that answer a byte a second"""

    hosts, pages = 200, 10

    async def page(self, writer):
        await drip(writer)


class DripRules(Drip):
    """200 hosts whose robots.txt comes a byte a second"""

    async def rules(self, writer):
        await drip(writer)


class Silent(Drip):
    """300 hosts that never answer a page, beside one that takes 2 s for each"""

    hosts, least, longest_gap = 300, 0.8, 5

    def neighbour(self):
        return Slow()

    async def page(self, writer):
        await asyncio.sleep(3_600)


class Unpaced(Drip):
    """a host that answers a byte a second, asked without a limit"""

    hosts, pages, rate = 1, 2_000, "unlimited"


async def drip(writer):
    writer.write(head("200 OK", 1_000))
    for _ in range(1_000):
        await writer.drain()
        await asyncio.sleep(1)
        writer.write(b"x")


class Unpacked(Attack):
    """8 hosts with pages of 10 KB that are 10 MB unpacked"""

    hosts, least = 8, 40
    # A selector that needs the whole tree.
    spider = '[fields]\nlast = "div:last-child > p:last-of-type"\n'

    async def page(self, writer):
        writer.write(answer(DEEP, PLAIN + "Content-Encoding: gzip\r\n"))


class Rules(Attack):
    """8 hosts with 7,900 slow rules in robots.txt and URLs of 2 KB"""

    hosts, pages, rate = 8, 200, "10/s"
    robots = answer(RULES.encode(), "Content-Type: text/plain\r\n")

    def path(self, page):
        return f"/{page}{LONG}"


class Interim(Attack):
    """2 hosts that flood interim answers (1xx)"""

    hosts = 2

    def listeners(self):
        return []

    def start(self):
        """Threads, which write faster than an event loop."""
        for address in self.addresses():
            listener = socket.create_server((address, PORT))
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.flood, args=(connection,), daemon=True).start()

    def flood(self, connection):
        try:
            while usual := self.usual(connection.recv(65_536)):
                connection.sendall(usual)
            while True:
                connection.sendall(INTERIM)
        except OSError:
            connection.close()

    def usual(self, request):
        """What is answered as anybody does."""
        return self.robots if b"GET /robots" in request else b""


class LateInterim(Interim):
    """2 hosts that flood interim answers after the first page"""

    def usual(self, request):
        return answer(b"<title>a page</title>") if b"GET /0 " in request else super().usual(request)


class UnpacedInterim(Interim):
    """a host that floods interim answers, asked without a limit"""

    hosts, pages, rate = 1, 2_000, "unlimited"


class Cacheable(Attack):
    """8 hosts with pages of 2 MB that may be kept for a day"""

    hosts, pages, rate = 8, 100, "5/s"

    async def page(self, writer):
        writer.write(answer(NOISE, PLAIN + "Cache-Control: max-age=86400\r\n"))


class Ports(Attack):
    """a host with 299 ports, each with a robots.txt of 500 KB"""

    hosts, pages, rate = 1, 1, "unlimited"
    robots = answer(("User-agent: *\n" + "".join(
        f"Disallow: /{number}/of/many/rules/that/take/room\n" for number in range(11_000))).encode())
    spider = "[follow]\ndepth = 1\n"

    def listeners(self):
        return [(self.addresses()[0], PORT + number) for number in range(299)]

    async def page(self, writer):
        links = "".join(f"<a href='http://{host}:{port}/linked'>x</a>" for host, port in self.listeners())
        writer.write(answer(links.encode()))


class Victims(Attack):
    """240 hosts whose robots.txt leads to one victim, whose rate is 60/m"""

    hosts, pages = 240, 3

    def __init__(self):
        target = f"Location: http://127.9.9.9:{PORT}/robots-of-others.txt\r\n"
        self.robots = answer(b"", target, "302 Found")

    def listeners(self):
        return [*super().listeners(), ("127.9.9.9", PORT)]

    async def serve(self, reader, writer):
        if writer.get_extra_info("sockname")[0] == "127.9.9.9":
            self.note()
        await super().serve(reader, writer)


class Forged(Attack):
    """forged messages of all kinds, as fast as the broker's HTTP API takes them"""

    hosts, engines = 0, ("fleet",)
    # Filled in by whoever starts it.
    servers = vhost = None

    def start(self):
        for number in range(4):
            threading.Thread(target=self.publish, args=(number,), daemon=True).start()

    def publish(self, number):
        count = 0
        while True:
            for queue, body, headers in self.messages(number, count):
                message = {"routing_key": queue, "payload": body, "payload_encoding": "string",
                           "properties": {"headers": headers}}
                try:
                    self.servers.manage("POST", f"exchanges/{self.vhost}/amq.default/publish", deep(message))
                    self.note()
                except OSError:
                    # The virtual host is not there yet.
                    time.sleep(0.1)
            count += 1

    def messages(self, number, count):
        """Queue, body and headers of each kind, as in backends/tests/attacks.md."""
        url, lane = f"http://127.0.0.3:{PORT}/{number}/{count % 100}", "url_queue_ttl"
        yield lane, url, NESTED
        yield lane, "probe", {"probe": 9_000_000_000_000_000, "before": 0}
        yield lane, url, {"slot": 1, "until": 1, "wake": 1}
        yield lane, url, {"turn": 1, "looks": 9}
        yield lane, url, {"crawl": "c1", "spider": "neighbours"}
        yield lane, url, {"crawl": "c1", "hop": "http://127.0.0.4/", "hops": 1}
        yield lane, url, {"spider": f"never-was-{number}-{count}"}
        yield lane, url, {"x-death": "boo"}
        yield lane, url, {"crawl": "c1", "sig": "0123456789abcdef0123456789abcdef"}
        yield "priority_queue", f"no URL {number} {count}", {}
        yield "due_queue", url, {"until": 9_000_000_000_000_000}


# What stands for headers nested too deep for a writer of JSON.
NESTED = {"a": "nested"}


def deep(message):
    """A message as JSON, with headers nested 900 deep where it says so."""
    return json.dumps(message).replace('"nested"', '{"a":' * 899 + "1" + "}" * 899).encode()


ATTACKS = {
    kind.__name__.lower(): kind
    for kind in (
        Nobody, Drip, DripRules, Silent, Unpaced, Unpacked, Rules, Interim, LateInterim, UnpacedInterim, Cacheable,
        Ports, Victims, Forged,
    )
}


class Honest(Attack):
    """A host that answers at once."""

    rate = "50/s"

    def addresses(self):
        return ["127.0.0.2"]

    async def page(self, writer):
        self.note()
        await super().page(writer)


class Slow(Honest):
    """A host that takes 2 s for each page."""

    rate = "1/s"

    async def page(self, writer):
        await asyncio.sleep(2)
        await super().page(writer)


class Site:
    """A site in a process of its own, within `with`."""

    def __init__(self, site, noted):
        self.site, self.noted = site, noted
        noted.write_bytes(b"")

    def __enter__(self):
        ready = multiprocessing.Event()
        self.process = multiprocessing.Process(target=run, args=(self.site, self.noted, ready), daemon=True)
        self.process.start()
        if not ready.wait(30):
            raise TimeoutError("the site has not started")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()

    def times(self):
        """When its site noted something, in seconds of `now`."""
        return [time for (time,) in struct.iter_unpack("d", self.noted.read_bytes())]


def run(site, noted, ready):
    with open(noted, "ab", buffering=0) as file:
        site.note = lambda: file.write(struct.pack("d", now()))
        if hasattr(site, "start"):
            site.start()
        asyncio.run(listen(site, ready))


async def listen(site, ready):
    for address, port in site.listeners():
        await asyncio.start_server(site.serve, address, port, limit=1 << 20)
    ready.set()
    await asyncio.Event().wait()


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)
