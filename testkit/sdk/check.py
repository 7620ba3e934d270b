"""The clients in sdk/ against a fleet: the one for Python scene by scene, the web application of its examples, and the one for
TypeScript by check.mjs. Run by scripts/sdk, which starts the servers and says whether there is Node."""

import hashlib
import hmac
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "testkit"))
from checks import LIMIT, TOKEN, Fleet, Site, until

import trawl

SECRET = "0123456789abcdef0123456789abcdef"

SHOP = """
[start]
urls = ["{origin}/{{arg.category}}"]
[arguments]
category = {{ help = "which category" }}
"""

# As docs/start-from-anywhere.md has it.
WHOLE = """
[arguments]
start = { help = "the page to start at" }
[start]
urls = ["{arg.start}"]
[follow]
[fields]
title = { css = "title" }
"""

HOOK = """
[[webhooks]]
url = "http://127.0.0.1:{port}/hooks/trawl"
secret = {{ env = "WEB_APP_SECRET" }}
events = ["crawl.finished", "crawl.cancelled"]
spiders = ["whole-site"]
"""


class Lossy:
    """Passes connections on to the API. Of every other one the first answer is lost, after the API has given it."""

    def __init__(self, url):
        host, port = url.split("//")[1].split(":")
        self.api, self.lost, self.open = (host, int(port)), 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        is_lossy = True
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.pass_on, args=(client, is_lossy), daemon=True).start()
            is_lossy = not is_lossy

    def pass_on(self, client, is_lossy):
        api = socket.create_connection(self.api)
        self.open += [client, api]
        threading.Thread(target=pump, args=(client, api.sendall, api), daemon=True).start()
        if is_lossy:
            api.recv(65_536)
            self.lost += 1
        else:
            pump(api, client.sendall, client)
        self.cut([client, api])

    def cut(self, sockets=None):
        for one in list(self.open) if sockets is None else sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def pump(source, send, target):
    try:
        while data := source.recv(65_536):
            send(data)
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Refusing:
    """An API that answers with these statuses, one after the other, and with `{}` to what comes then."""

    def __init__(self, *statuses):
        self.left, self.asked = list(statuses), Counter()
        refusing = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                refusing.asked[self.path] += 1
                status = refusing.left.pop(0) if refusing.left else 200
                body = json.dumps({"status": status, "workers": []}).encode()
                self.send_response(status)
                if status == 503:
                    self.send_header("retry-after", "1")
                if status == 302:
                    self.send_header("location", f"{refusing.url}/elsewhere")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"


def raised(kind, call, *said):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in said), error
        return error
    raise AssertionError(f"no {kind.__name__}")


def a_crawl_is_started_waited_for_and_its_items_read(client, site, fleet):
    crawl = client.start("shop", args={"category": "books"}, priority=2)
    assert (crawl.spider, crawl.job["arguments"], crawl.job["priority"]) == ("shop", {"category": "books"}, 2)
    items = list(crawl.wait(LIMIT).items())
    assert [item["url"] for item in items] == [f"{site.origin}/books"], (items, crawl.stats)
    assert (crawl.status, crawl.over, crawl.stats["done"]) == ("finished", True, 1), crawl.stats
    assert client.crawl(crawl.id).stats["done"] == 1
    assert crawl.id in [known.id for known in client.crawls(spider="shop", status="finished")]
    assert [host["done"] for host in crawl.hosts()] == [1]


def what_goes_wrong_is_raised_as_the_problem_that_it_is(client, site, fleet):
    missing = raised(trawl.ApiError, lambda: client.crawl("none"), "404", "no crawl none")
    assert (missing.status, missing.kind, missing.type) == (404, "not-found", "urn:problem-type:trawl:not-found")
    raised(trawl.ApiError, lambda: client.start("shop"), "400", "arguments.category: has no default")
    raised(trawl.ApiError, lambda: trawl.Client(fleet.url, token="guessed").workers(), "401", "Bearer")
    raised(trawl.JobFailed, lambda: client.start("nowhere").wait(LIMIT), "nowhere")
    slow = client.start(urls=site.urls(["/timeout/slow"]))
    raised(TimeoutError, lambda: slow.wait(0.5), slow.id)
    slow.cancel()
    unused = socket.create_server(("127.0.0.1", 0))
    port = unused.getsockname()[1]
    unused.close()
    raised(trawl.Unreachable, lambda: trawl.Client(f"http://127.0.0.1:{port}", retry_for=0.5).workers(), "refused")


def a_start_whose_answer_is_lost_is_one_crawl(client, site, fleet):
    lossy, key = Lossy(fleet.url), str(uuid.uuid4())
    crawl = trawl.Client(lossy.url, token=TOKEN).start("shop", args={"category": key}, key=key)
    assert lossy.lost == 1
    again = client.start("shop", args={"category": "another"}, key=key)
    assert again.id == crawl.id
    crawl.wait(LIMIT)
    assert (site.asked[f"/{key}"], site.asked["/another"]) == (1, 0)
    alike = [known.id for known in client.crawls(spider="shop") if known.job and known.job["arguments"] == {"category": key}]
    assert alike == [crawl.id]


