"""Handlers at work on a fleet whose workers are killed: a script that calls an API and writes into PostgreSQL, documents that refer to each other, a slow processor
of pages, two Scrapy projects. `scenes.py [--short] [SCENE...]`; run by scripts/handlers."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fleet import HERE, Fleet, timed
from small_sites import Artists, Documents, Tree
from table import Table
from tutorial_sites import Books, Quotes

WORKERS = 3
# Tasks that one worker may have begun.
MOST_IN_HAND = 64
# The pace is judged over so many seconds. Requests that were sent in time may arrive together on a machine that is busy: so many more are allowed.
WINDOW, AT_ONCE = 10, 20
# By their names in spiders/: their folders and their spiders. bookshop has a downloader middleware of its own, and its spider `links` errbacks.
PROJECTS = {
    "quotes": ("quotesbot", ["quotes", "members", "scroll"]),
    "books": ("bookshop", ["links", "categories", "catalogue"]),
}


class Scale:
    """How much there is to do, and how often a worker is killed meanwhile."""

    def __init__(self, short):
        self.pairs, self.batch = (800, 20) if short else (350_000, 100)
        # How often the fleet may ask the API, a second.
        self.rate = 80 if short else 180
        # Of so many requests the API answers one with 429.
        self.busy = 151 if short else 1_501
        self.pages, self.chains, self.quotes, self.books = (31, 25, 30, 30) if short else (63, 500, 1_000, 1_000)
        # In seconds, for which a program works on a page.
        self.work = 0.4 if short else 60
        self.spiders = 1 if short else 3
        # In seconds, between two kills.
        self.kills = (2, 5) if short else (10, 30)
        self.timeout = 300 if short else 7_200


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def the_script_has_one_row_for_each_pair(scale, run):
    """The script inserts a row when the API has answered. A batch that is done again, after an answer 429 or a kill, is inserted again: the
    table keeps one row of it, and the API's log says how often it was done, and how fast."""
    api = Artists(flaky=scale.busy, busy=429)
    pairs = [{"name": f"Artist {number}", "mbid": f"{number:032x}"} for number in range(scale.pairs)]
    batches = [json.dumps(pairs[at : at + scale.batch]) for at in range(0, len(pairs), scale.batch)]
    with Table(f"artists_{run}") as table:
        environment = {"ARTISTS_SECRET": api.origin, "ARTISTS_DB": table.connection, "TRAWL__POLITENESS__RATE": f"{scale.rate}/s"}
        with Fleet(WORKERS, scale.timeout, **environment) as fleet:
            fleet.submit("artists", [{"recipe": batch, "unique": f"{run} {at}"} for at, batch in enumerate(batches)], f"artists-{run}")
            fleet.kill_now_and_then(*scale.kills, seed=1)
            ended, seconds = timed(fleet.wait, f"artists-{run}")
            kills = fleet.spare()
        found = table.rows()
    rows = Counter(mbid for mbid, _ in found)
    wrong = [data for _, data in found if "artists" not in json.loads(data)]
    check(rows == Counter(pair["mbid"] for pair in pairs), f"{len(rows)} rows for {len(pairs)} pairs")
    check(not wrong, f"{len(wrong)} rows say nothing")
    done = sum(stats["done"] for stats in ended)
    check(done == len(batches), f"{done} tasks are done of {len(batches)}")
    most = api.most_within(WINDOW)
    check(most <= WINDOW * scale.rate + AT_ONCE, f"{most} requests within {WINDOW} s, at a rate of {scale.rate}/s")
    print(
        f"  {len(pairs)} pairs in {len(batches)} tasks, {seconds:.0f} s, {kills} kills: {len(rows)} rows; "
        f"asked {api.requests} times, of which {api.requests // api.flaky} were answered 429; "
        f"at a rate of {scale.rate}/s the most within {WINDOW} s were {most}"
    )


def each_document_is_downloaded_once(scale, run):
    """From payments to contracts to tenders to their corrections, which lead back to payments."""
    site, crawl = Documents(run, scale.chains), f"documents-{run}"
    first = [f"payment-{run}-{number}" for number in range(0, scale.chains, 5)]
    with Fleet(WORKERS, scale.timeout, DOCUMENTS_SITE=site.origin) as fleet:
        # As the handler does: the id is all there is, and what makes it one.
        fleet.submit("documents", [{"recipe": id, "unique": id} for id in first], crawl)
        fleet.kill_now_and_then(*scale.kills, seed=2)
        ended, seconds = timed(fleet.wait, crawl)
        kills = fleet.spare()
        items = Counter(item["id"] for item in fleet.items(ended))
    expected = site.reachable(first)
    check(items == Counter(expected), f"items of {len(items)} documents, {sum(items.values())} in all, for {len(expected)}")
    admitted, done = ended[0]["admitted"], sum(stats["done"] for stats in ended)
    check(admitted == done == len(expected), f"{admitted} tasks, of which {done} are done, for {len(expected)} documents")
    again = sum(site.asked.values()) - len(expected)
    check(again <= kills * MOST_IN_HAND, f"{again} downloads too many for {kills} kills")
    print(f"  {len(expected)} documents, each once, {seconds:.0f} s, {kills} kills, after which {again} were downloaded again")


