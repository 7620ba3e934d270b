"""Who crawls, and how each is started: by the settings in its folder of `peers`."""

import dataclasses
import pathlib
import subprocess

PEERS = pathlib.Path(__file__).parent / "peers"
AGAIN = PEERS.parent / "again.py"


@dataclasses.dataclass
class Place:
    """Where a crawl runs: its folder, its start URL, the environment that names its servers, and what is installed."""

    folder: pathlib.Path
    seed: str
    environment: dict
    installed: pathlib.Path
    trawl: pathlib.Path


class Contestant:
    """`needs` are its servers, and `queue` the one that holds its queue. `count` workers run; they are services, or one
    crawl that ends with a code of `done`. `state` are the files that it resumes from. `without` gives the reason for each
    fault that cannot come over it."""

    needs, queue, count, service, done, state, without = (), None, 1, False, (0,), (), {}

    def environment(self):
        return {}

    def fill(self, place):
        """The command that starts the crawl, if the workers don't."""

    def wait(self, place):
        """The command that ends when the crawl has said that it is over, if the workers don't."""

    def send_again(self, place, servers):
        """Delivers once more what waits in its queue, or is with a worker; returns how many messages waited."""
        raise NotImplementedError


ALONE = {
    "broker": "it has no broker",
    "emptied": "its state is files of its own",
    "duplicate": "nothing is delivered to it",
}


def send_again(place, servers, queues):
    """Doubles the messages in these queues of RabbitMQ, and has those delivered again that workers have."""
    command = [place.installed / "celery/bin/python", AGAIN, servers.urls["RABBITMQ_URL"], *queues]
    count = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    servers.rabbitmq.cut_off()
    return count


class Fleet(Contestant):
    name, needs, queue, count, service = "trawl", ("redis", "rabbitmq"), "rabbitmq", 2, True

    def environment(self):
        return {"TRAWL__SPIDERS_DIR": PEERS / "trawl/spiders"}

    def command(self, place, *words):
        return [place.trawl, *words, "--config", PEERS / "trawl/trawl.toml"]

    def worker(self, place, number):
        return self.command(place, "worker")

    def fill(self, place):
        return ["sh", "-c", "echo \"$SEED\" | \"$@\"", "sh",
                *self.command(place, "producer", "-", "--spider", "pages", "--crawl", "loss")]

    def wait(self, place):
        return self.command(place, "wait", "loss")

    def send_again(self, place, servers):
        lanes = ("url_queue_ttl", "priority_queue", "due_queue")
        queues = [name for name in servers.rabbitmq.queues() if name in lanes or name.startswith("wait.")]
        return send_again(place, servers, queues)


class Embedded(Contestant):
    name, done, state, without = "trawl, one process", (0, 3), ("crawl.db", "crawl.db-wal", "crawl.db-shm"), ALONE

    def worker(self, place, number):
        return [place.trawl, "crawl", place.seed, "--spider", PEERS / "trawl/spiders/pages.toml", "--state", "crawl.db",
                "--out", "items.jsonl", "--quiet", "--config", PEERS / "trawl/trawl.toml"]


class Scrapy(Contestant):
    name, state, without = "Scrapy, JOBDIR", ("job",), ALONE

    def worker(self, place, number):
        return ["env", "-C", PEERS / "scrapy", place.installed / "scrapy/bin/scrapy", "crawl", "pages",
                "-s", f"JOBDIR={place.folder}/job", "-o", f"{place.folder}/items.jsonl"]


class ScrapyRedis(Contestant):
    name, needs, queue, count = "scrapy-redis", ("redis",), "redis", 2
    without = {"duplicate": "its queue is a set: it holds nothing twice"}

    def worker(self, place, number):
        return ["env", "-C", PEERS / "scrapy_redis", place.installed / "scrapy/bin/scrapy", "crawl", "pages",
                "-o", f"{place.folder}/items-{number}.jsonl"]

    def fill(self, place):
        return [place.installed / "scrapy/bin/python", PEERS / "scrapy_redis/fill.py"]


class Celery(Contestant):
    name, needs, queue, count, service = "Celery", ("redis", "rabbitmq"), "rabbitmq", 2, True
    late = 0

    def environment(self):
        return {"LATE": self.late}

    def worker(self, place, number):
        return ["env", "-C", PEERS / "celery", place.installed / "celery/bin/celery", "-A", "tasks", "worker",
                "-n", f"worker-{number}@%h", "--loglevel", "INFO"]

    def fill(self, place):
        return [place.installed / "celery/bin/python", PEERS / "celery/fill.py"]

    def wait(self, place):
        return [place.installed / "celery/bin/python", PEERS / "celery/wait.py"]

    def send_again(self, place, servers):
        return send_again(place, servers, ["celery"])


class CeleryLate(Celery):
    name, late = "Celery, acks_late", 1


class RQ(Contestant):
    # The first worker runs the job that crawls.
    name, needs, queue, count, service = "RQ", ("redis",), "redis", 3, True
    without = {"clock": "its workers cannot sleep under libfaketime"}

    def worker(self, place, number):
        # An idle worker looks for jobs of dead ones every seven to ten minutes by default, which would only make runs longer.
        return ["env", "-C", PEERS / "rq", place.installed / "rq/bin/rq", "worker", "fetches" if number else "crawls",
                "--url", place.environment["REDIS_URL"], "--with-scheduler", "--maintenance-interval", "30",
                "--worker-ttl", "45"]

    def fill(self, place):
        return [place.installed / "rq/bin/python", PEERS / "rq/fill.py"]

    def wait(self, place):
        return [place.installed / "rq/bin/python", PEERS / "rq/wait.py"]

    def send_again(self, place, servers):
        jobs = servers.redis.command("LRANGE", "rq:queue:fetches", 0, -1)
        if jobs:
            servers.redis.command("RPUSH", "rq:queue:fetches", *jobs)
        return len(jobs)


class Crawlee(Contestant):
    name, state = "Crawlee", ("storage",)
    without = {**ALONE, "clock": "it cannot sleep under libfaketime"}

    def environment(self):
        return {"CRAWLEE_PURGE_ON_START": "0", "CRAWLEE_STORAGE_DIR": "storage"}

    def worker(self, place, number):
        return [place.installed / "crawlee/bin/python", PEERS / "crawlee/crawl.py"]


CONTESTANTS = {
    "trawl": Fleet(), "embedded": Embedded(), "scrapy": Scrapy(), "scrapy-redis": ScrapyRedis(), "celery": Celery(),
    "celery-late": CeleryLate(), "rq": RQ(), "crawlee": Crawlee(),
}