def what_cannot_be_repeated_is_not_and_what_is_refused_for_now_is_asked_again(client, site, fleet):
    lossy = Lossy(fleet.url)
    raised(trawl.Unreachable, lambda: trawl.Client(lossy.url, token=TOKEN).replay(reason="retries"))
    assert lossy.lost == 1
    busy = Refusing(503, 429)
    assert trawl.Client(busy.url).workers() == [] and busy.asked["/api/v1/workers"] == 3
    busy = Refusing(503, 503)
    error = raised(trawl.ApiError, lambda: trawl.Client(busy.url).purge(all=True), "503")
    assert error.retry_after == 1 and busy.asked["/api/v1/dead-letters/purge"] == 1
    moved = Refusing(302)
    raised(trawl.ApiError, lambda: trawl.Client(moved.url, token=TOKEN).workers(), "302")
    assert moved.asked["/elsewhere"] == 0


def a_crawl_is_steered_and_followed_over_connections_that_break(client, site, fleet):
    lossy = Lossy(fleet.url)
    crawl = trawl.Client(lossy.url, token=TOKEN).start(urls=site.urls(["/steered/slow"]))
    until("it runs", lambda: crawl.refresh().status == "running" and site.asked["/steered/slow"])
    assert crawl.pause().status == "paused" and crawl.resume().status == "running"
    assert crawl.add(site.urls(["/steered/more"])) <= 1
    assert crawl.url(f"{site.origin}/steered/slow")["state"] == "pending"
    events = crawl.events()
    assert not next(events)["over"]
    lossy.cut()
    site.goes_on.set()
    *_, last = events
    assert (last["over"], last["done"], crawl.over) == (True, 2, True), last
    site.goes_on.clear()


def a_crawl_is_cancelled(client, site, fleet):
    crawl = client.start(urls=site.urls(["/cancelled/slow", "/cancelled/slow?2"]))
    until("it runs", lambda: crawl.refresh().status == "running")
    assert crawl.cancel().status == "cancelled"
    site.goes_on.set()
    assert crawl.wait(LIMIT).stats["cancelled"] > 0, crawl.stats
    site.goes_on.clear()
    raised(trawl.ApiError, lambda: crawl.pause(), "409")


def items_come_while_the_crawl_runs_and_go_on_where_a_cursor_says(client, site, fleet):
    crawl = client.start(urls=site.urls(["/live/1", "/live/slow"]))
    items = crawl.items()
    assert next(items)["url"].endswith("/live/1") and not crawl.refresh().over
    site.goes_on.set()
    assert [item["url"] for item in items] == [f"{site.origin}/live/slow"]
    crawl.wait(LIMIT)
    assert list(crawl.items(cursor=items.cursor)) == []
    site.goes_on.clear()


def dead_letters_are_listed_sent_again_and_purged(client, site, fleet):
    crawl = client.start(urls=site.urls(["/missing"])).wait(LIMIT)
    letters = list(crawl.dead_letters())
    assert [(letter["url"], letter["status"]) for letter in letters] == [(f"{site.origin}/missing", 404)]
    assert crawl.url(f"{site.origin}/missing")["state"] == "failed"
    replayed = client.replay(crawl=crawl.id)
    assert replayed == {"sent": 1, "crawls": [f"{crawl.id}.r1"]}, replayed
    again = client.crawl(f"{crawl.id}.r1").wait(LIMIT)
    assert client.purge(crawl=again.id) == 1 and list(again.dead_letters()) == []


def the_log_and_what_is_left_of_tasks_are_read(client, site, fleet):
    assert any(entry["message"].startswith("the worker has started") for entry in client.logs(level="info"))
    assert list(client.logs(task="task:0123456789abcdef0123456789abcdef")) == []
    assert list(client.tasks(place="failed")) == []
    try:
        client.task("task:0123456789abcdef0123456789abcdef")
        raise AssertionError("there is no such task")
    except trawl.ApiError as error:
        assert error.status == 404, error


def hosts_are_blocked_and_workers_listed(client, site, fleet):
    client.block("blocked.example")
    assert client.host("blocked.example")["blocked"]
    assert "blocked.example" in [host["host"] for host in client.hosts()]
    client.unblock("blocked.example")
    raised(trawl.ApiError, lambda: client.host("blocked.example"), "404")
    assert len(client.workers()) == 2


def a_forged_webhook_is_recognised(client, site, fleet):
    # printf '1700000000.{}' | openssl dgst -sha256 -hmac key
    signature = "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
    sent = {"X-Trawl-Timestamp": "1700000000", "x-trawl-signature": signature}
    assert trawl.event(b"{}", sent, "key", max_age=float("inf")) == {}
    raised(trawl.Forged, lambda: trawl.event(b"{}", sent, "key"), "ago")
    for body, headers, secret in ((b"{ }", sent, "key"), (b"{}", sent, "guess"), (b"{}", {}, "key")):
        raised(trawl.Forged, lambda: trawl.event(body, headers, secret, max_age=float("inf")), "signature")
        raised(trawl.Forged, lambda: trawl.posted_items(body, headers, secret, max_age=float("inf")), "signature")
    body = b'[{"id": "a", "fields": {"title": "Hat"}}]'
    digest = hmac.new(b"key", b"1700000000." + body, hashlib.sha256).hexdigest()
    sent["x-trawl-signature"] = f"sha256={digest}"
    assert [item["id"] for item in trawl.posted_items(body, sent, "key", max_age=float("inf"))] == ["a"]


