"""What the console costs: how long each page takes over a large fleet, and what 20 open pages take from a worker.

The fleet has 1,000 hosts, 100 crawls and 10,000 dead letters, all made by a worker whose pages a proxy on this machine makes up. What the pages
take is measured in pairs, one stretch with them and one without, in an order that alternates, while the worker has always more to do."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from measure import cpu
from servers import Servers

HOSTS, CRAWLS, LETTERS = 1_000, 100, 10_000
EVERY = 3.0


# nginx takes less of the machine than anything in Python, which would be what limits the worker.
CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000; default_type text/html;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port};
    location /good/ {{ return 200 "<title>A page</title>"; }}
    location / {{ return 404 "<title>None</title>"; }}
  }}
}}
"""


@contextlib.contextmanager
def proxy(folder):
    """What answers for all hosts: that there is no such page, or a small page below `/good`. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, port=port))
    server = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder])
    try:
        yield port
    finally:
        server.terminate()
        server.wait()


def main():
    options = arguments()
    servers = Servers(options.servers)
    with tempfile.TemporaryDirectory() as name, proxy(pathlib.Path(name)) as port, open(pathlib.Path(name) / "log", "wb") as log:
        settings = {
            "TRAWL__FETCH__PROXY": f"http://127.0.0.1:{port}",
            "TRAWL__POLITENESS__RATE": "1000/s", "TRAWL__POLITENESS__ADDRESS_RATE": "unlimited",
            "TRAWL__POLITENESS__ROBOTS": "false", "TRAWL__RETRY__MAX": "0", "TRAWL__PRODUCER__MAX_BACKLOG": "1000000000",
        }
        environment = {**os.environ, **settings, **servers.clean("bench")}
        trawl = [options.programs.resolve() / "trawl"]

        def start(*words, **more):
            return subprocess.Popen([*trawl, *words], env=environment, cwd=name, text=True, stdout=log, **more)

        def produce(urls, *words):
            done = subprocess.run([*trawl, "producer", "-", *words], env=environment, cwd=name, input="".join(urls), text=True,
                                  capture_output=True, check=False)
            assert done.stdout.strip(), done.stderr
            return done.stdout.strip()

        worker = start("worker", stderr=log)
        console = start("console", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        try:
            address = answered(console)
            pids = {"console": console.pid, "worker": worker.pid, **servers.pids}
            crawl, a_page, rate = fill(produce, pids)
            times(address, crawl)
            pages = Pages(address, crawl)
            cores(pages, pids, a_page, options.seconds)
            throughput(pages, produce, pids, rate, options)
        finally:
            for process in (worker, console):
                process.terminate()
                process.wait(60)
            servers.remove("bench")


def answered(console):
    said = ""
    while "serving http://" not in said:
        said = console.stderr.readline()
        assert said, "trawl console has ended"
    threading.Thread(target=lambda: [None for _ in console.stderr], daemon=True).start()
    return said.split("serving http://")[1].split("/,")[0]


def fill(produce, pids):
    """Crawls; returns a crawl, the CPU seconds that a page takes of each, and the pages of a second."""
    before, begun = {name: cpu(pid) for name, pid in pids.items()}, time.monotonic()
    letters = [f"http://h{number % HOSTS}.example/missing/{number}\n" for number in range(LETTERS)]
    crawl = produce(letters, "--wait")
    seconds = time.monotonic() - begun
    a_page = {name: (cpu(pid) - before[name]) / LETTERS for name, pid in pids.items() if name != "console"}
    shown = ", ".join(f"{name} {value * 1e6:.0f}" for name, value in a_page.items())
    print(f"{LETTERS:,} pages at {LETTERS / seconds:,.0f} a second; CPU in µs a page: {shown}\n", flush=True)
    for number in range(CRAWLS - 1):
        produce([f"http://h{page}.example/good/{number}\n" for page in range(20)])
    return crawl, a_page, LETTERS / seconds


def times(address, crawl):
    """How long each page takes, one after the other; none is asked for again within the second that an answer is kept."""
    paths = ["/", "/crawls", f"/crawls/{crawl}", "/jobs", "/spiders", "/schedules", "/workers", "/hosts", "/hosts?host=h7.example",
             "/dead-letters", "/dead-letters?host=h7.example", "/dead-letters?reason=final", f"/dead-letters?crawl={crawl}",
             "/dead-letters/replay", "/dead-letters/purge?host=h7.example", f"/crawls/{crawl}/url?url=http://h7.example/missing/7"]
    print("| page | median, ms | longest, ms | size, KB |\n|---|---|---|---|")
    taken, sizes = {path: [] for path in paths}, {}
    for _ in range(5):
        for path in paths:
            begun = time.monotonic()
            sizes[path] = len(get(address, path))
            taken[path].append((time.monotonic() - begun) * 1e3)
        time.sleep(1)
    for path, each in taken.items():
        print(f"| {path.replace(crawl, 'ID')} | {statistics.median(each):.0f} | {max(each):.0f} | {sizes[path] / 1e3:.0f} |", flush=True)


class Pages:
    """20 pages that update themselves every three seconds, as long as they are open."""

    def __init__(self, address, crawl):
        self.address = address
        self.paths = ["/"] * 6 + [f"/crawls/{crawl}"] * 4 + ["/crawls"] * 3 + ["/hosts"] * 3 + ["/workers"] * 2 + ["/jobs", "/schedules"]

    @contextlib.contextmanager
    def open(self, is_open=True):
        over = threading.Event()
        looking = [threading.Thread(target=self.look, args=(path, place, over)) for place, path in enumerate(self.paths) if is_open]
        for thread in looking:
            thread.start()
        # Until each has been loaded once.
        time.sleep(EVERY)
        try:
            yield
        finally:
            over.set()
            for thread in looking:
                thread.join()

    def look(self, path, place, over):
        over.wait(EVERY * place / len(self.paths))
        while not over.is_set():
            get(self.address, path)
            over.wait(EVERY)


def cores(pages, pids, a_page, seconds):
    """What 20 pages cost a fleet that has nothing to do, beside what a worker with a core to itself and its servers would use."""
    idle = used(pids, seconds)
    with pages.open():
        looked = used(pids, seconds)
    print(f"\n| cores in use, over {seconds} s | no page open | 20 pages open |\n|---|---|---|")
    for name in pids:
        print(f"| {name} | {idle[name]:.4f} | {looked[name]:.4f} |")
    full = sum(a_page.values()) / a_page["worker"]
    servers = sum(looked[name] - idle[name] for name in ("redis", "rabbitmq"))
    console = looked["console"] - idle["console"]
    print(f"\n20 pages take {servers:.4f} cores of the servers and {console:.4f} of the console. A worker with a core to itself would fetch "
          f"{1 / a_page['worker']:,.0f} pages a second, and have {full:.2f} cores busy with its servers: {(servers + console) / full:.1%} of that, "
          f"{servers / full:.1%} without the console's own.\n", flush=True)


def throughput(pages, produce, pids, rate, options):
    """Pages a second of a worker that has always more to do, in pairs: with 20 pages open and with none, one time this first and one time that."""
    needed = int(2 * rate * options.rounds * 2 * (options.seconds + EVERY)) + LETTERS
    crawl = produce(f"http://h{number % HOSTS}.example/good/more/{number}\n" for number in range(needed))
    print(f"A crawl of {needed:,} pages.\n\n| pair | first | no page open, pages/s | 20 open, pages/s | less | cores in use |\n|---|---|---|---|---|---|")
    none, shown = [], []
    for pair in range(options.rounds):
        order = [False, True] if pair % 2 == 0 else [True, False]
        for is_open in order:
            with pages.open(is_open):
                found, busy = pages_per_second(pages.address, crawl, pids, options.seconds)
            (shown if is_open else none).append(found)
        less = 1 - shown[-1] / none[-1]
        print(f"| {pair + 1} | {'open' if order[0] else 'none'} | {none[-1]:,.0f} | {shown[-1]:,.0f} | {less:+.1%} | {busy:.2f} |", flush=True)
    pairs = sorted(1 - with_pages / without for with_pages, without in zip(shown, none))
    noise = [abs(1 - later / sooner) for sooner, later in zip(none, none[1:])]
    low, _, high = statistics.quantiles(pairs, n=4) if len(pairs) > 1 else pairs * 3
    print(f"\n20 open pages take {statistics.median(pairs):.1%} of a worker's pages in the median of {len(pairs)} pairs, half of which are between "
          f"{low:.1%} and {high:.1%}. " + (f"Two stretches without pages differ by {statistics.median(noise):.1%}: what is less cannot be told from chance." if noise else ""))


def pages_per_second(address, crawl, pids, seconds):
    """The worker's, and the cores that all are busy with."""
    def done():
        known = json.loads(get(address, f"/api/v1/crawls/{crawl}"))
        assert known["pending"] > 0, "the crawl has ended: there must always be more to do"
        return known["done"]

    before, cores, begun = done(), sum(map(cpu, pids.values())), time.monotonic()
    time.sleep(seconds)
    after, cores_after, taken = done(), sum(map(cpu, pids.values())), time.monotonic() - begun
    return (after - before) / taken, (cores_after - cores) / taken


def used(pids, seconds):
    before = {name: cpu(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    return {name: (cpu(pid) - before[name]) / seconds for name, pid in pids.items()}


def get(address, path):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, (path, answer.status, body[:2000])
    return body


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--servers", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=20, help="how long each stretch is measured")
    parser.add_argument("--rounds", type=int, default=10, help="pairs of stretches")
    return parser.parse_args()


if __name__ == "__main__":
    main()