def the_crawl_ends_when_the_last_page_is_processed(scale, run):
    """Each page takes its time, and all workers find pages meanwhile."""
    site, crawl = Tree(scale.pages, scale.work), f"processor-{run}"
    with Fleet(WORKERS, scale.timeout) as fleet:
        fleet.trawl("producer", "--spider", "processor", "--crawl", crawl, "-a", f"site={site.origin}")
        # A page that takes a minute is never done where something is killed more often.
        fleet.kill_now_and_then(*(scale.work + bound for bound in scale.kills), seed=3)
        ended, seconds = timed(fleet.wait, crawl)
        over = time.time()
        kills = fleet.spare()
        items = fleet.items(ended)
    pages = Counter(item["page"] for item in items)
    expected = Counter(f"{site.origin}/page/{number}" for number in range(1, scale.pages + 1))
    check(pages == expected, f"{len(pages)} pages processed of {len(expected)}")
    done = sum(stats["done"] for stats in ended)
    check(done == len(expected), f"{done} done of {len(expected)}")
    last = max(item["ready"] for item in items)
    check(last <= over, "the crawl was over before its last page was processed")
    print(f"  {len(expected)} pages, {seconds:.0f} s, {kills} kills; the end was known {over - last:.1f} s after the last page")


def items_equal_those_of_scrapy_itself(scale, run):
    """Each spider of two projects by itself, as a whole run, and request by request."""
    sites = {"quotes": Quotes(scale.quotes, flaky=37), "books": Books(scale.books, flaky=37)}
    for project, (folder, spiders) in PROJECTS.items():
        site = sites[project].origin
        spiders = spiders[: scale.spiders]
        own = {spider: scrapy(HERE / "projects" / folder, spider, site) for spider in spiders}
        for way in ("run", "serve"):
            sites[project].clients.clear()
            with Fleet(WORKERS, scale.timeout) as fleet:
                fleet.kill_now_and_then(*scale.kills, seed=4)
                for spider in spiders:
                    equals(fleet, f"{project}-{way}", spider, site, f"{spider}-{way}-{run}", own[spider])
                print(f"  {fleet.spare()} kills", flush=True)
            # Workers ask for robots.txt, whoever downloads the rest.
            clients = dict(sites[project].clients)
            check(("Scrapy" in clients) == (way == "run"), f"{project}-{way}: the site was asked by {clients}")


def equals(fleet, spider, scrapy_spider, site, crawl, own):
    recipe = json.dumps({"spider": scrapy_spider, "args": {"site": site}})
    fleet.trawl("task", "submit", "--spider", spider, "--crawl", crawl, "--recipe", recipe, "--unique", crawl)
    ended, seconds = timed(fleet.wait, crawl)
    items = Counter(json.dumps(item, sort_keys=True) for item in fleet.items(ended))
    missing, extra = own - items, items - own
    check(not missing and not extra, f"{crawl}: {missing.total()} are missing as {list(missing)[:1]}, {extra.total()} too many")
    print(f"  {crawl}: {items.total()} items, {ended[0]['admitted']} admitted, {seconds:.0f} s", flush=True)


def scrapy(folder, spider, site):
    """The items of Scrapy's own run."""
    with tempfile.TemporaryDirectory() as temporary:
        feed = Path(temporary) / "items.jsonl"
        command = [
            Path(sys.executable).parent / "scrapy",
            "crawl",
            spider,
            "-a",
            f"site={site}",
            "-O",
            f"{feed}:jsonlines",
            "-L",
            "CRITICAL",
        ]
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
        return Counter(json.dumps(json.loads(line), sort_keys=True) for line in feed.open())


SCENES = {
    "script": the_script_has_one_row_for_each_pair,
    "documents": each_document_is_downloaded_once,
    "processor": the_crawl_ends_when_the_last_page_is_processed,
    "scrapy": items_equal_those_of_scrapy_itself,
}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    words = [word for word in sys.argv[1:] if word != "--short"]
    scale = Scale("--short" in sys.argv)
    # What was done in an earlier run is not done again: its names are others.
    run = f"{random.randrange(1 << 32):08x}"
    for name in words or SCENES:
        scene = SCENES[name]
        print(f"{scene.__name__.replace('_', ' ')}:", flush=True)
        _, seconds = timed(scene, scale, run)
        print(f"  in all {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