def a_web_application_learns_the_end_of_a_crawl_of_unknown_size(client, site, fleet):
    environment = os.environ | {
        "TRAWL_URL": fleet.url, "TRAWL_TOKEN": TOKEN, "TRAWL_WEBHOOK_SECRET": SECRET, "PORT": str(fleet.hook_port),
    }
    program = ROOT / "sdk/python/examples/web_application.py"
    application = subprocess.Popen([sys.executable, program], env=environment)
    try:
        url = f"http://127.0.0.1:{fleet.hook_port}"
        until("it listens", lambda: curl(url, may_fail=True) is not None)
        crawl = json.loads(curl(f"{url}/crawls", "-d", f"{site.origin}/tree/"))["crawl"]
        state = lambda: json.loads(curl(f"{url}/crawls/{crawl}"))
        until("it learns the end", lambda: state().get("over"))
        assert state() == {"over": True, "pages": 15}, state()
        assert client.crawl(crawl).over
        forged = ["-H", "X-Trawl-Timestamp: 1700000000", "-H", "X-Trawl-Signature: sha256=00", "-w", "%{http_code}"]
        assert curl(f"{url}/hooks/trawl", "-d", '{"crawl": "x", "done": 1}', *forged).endswith("403")
    finally:
        application.terminate()
        application.wait(LIMIT)


def the_commands_of_the_documentation_for_curl_do_what_they_say(client, site, fleet):
    text = (ROOT / "docs/start-from-anywhere.md").read_text()
    commands = text.split("## With curl")[1].split("```sh\n")[1].split("```")[0]
    commands = commands.replace("https://www.example.com/", f"{site.origin}/curl/tree/")
    environment = os.environ | {"TRAWL_URL": fleet.url, "TRAWL_TOKEN": TOKEN}
    subprocess.run(["bash", "-euc", commands], env=environment, cwd=fleet.folder.name, check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
    lines = (Path(fleet.folder.name) / "items.jsonl").read_text().splitlines()
    assert len({json.loads(line)["url"] for line in lines}) == 15, lines


def the_client_for_typescript_does_the_same(client, site, fleet):
    environment = os.environ | {
        "TRAWL_URL": fleet.url, "LOSSY_URL": Lossy(fleet.url).url, "TRAWL_TOKEN": TOKEN, "SITE": site.origin,
        "SDK": str(ROOT / "sdk/typescript/dist/index.js"),
    }
    subprocess.run(["node", ROOT / "testkit/sdk/check.mjs"], env=environment, check=True, timeout=2 * LIMIT)
    assert site.asked["/ts-lost"] == 1, site.asked


def curl(url, *words, may_fail=False):
    done = subprocess.run(["curl", "-s", url, *words], capture_output=True, text=True)
    if done.returncode != 0 and may_fail:
        return None
    assert done.returncode == 0, (url, done.stderr)
    return done.stdout


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


PYTHON = (
    a_crawl_is_started_waited_for_and_its_items_read,
    what_goes_wrong_is_raised_as_the_problem_that_it_is,
    a_start_whose_answer_is_lost_is_one_crawl,
    what_cannot_be_repeated_is_not_and_what_is_refused_for_now_is_asked_again,
    a_crawl_is_steered_and_followed_over_connections_that_break,
    a_crawl_is_cancelled,
    items_come_while_the_crawl_runs_and_go_on_where_a_cursor_says,
    dead_letters_are_listed_sent_again_and_purged,
    the_log_and_what_is_left_of_tasks_are_read,
    hosts_are_blocked_and_workers_listed,
    a_forged_webhook_is_recognised,
    a_web_application_learns_the_end_of_a_crawl_of_unknown_size,
    the_commands_of_the_documentation_for_curl_do_what_they_say,
)
TYPESCRIPT = (the_client_for_typescript_does_the_same,)


def main(languages):
    site, hook_port = Site(), free_port()
    files = {
        "spiders/shop.toml": SHOP.format(origin=site.origin),
        "spiders/whole-site.toml": WHOLE,
        "trawl.toml": HOOK.format(port=hook_port),
    }
    fleet = Fleet(files=files, WEB_APP_SECRET=SECRET)
    fleet.hook_port = hook_port
    client = trawl.Client(fleet.url, token=TOKEN)
    try:
        for scene in [*PYTHON, *(TYPESCRIPT if "typescript" in languages else ())]:
            scene(client, site, fleet)
            print(scene.__name__.replace("_", " "), flush=True)
    finally:
        site.goes_on.set()
        fleet.end()


main(sys.argv[1:])
