"""The prototype's programs and trawl's on either side of the same queues: nothing is lost, and RabbitMQ's management and Redis
show what they showed. Run by scripts/prototype, which starts the servers."""

import base64
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import redis

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from checks import LIMIT, Site, until

TRAWL = os.environ["TRAWL"]


class Broker:
    """A virtual host of its own, and what the management API tells of it."""

    def __init__(self, name):
        parts = urlsplit(os.environ["RABBITMQ_MANAGEMENT_URL"])
        self.api = f"http://{parts.hostname}:{parts.port}/api"
        self.user = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
        self.name = name
        self.call("PUT", f"/vhosts/{name}", {})
        amqp = urlsplit(os.environ["RABBITMQ_URL"])
        self.url = f"{amqp.scheme}://{amqp.netloc}/{name}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.api + path, data, method=method)
        request.add_header("authorization", f"Basic {self.user}")
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def letters(self):
        ask = {"count": 100, "ackmode": "ack_requeue_true", "encoding": "auto"}
        return [letter["payload"] for letter in self.call("POST", f"/queues/{self.name}/failed_urls/get", ask)]

    def arguments(self, queue):
        return self.call("GET", f"/queues/{self.name}/{queue}")["arguments"]


class Stage:
    """Servers of one test, and the programs on them."""

    def __init__(self, number):
        self.broker = Broker(f"prototype-{os.getpid()}-{number}")
        self.redis_url = os.environ["REDIS_URL"].rsplit("/", 1)[0] + f"/{9000 + number}"
        self.redis = redis.Redis.from_url(self.redis_url, decode_responses=True)
        self.redis.flushdb()
        self.folder = tempfile.TemporaryDirectory()
        self.running = []

    def environment(self, **more):
        own = {"RABBITMQ_URL": self.broker.url, "REDIS_URL": self.redis_url, "TRAWL__FETCH__ALLOW_PRIVATE": "true"}
        own |= {"TRAWL__POLITENESS__RATE": "unlimited", "TRAWL__RECOVERY__LOST_AFTER": "4s", "TRAWL__RETRY__BACKOFF": "100ms"}
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return inherited | own | more

    def passive(self, **more):
        return self.environment(TRAWL__QUEUES__TOPOLOGY="passive", TRAWL__QUEUES__LISTEN="url_queue", **more)

    def start(self, name, command, environment):
        log = open(Path(self.folder.name) / f"{name}.log", "w+")
        process = subprocess.Popen(command, env=environment, cwd=self.folder.name, stdout=log, stderr=log)
        self.running.append(process)
        return log.name

    def seed_worker(self):
        log = self.start("seed-worker", [sys.executable, HERE / "worker.py"], self.environment())
        until("the prototype's worker listens", lambda: "starting to listen" in Path(log).read_text())
        return log

    def seed_producer(self, urls):
        command = [sys.executable, HERE / "producer.py"]
        done = subprocess.run(
            command, input="\n".join(urls), env=self.environment(), text=True, check=True, capture_output=True
        )
        return done.stdout

    def trawl(self, *words, environment=None, text=None):
        environment = environment or self.environment()
        return subprocess.run(
            [TRAWL, *words], env=environment, cwd=self.folder.name, input=text, text=True, capture_output=True
        )

    def trawl_worker(self, **more):
        return self.start("trawl-worker", [TRAWL, "worker"], self.passive(TRAWL__LOG__URLS="true", **more))

    def books(self):
        told = self.trawl("status", "adhoc", "--json")
        return json.loads(told.stdout) if told.returncode == 0 else {}

    def end(self):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(LIMIT)
        self.broker.call("DELETE", f"/vhosts/{self.broker.name}")


PAGES = [f"/page/{n}" for n in range(20)] + [f"/news/{n}" for n in range(10)] + [f"/plain/{n}" for n in range(10)]


def what_the_prototypes_producer_sends_trawls_worker_fetches(stage, site):
    urls = site.urls(PAGES + ["/missing", "/broken"]) + ["not-a-url"]
    # As the prototype's own worker keeps it.
    stage.redis.setex(f"content:{site.origin}/kept", 60, "<html><p>kept</html>")
    stage.seed_producer(urls + site.urls(["/kept"]))
    log = stage.trawl_worker(TRAWL__CACHE__ENCODING="plain")
    until("all is fetched", lambda: stage.books().get("done") == len(PAGES) + 1)
    assert site.asked["/kept"] == 0, "it was kept"
    until("what failed has ended", lambda: stage.books().get("failed") == 2)
    assert all(site.asked[path] == 1 for path in PAGES), site.asked
    until("three dead letters", lambda: len(stage.broker.letters()) == 3)
    assert set(stage.broker.letters()) == {site.origin + "/missing", site.origin + "/broken", "not-a-url"}
    page = site.origin + PAGES[0]
    assert "<p>Hello</html>" in stage.redis.get(f"content:{page}")
    assert stage.redis.get(f"failures:{site.origin}/broken") == "4"
    assert stage.redis.sismember("crawled_urls", page)
    told = Path(log).read_text()
    for part in ("waiting for messages", "fetching", "finished", "retrying", "dead letter", "invalid: no URL", "has no x-dead-letter-exchange"):
        assert part in told, (part, told)
    assert stage.broker.arguments("url_queue_ttl") == {"x-message-ttl": 3600000}, "nothing was declared anew"
    assert "Sent" not in stage.seed_producer(urls), "the prototype's own dedup holds"


def what_trawls_producer_sends_the_prototypes_worker_fetches(stage, site):
    paths = [path for path in PAGES if not path.startswith("/plain")]
    log = stage.seed_worker()
    urls = "\n".join(site.urls(paths + ["/broken"]))
    produced = stage.trawl("producer", "-", "-q", environment=stage.passive(), text=urls)
    assert produced.returncode == 0, produced
    until("all is fetched", lambda: all(site.asked[path] == 1 for path in paths))
    until("a dead letter", lambda: stage.broker.letters() == [site.origin + "/broken"])
    assert site.asked["/broken"] == 3
    told = Path(log).read_text()
    assert "AUTO-ACK processing" in told and "Max retries exceeded" in told, told
    until("all is said", lambda: Path(log).read_text().count("Finished processing") == len(paths))


def both_workers_share_one_queue(stage, site):
    stage.seed_worker()
    log = stage.trawl_worker(TRAWL__QUEUES__PRIORITY__ACKS="none", TRAWL__QUEUES__BULK__ACKS="none")
    until("trawl's worker listens", lambda: "listening to a queue of another program" in Path(log).read_text())
    stage.seed_producer(site.urls(PAGES))
    until("all is fetched", lambda: all(site.asked[path] == 1 for path in PAGES))
    # The marks that trawl sends through its queues are no URLs to the prototype.
    assert set(stage.broker.letters()) <= {"probe"}, stage.broker.letters()


def main():
    scenes = [
        what_the_prototypes_producer_sends_trawls_worker_fetches,
        what_trawls_producer_sends_the_prototypes_worker_fetches,
        both_workers_share_one_queue,
    ]
    for number, scene in enumerate(scenes):
        stage, site = Stage(number), Site()
        try:
            scene(stage, site)
        except BaseException:
            for log in Path(stage.folder.name).glob("*.log"):
                print(f"--- {log.name}\n{log.read_text()[-6000:]}", file=sys.stderr)
            raise
        finally:
            stage.end()
        print(scene.__name__.replace("_", " "))


main()
