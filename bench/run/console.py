"""What the console costs: how long each page takes over a large fleet, and what 20 open pages take from a worker.

The fleet has 1,000 hosts, 100 crawls and 10,000 dead letters, all made by a worker whose pages a proxy on this machine makes up."""

import argparse
import http.client
import http.server
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

from measure import cpu
from servers import Servers

HOSTS, CRAWLS, LETTERS = 1_000, 100, 10_000
EVERY = 3.0


class Web(http.server.BaseHTTPRequestHandler):
    """What a proxy answers for all hosts: that there is no such page, or a small page below `/good`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status = 200 if "/good" in self.path else 404
        self.send_response(status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", "20")
        self.end_headers()
        self.wfile.write(b"<title>A page</title>"[:20])

    def log_message(self, *_):
        pass


def main():
    options = arguments()
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    servers = Servers(options.servers)
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder) / "log", "wb") as log:
        settings = {
            "TRAWL__FETCH__PROXY": f"http://127.0.0.1:{web.server_port}",
            "TRAWL__POLITENESS__RATE": "unlimited", "TRAWL__POLITENESS__ADDRESS_RATE": "unlimited",
            "TRAWL__POLITENESS__ROBOTS": "false", "TRAWL__RETRY__MAX": "0",
        }
        environment = {**os.environ, **settings, **servers.clean("bench")}
        trawl = [options.programs / "trawl"]

        def start(*words, **more):
            return subprocess.Popen([*trawl, *words], env=environment, cwd=folder, text=True, stdout=log, **more)

        worker = start("worker", stderr=log)
        console = start("console", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        try:
            address = answered(console)
            pids = {"console": console.pid, "worker": worker.pid, **servers.pids}
            crawl, busy = fill(trawl, environment, folder, pids)
            times(address, crawl)
            share(address, crawl, pids, busy, options.seconds)
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


def fill(trawl, environment, folder, pids):
    """Crawls; returns one, and CPU seconds a second of all at work as long as the worker is busy."""
    def produce(urls, *words):
        return subprocess.run([*trawl, "producer", "-", *words], env=environment, cwd=folder, input="".join(urls), text=True,
                              capture_output=True, check=False).stdout.strip()

    before, begun = {name: cpu(pid) for name, pid in pids.items()}, time.monotonic()
    letters = [f"http://h{number % HOSTS}.example/missing/{number}\n" for number in range(LETTERS)]
    crawl = produce(letters, "--wait")
    seconds = time.monotonic() - begun
    busy = {name: (cpu(pid) - before[name]) / seconds for name, pid in pids.items() if name != "console"}
    shown = ", ".join(f"{name} {value:.2f}" for name, value in busy.items())
    print(f"{LETTERS:,} pages by one worker: {LETTERS / seconds:,.0f} a second; cores in use: {shown}\n", flush=True)
    for number in range(CRAWLS - 1):
        produce([f"http://h{page}.example/good/{number}\n" for page in range(20)])
    return crawl, sum(busy.values())


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


def share(address, crawl, pids, busy, seconds):
    """What 20 pages cost that update themselves, in cores, beside what a busy worker and its servers use."""
    idle = used(pids, seconds)
    pages = ["/"] * 6 + [f"/crawls/{crawl}"] * 4 + ["/crawls"] * 3 + ["/hosts"] * 3 + ["/workers"] * 2 + ["/jobs", "/schedules"]
    over = threading.Event()

    def look(path, first):
        over.wait(first)
        while not over.is_set():
            get(address, path)
            over.wait(EVERY)

    watching = [threading.Thread(target=look, args=(path, EVERY * place / len(pages))) for place, path in enumerate(pages)]
    for thread in watching:
        thread.start()
    time.sleep(EVERY)
    looked = used(pids, seconds)
    over.set()
    for thread in watching:
        thread.join()
    print(f"\n| cores in use, over {seconds} s | no page open | 20 pages open |\n|---|---|---|")
    for name in pids:
        print(f"| {name} | {idle[name]:.4f} | {looked[name]:.4f} |")
    servers = sum(looked[name] - idle[name] for name in ("redis", "rabbitmq"))
    console = looked["console"] - idle["console"]
    print(f"\n20 pages take {servers:.4f} cores of the servers and {console:.4f} of the console: {(servers + console) / busy:.1%} of the "
          f"{busy:.2f} cores that a busy worker and its servers use, {servers / busy:.1%} without the console's own.")


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
    parser.add_argument("--seconds", type=int, default=60, help="how long the cost is measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
