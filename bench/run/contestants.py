"""Who runs: each fetches all pages of the site, reads title and links, and leaves a JSON line for each."""

import pathlib
import time

PEERS = pathlib.Path(__file__).parent.parent / "peers"
# A crawl that has not ended after so many seconds never will.
TIMEOUT = 600
# A fleet is asked so often whether the crawl has ended.
LOOK = 0.01

POLITENESS_OFF = {
    "TRAWL__POLITENESS__RATE": "unlimited",
    "TRAWL__FETCH__ALLOW_PRIVATE": "true",
    "TRAWL__FETCH__CONTACT": "bench@localhost",
    "TRAWL__ITEMS__LINKS": "true",
    "TRAWL__LOG__LEVEL": "warn",
}


class Limit:
    """reqwest alone; what it fetches it forgets."""

    durable = "nothing"

    def __init__(self, programs, read):
        self.program, self.read = programs / "limit", read
        self.name = "reqwest + lol_html, the limit" if read else "reqwest"

    def run(self, watch, site, servers, folder):
        watch.start([self.program, site.folder / "urls.txt", *(["--read"] if self.read else [])])
        watch.await_all(TIMEOUT)
        watch.stop_clock()


class Embedded:
    """`trawl crawl`, from sitemaps to a file of items."""

    name = "trawl, embedded"
    durable = "every URL's state (SQLite), items"

    def __init__(self, programs):
        self.program = programs / "trawl"

    def run(self, watch, site, servers, folder):
        crawl(self.program, [], watch, site, folder)


class Fleet:
    """Workers on RabbitMQ and Redis; the producer has ended before the clock begins."""

    durable = "every URL's state (quorum queue, Redis), items"

    def __init__(self, programs, workers):
        self.program, self.workers = programs / "trawl", workers
        self.name = f"trawl, {workers} worker{'s' if workers > 1 else ''}"

    def fill(self, watch, site, servers, folder):
        self.place = servers.clean("bench")
        (folder / "trawl.toml").write_text(
            f'[[sinks]]\nkind = "jsonl"\npath = "{folder}/items-{{worker}}.jsonl"\n'
            '[[route]]\nlane = "bulk"\n'
        )
        self.environment = {**POLITENESS_OFF, **self.place}
        self.options = ["--config", folder / "trawl.toml"]
        command = [self.program, "producer", *site.sitemaps, "--crawl", "bench", *self.options]
        watch.start(command, self.environment)
        watch.await_all(TIMEOUT)

    def run(self, watch, site, servers, folder):
        for _ in range(self.workers):
            watch.start([self.program, "worker", *self.options], self.environment)
        deadline = time.monotonic() + TIMEOUT
        while servers.redis("HGET", "{crawled_urls}:crawl:bench", "status") != "finished":
            if time.monotonic() > deadline:
                raise TimeoutError(f"the crawl has not ended after {TIMEOUT} s")
            time.sleep(LOOK)
        watch.stop_clock()
        count_items(folder.glob("items-*.jsonl"), site)

    def tidy(self, servers):
        servers.remove("bench")


class Peer:
    """What a user would take instead: a folder of `bench/peers`, which says how it is set up."""

    def __init__(self, name, folder, installed, durable):
        self.name, self.durable = name, durable
        self.script, self.installed = PEERS / folder / "run", installed

    def fill(self, watch, site, servers, folder):
        self.environment = {
            **servers.clean("bench"), "DIR": self.installed, "URLS": site.folder / "urls.txt",
            "COUNT": len(site.urls), "OUT": folder / "items.jsonl",
        }
        watch.start([self.script, "fill"], self.environment)
        watch.await_all(TIMEOUT)

    def run(self, watch, site, servers, folder):
        watch.start([self.script, "crawl"], self.environment)
        finish(watch, site, folder)

    def tidy(self, servers):
        servers.remove("bench")


def crawl(program, options, watch, site, folder):
    """Runs `trawl crawl`, from sitemaps to a file of items."""
    command = [program, "crawl", *site.sitemaps, *options, "--state", folder / "crawl.db"]
    watch.start([*command, "--out", folder / "items.jsonl", "--quiet"], POLITENESS_OFF)
    finish(watch, site, folder)


def finish(watch, site, folder):
    """Waits for a contestant that writes its items to one file."""
    watch.await_all(TIMEOUT)
    watch.stop_clock()
    count_items(folder.glob("items.jsonl"), site)


def count_items(files, site):
    """What did not do the work has no speed."""
    count = 0
    for path in files:
        with open(path, "rb") as lines:
            count += sum(1 for _ in lines)
    if count != len(site.urls):
        raise RuntimeError(f"{count} items of {len(site.urls)} pages")
