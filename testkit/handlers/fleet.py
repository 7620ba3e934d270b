"""A fleet whose workers are killed and started again, and what a person would do with it."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRAWL = os.environ.get("TRAWL", str(ROOT / "target/debug/trawl"))


class Fleet:
    """Workers in a folder of their own, which has the spiders and projects of this one."""

    def __init__(self, workers, timeout, **environment):
        self.timeout = timeout
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        for name in ("spiders", "projects"):
            subprocess.run(["cp", "-r", HERE / name, self.folder], check=True)
        subprocess.run(["cp", ROOT / "sdk/python/trawl_handler.py", self.folder / "spiders/processor"], check=True)
        inherited = {name: os.environ[name] for name in ("HOME", "RABBITMQ_URL", "REDIS_URL")}
        # Beside this Python there are `trawl-scrapy` and `scrapy`.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {
            **inherited,
            "PATH": path,
            "TRAWL__FETCH__ALLOW_PRIVATE": "true",
            "TRAWL__POLITENESS__RATE": "unlimited",
            "TRAWL__RECOVERY__LOST_AFTER": "4s",
            "TRAWL__RETRY__BACKOFF": "200ms",
            # What programs ask goes through the worker's proxy: a host that answers 429 is left alone.
            "TRAWL__POLITENESS__BACKOFF": "200ms",
            **environment,
        }
        self.log = open(self.folder / "workers.log", "w")
        self.workers = [self.start() for _ in range(workers)]
        self.kills, self.killer, self.is_over = 0, None, threading.Event()

    def start(self):
        return subprocess.Popen([TRAWL, "worker"], env=self.environment, cwd=self.folder, stderr=self.log, stdout=self.log)

    def kill_now_and_then(self, least, most, seed):
        """Kills a worker, or any process that a worker has started, with SIGKILL after any time within these bounds, again and again.
        Starts another worker in the place of one that was killed."""
        chance = random.Random(seed)
        self.is_over.clear()

        def kill():
            while not self.is_over.wait(chance.uniform(least, most)):
                number = chance.randrange(len(self.workers))
                worker = self.workers[number]
                others = descendants(worker.pid)
                if others and chance.random() < 0.5:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chance.choice(others), signal.SIGKILL)
                else:
                    worker.send_signal(signal.SIGKILL)
                    worker.wait()
                    self.workers[number] = self.start()
                self.kills += 1

        self.kills, self.killer = 0, threading.Thread(target=kill)
        self.killer.start()

    def spare(self):
        """Kills no more. Returns how many were killed."""
        self.is_over.set()
        self.killer.join()
        return self.kills

    def trawl(self, *words, codes=(0,), stdin=None):
        """What a command prints."""
        done = subprocess.run(
            [TRAWL, *words], env=self.environment, cwd=self.folder, input=stdin, capture_output=True, text=True, timeout=self.timeout
        )
        if done.returncode not in codes:
            raise AssertionError(f"trawl {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, spider, tasks, crawl):
        """As a list, which the producer reads."""
        (self.folder / f"{crawl}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        self.trawl("producer", "--spider", spider, "--crawl", crawl, f"{crawl}.jsonl")

    def wait(self, crawl):
        """The stats of a crawl at its end, and of the crawls of its dead letters, which are sent again until none is left."""
        ended = [self.end_of(crawl)]
        while ended[-1]["failed"]:
            if len(ended) == 6:
                raise AssertionError(f"tasks fail again and again: {self.trawl('dlq', 'list', '--json')[:4000]}")
            print(f"  {ended[-1]['failed']} dead letters are sent again", flush=True)
            sent = json.loads(self.trawl("dlq", "replay", "--crawl", ended[-1]["crawl"], "--json"))
            ended.append(self.end_of(sent["crawls"][-1]))
        return ended

    def end_of(self, crawl):
        return json.loads(self.trawl("wait", crawl, "--json", codes=(0, 3)))

    def items(self, ended):
        """All items of the crawls that have ended, one of each id."""
        found = {}
        for stats in ended:
            for line in self.trawl("items", "-q", "--crawl", stats["crawl"]).splitlines():
                item = json.loads(line)
                found[item["id"]] = item["fields"]
        return list(found.values())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.killer:
            self.spare()
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(self.timeout)
        self.log.close()
        if kind is AssertionError:
            print((self.folder / "workers.log").read_text()[-4000:])
        self.temporary.cleanup()


def descendants(pid):
    """All processes that a process has started, and those that they have."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                found += [int(child), *descendants(child)]
    return found


def timed(call, *arguments):
    """What a call returns, and how long it took."""
    began = time.monotonic()
    return call(*arguments), time.monotonic() - began
