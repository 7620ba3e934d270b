"""A client of trawl's HTTP API (`trawl api`): one file, and nothing but the standard library.

    import trawl

    client = trawl.Client("http://127.0.0.1:8080")
    for item in client.start("shop", args={"category": "books"}).wait().items():
        print(item["url"], item["fields"])

A call that may safely be made twice is made again after a broken connection and after 429 or 503, for `retry_for` seconds. Whatever else
goes wrong is a `TrawlError`: an `ApiError` with the members of the API's problem (RFC 9457), `Unreachable` if no answer came, `JobFailed`
for a crawl that could not begin, `Forged` for a webhook that trawl has not sent. A wait that takes too long is a `TimeoutError`.

The dictionaries are the API's own objects: `/api/v1/openapi.json` says what each member means.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypedDict, TypeVar, Union

__all__ = [
    "ApiError",
    "Client",
    "Crawl",
    "DeadLetter",
    "Event",
    "Forged",
    "Host",
    "Item",
    "Items",
    "Job",
    "JobFailed",
    "Page",
    "Replayed",
    "Stats",
    "Submitted",
    "Task",
    "TrawlError",
    "Unreachable",
    "Worker",
    "event",
    "posted_items",
]

T = TypeVar("T")
Json = Dict[str, Any]
Item = Dict[str, Any]
"""What was extracted of a page: `id`, `url`, `crawl`, `spider`, `fetched_at`, `status`, `depth`, `fields` and more."""
Task = Union[str, Mapping[str, Any]]
"""A recipe, or a dictionary of `recipe`, `unique`, `priority` and `retries`."""

Page = Union[str, Mapping[str, Any]]
"""A URL, or a dictionary of `url`, `method`, `headers`, `cookies`, `body` or `base64`, `data`, `unique`, `priority` and `retries`."""

# The longest that the API waits for a crawl in one request is 60 s. Some proxies give up at that very moment.
_LONGEST_WAIT = 50.0
# Longer than what the API takes for an answer, and than the pause between two signs of life of a stream.
_SLACK = 40.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0


class TrawlError(Exception):
    """Whatever goes wrong."""


class ApiError(TrawlError):
    """The API has answered with a problem.

    `status` is that of HTTP, `type` says what kind of problem it is (`urn:problem-type:trawl:not-found`), `kind` is its last part
    (`not-found`), `title` and `detail` are for people. `retry_after` is in seconds.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.type = str(problem.get("type", "about:blank"))
        self.kind = self.type.rsplit(":", 1)[-1]
        self.title = str(problem.get("title", http.client.responses.get(status, "")))
        self.detail = str(problem.get("detail", ""))
        self.retry_after = retry_after
        super().__init__(f"{status} {self.title}" + (f": {self.detail}" if self.detail else ""))


class Unreachable(TrawlError):
    """No answer came, or only a part of it."""


class JobFailed(TrawlError):
    """A crawl could not begin: its spider is not there, or none of its sources can be read."""

    def __init__(self, crawl: str, problem: str) -> None:
        self.crawl, self.problem = crawl, problem
        super().__init__(f"crawl {crawl} has failed: {problem}")


class Forged(TrawlError):
    """A webhook's signature is missing or wrong, or it is too old."""


class Job(TypedDict):
    """A crawl that was asked for."""

    status: str  # pending, running, finished, failed, cancelled
    priority: float
    project: str
    version: Optional[str]
    arguments: Dict[str, str]
    asked: str
    started: Optional[str]
    ended: Optional[str]
    worker: Optional[str]
    problem: Optional[str]


class _Stats(TypedDict):
    crawl: str
    spider: str
    status: str  # pending, running, paused, finished, cancelled
    over: bool
    handed_pending: int
    admitted: int
    done: int
    failed: int
    skipped: int
    expired: int
    cancelled: int
    pending: int
    bytes: int
    reasons: Dict[str, int]
    left_out: int
    discovered: bool
    started: str
    seconds: float


class Stats(_Stats, total=False):
    """A crawl and its counters. There is no `job` if nobody has asked for it."""

    job: Job


class DeadLetter(TypedDict):
    """A URL that failed, or a text that is none."""

    url: str
    crawl: str
    spider: str
    reason: str
    # `class` is there too: the kind of the last failure.
    status: Optional[int]
    error: str
    attempts: int
    worker: Optional[str]
    failed_at: str
    lane: str
    depth: int
    referrer: Optional[str]


class _PendingTask(TypedDict):
    task: str
    crawl: str
    spider: str
    place: str  # waiting, running, parked, failed
    attempts: int
    recipe: Optional[str]


class PendingTask(_PendingTask, total=False):
    """A task that is not done, and where it is."""

    since: str
    until: str
    worker: str
    error: str


class _EndedTask(TypedDict):
    task: str
    crawl: str
    spider: str
    outcome: str  # done, failed, skipped, expired
    ended: str
    worker: str
    attempts: int
    items: int
    recipe: str  # its first 200 bytes
    recipe_bytes: int


class EndedTask(_EndedTask, total=False):
    """A task that has ended. `class` may be there too: the kind of its failure."""

    seconds: float
    error: str


class _LogEntry(TypedDict):
    time: str
    level: str  # fatal, panic, error, warn, info, debug, trace
    worker: str
    message: str


class LogEntry(_LogEntry, total=False):
    """An entry of the fleet's log. `class` may be there too: the kind of a failure."""

    spider: str
    crawl: str
    host: str
    key: str


class Submitted(TypedDict):
    """What became of tasks. `keys` are there for up to 1,000 of them."""

    crawl: str
    spider: str
    new: int
    known: int
    keys: Optional[List[str]]


class Replayed(TypedDict):
    """What was sent again."""

    sent: int
    crawls: List[str]


class Backoff(TypedDict):
    """Why and until when a host is left alone."""

    since: str
    until: str
    status: int
    strikes: int


class Host(TypedDict):
    """A host, and how it is asked."""

    host: str
    interval_ms: Optional[float]
    next: str
    line: str
    under_way: int
    latency_ms: Optional[int]
    backoff: Optional[Backoff]
    blocked: Optional[str]


class Worker(TypedDict):
    """A worker that lives."""

    worker: str
    version: str
    in_flight: int
    pages_per_second: float
    health: str


class Event(TypedDict):
    """What a webhook tells of a crawl; more of its stats are members too. That of a failed job has no stats, and its `problem`."""

    id: str
    type: str  # crawl.started, crawl.stalled, crawl.degraded, crawl.failing, crawl.quality, crawl.empty, crawl.finished, crawl.cancelled, session.lapsed, job.failed
    time: str
    crawl: str
    spider: str
    status: str
    incomplete: bool
    empty: bool
    stalled: bool
    admitted: int
    done: int
    failed: int
    skipped: int
    expired: int
    cancelled: int
    pending: int
    items: int
    seconds: float


class Client:
    """The API at `url`.

    `token` is sent with each call; without it, that of the environment variable `TRAWL_TOKEN`, if there is one. A call that may be made
    again is, for `retry_for` seconds.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", *, token: Optional[str] = None, retry_for: float = 30.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"not the URL of an API: {url!r}")
        self._base = url.rstrip("/")
        self._token = token if token is not None else os.environ.get("TRAWL_TOKEN")
        self._retry_for = retry_for
        self._opener = urllib.request.build_opener(_NoRedirects())

    def start(
        self,
        spider: Optional[str] = None,
        *,
        urls: Sequence[Page] = (),
        sources: Sequence[str] = (),
        args: Optional[Mapping[str, str]] = None,
        settings: Optional[Mapping[str, Union[str, int]]] = None,
        priority: float = 0,
        project: Optional[str] = None,
        version: Optional[str] = None,
        key: Optional[str] = None,
    ) -> Crawl:
        """Asks for a crawl, which a worker begins when it is first in the queue: the highest `priority` first.

        It crawls what the spider's file says, or `urls` (pages, each a URL or a request) and `sources` (sitemaps, feeds, lists) in place
        of that. `settings` can be `recrawl`, `max_pages` and `limit`. However often the call has to be made, it is one crawl; two calls with the same `key` are
        one as well, also of two programs.

            client.start("shop", args={"category": "books"}, settings={"max_pages": 1000})
            client.start(sources=["https://example.com/sitemap.xml"], key="nightly-2026-01-31")
        """
        wanted = {
            "spider": spider,
            "urls": list(urls),
            "sources": list(sources),
            "arguments": dict(args or {}),
            "settings": dict(settings or {}),
            "priority": priority,
            "project": project,
            "version": version,
        }
        body = {name: value for name, value in wanted.items() if value not in (None, [], {})}
        headers = {"Idempotency-Key": f'"{key or uuid.uuid4()}"'}
        return Crawl(self, self._call("POST", "/crawls", body=body, headers=headers))

    def submit(self, spider: str, tasks: Sequence[Task], *, crawl: Optional[str] = None) -> Submitted:
        """Submits up to 10,000 tasks, of 1 MiB in all, to a spider with a program. If one of them is no task, none is taken.

        A task is a text, which is its recipe, or a dictionary of `recipe`, `unique`, `priority` and `retries`. They go to `crawl`, which is
        opened if it is not there, or to a new one. However often the call has to be made, each is taken once; of a call that was
        repeated fewer may be `new`.

            submitted = client.submit("payments", ["first", {"recipe": '{"id": 7}', "unique": "7"}])
            client.crawl(submitted["crawl"]).wait()
        """
        # Made here, so that a call that is repeated continues the crawl that it has opened.
        name = crawl or f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:8]}"
        answer: Submitted = self._call("POST", "/tasks", query={"spider": spider, "crawl": name}, body=list(tasks))
        answer.setdefault("keys", None)
        return answer

    def tasks(
        self, *, crawl: Optional[str] = None, spider: Optional[str] = None, place: Optional[str] = None
    ) -> Iterator[PendingTask]:
        """Tasks that are not done: those that wait, run or are put aside, and those that failed.

            for task in client.tasks(place="failed"):
                print(task["task"], task["error"])
        """
        return self._pages("/tasks", "tasks", {"crawl": crawl, "spider": spider, "place": place})

    def task(self, task: str) -> PendingTask:
        """A task by its key. One that is done is not known any more."""
        answer: PendingTask = self._call("GET", f"/tasks/{_quoted(task)}")
        return answer

    def ended_tasks(
        self, *, crawl: Optional[str] = None, spider: Optional[str] = None, task: Optional[str] = None
    ) -> Iterator[EndedTask]:
        """The tasks that ended last, done or not, the last first; those that were cancelled are not among them."""
        return self._pages("/tasks/ended", "tasks", {"crawl": crawl, "spider": spider, "task": task, "limit": 1000})

    def logs(
        self,
        *,
        crawl: Optional[str] = None,
        spider: Optional[str] = None,
        host: Optional[str] = None,
        level: Optional[str] = None,
        task: Optional[str] = None,
        since: Optional[str] = None,
    ) -> Iterator[LogEntry]:
        """The fleet's log, the last entries first. `level` is the least grave, `task` a URL or the key of a task, `since` as `30m`."""
        wanted = {"crawl": crawl, "spider": spider, "host": host, "level": level, "task": task, "since": since}
        return self._pages("/logs", "entries", {**wanted, "limit": 1000})

    def crawl(self, crawl: str) -> Crawl:
        """A crawl by its id."""
        return Crawl(self, self._call("GET", f"/crawls/{_quoted(crawl)}"))

    def crawls(self, *, spider: Optional[str] = None, status: Optional[str] = None) -> Iterator[Crawl]:
        """The crawls that are known, those first that were asked for last. With the status `pending` they are jobs that have not begun.

            for crawl in client.crawls(status="running"):
                print(crawl.id, crawl.stats["done"])
        """
        for stats in self._pages("/crawls", "crawls", {"spider": spider, "status": status, "limit": 1000}):
            yield Crawl(self, stats)

    def dead_letters(
        self,
        *,
        crawl: Optional[str] = None,
        spider: Optional[str] = None,
        url: Optional[str] = None,
        reason: Optional[str] = None,
        host: Optional[str] = None,
        older_than: Optional[str] = None,
    ) -> Iterator[DeadLetter]:
        """URLs that failed or expired, and texts that are no URLs. Looking at them takes none away. `older_than` is as `30m`."""
        wanted = {"crawl": crawl, "spider": spider, "url": url, "reason": reason, "host": host, "older_than": older_than}
        return self._pages("/dead-letters", "dead_letters", wanted)

    def replay(
        self,
        *,
        all: bool = False,
        crawl: Optional[str] = None,
        spider: Optional[str] = None,
        urls: Sequence[str] = (),
        reason: Optional[str] = None,
        host: Optional[str] = None,
        older_than: Optional[str] = None,
    ) -> Replayed:
        """Sends dead letters again. At least one argument must say which, or `all=True` that every one is meant.

        A call that breaks off loses nothing, but is not made again: what failed a second time meanwhile would be sent twice.

            client.replay(reason="retries", older_than="1h")
        """
        wanted = _selection(all, crawl, spider, urls, reason, host, older_than)
        total: Replayed = {"sent": 0, "crawls": []}
        for answer in self._rounds("/dead-letters/replay", wanted):
            total["sent"] += answer["sent"]
            total["crawls"] = sorted({*total["crawls"], *answer["crawls"]})
        return total

    def purge(
        self,
        *,
        all: bool = False,
        crawl: Optional[str] = None,
        spider: Optional[str] = None,
        urls: Sequence[str] = (),
        reason: Optional[str] = None,
        host: Optional[str] = None,
        older_than: Optional[str] = None,
    ) -> int:
        """Takes dead letters out for good, and returns how many. Which ones is said as to `replay`."""
        wanted = _selection(all, crawl, spider, urls, reason, host, older_than)
        return sum(answer["purged"] for answer in self._rounds("/dead-letters/purge", wanted))

    def hosts(self) -> Iterator[Host]:
        """The hosts that were asked lately, that want to be left alone, or that are blocked."""
        return self._pages("/hosts", "hosts", {"limit": 1000})

    def host(self, host: str) -> Host:
        """One host, or `@NAME` for a group."""
        answer: Host = self._call("GET", f"/hosts/{_quoted(host)}")
        return answer

    def block(self, host: str) -> None:
        """Has nobody ask a host any more; what waits for it is skipped, and kept as dead letters."""
        self._call("POST", f"/hosts/{_quoted(host)}/block")

    def unblock(self, host: str) -> None:
        """Lifts a block, or a back-off that a host asked for."""
        self._call("POST", f"/hosts/{_quoted(host)}/unblock")

    def workers(self) -> List[Worker]:
        """The workers that live, each with what keeps it from working."""
        answer: List[Worker] = self._call("GET", "/workers")["workers"]
        return answer

    def _pages(self, path: str, member: str, wanted: Mapping[str, Any]) -> Iterator[Any]:
        """The entries of a list, page by page."""
        cursor = None
        while True:
            page = self._call("GET", path, query={**wanted, "cursor": cursor})
            yield from page[member]
            cursor = page.get("next")
            if cursor is None:
                return

    def _rounds(self, path: str, wanted: Json) -> Iterator[Json]:
        """The answers to a call that goes on where the last one ended."""
        cursor = None
        while True:
            answer = self._call("POST", path, body={**wanted, "cursor": cursor}, again=False)
            yield answer
            cursor = answer.get("next")
            if cursor is None:
                return

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Union[Json, Sequence[Task], None] = None,
        headers: Optional[Mapping[str, str]] = None,
        again: bool = True,
        wait: float = 0.0,
    ) -> Any:
        """What a call answers. It is made again, if it may be, for at most `retry_for`."""
        request = self._request(method, path, query or {}, body, headers or {})

        def once() -> Any:
            with self._open(request, wait + _SLACK) as answer:
                return json.load(answer)

        return self._tried(once) if again else _told(once)

    def _tried(self, call: Callable[[], T]) -> T:
        until = time.monotonic() + self._retry_for
        pause = _FIRST_PAUSE
        while True:
            try:
                return _told(call)
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.status not in (429, 503):
                    raise
                wait = max(pause * random.uniform(0.5, 1.0), getattr(error, "retry_after", None) or 0.0)
                if time.monotonic() + wait > until:
                    raise
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Union[Json, Sequence[Task], None],
        headers: Mapping[str, str],
    ) -> urllib.request.Request:
        named = {name: value for name, value in query.items() if value is not None}
        url = f"{self._base}/api/v1{path}" + (f"?{urllib.parse.urlencode(named)}" if named else "")
        request = urllib.request.Request(url, method=method, headers={"Accept": "application/json", **headers})
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return request

    def _open(self, request: urllib.request.Request, timeout: float) -> http.client.HTTPResponse:
        answer: http.client.HTTPResponse = self._opener.open(request, timeout=timeout)
        return answer

    def _stream(self, path: str) -> http.client.HTTPResponse:
        request = self._request("GET", path, {}, None, {"Accept": "text/event-stream"})
        return self._tried(lambda: self._open(request, _SLACK))


class Crawl:
    """One crawl. `stats` is what was last heard of it.

        crawl = client.start(urls=["https://example.com/"])
        crawl.wait(timeout=600)
        print(crawl.status, crawl.stats["done"])
    """

    def __init__(self, client: Client, stats: Stats) -> None:
        self.stats: Stats = stats
        self._client = client
        self._path = f"/crawls/{_quoted(stats['crawl'])}"

    def __repr__(self) -> str:
        return f"<Crawl {self.id} of {self.spider}, {self.status}>"

    @property
    def id(self) -> str:
        """Its id, by which `Client.crawl` finds it again."""
        return self.stats["crawl"]

    @property
    def spider(self) -> str:
        """The name of its spider."""
        return self.stats["spider"]

    @property
    def status(self) -> str:
        """`pending`, `running`, `paused`, `finished` or `cancelled`."""
        return self.stats["status"]

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.stats["over"]

    @property
    def job(self) -> Optional[Job]:
        """The job that it is of."""
        return self.stats.get("job")

    def refresh(self) -> Crawl:
        """Asks how it stands now."""
        self.stats = self._client._call("GET", self._path)
        return self

    def wait(self, timeout: Optional[float] = None) -> Crawl:
        """Waits until it is over, for `timeout` seconds at most. Raises `TimeoutError` then, and `JobFailed` if it could not begin.

        Of a crawl that is over each URL has its final state, however many there turned out to be.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self.over:
            left = _LONGEST_WAIT if until is None else min(_LONGEST_WAIT, until - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"crawl {self.id} is not over after {timeout} s")
            self._look(left)
        job = self.job
        if job is not None and job["status"] == "failed":
            raise JobFailed(self.id, job["problem"] or "")
        return self

    def events(self) -> Iterator[Stats]:
        """How it stands, now and whenever that changes, to its end. A connection that breaks is made again.

            for stats in crawl.events():
                print(stats["done"], "of", stats["admitted"])
        """
        while True:
            with self._client._stream(f"{self._path}/events") as stream:
                for name, data in _sse(stream):
                    if name == "problem":
                        raise ApiError(data["status"], data)
                    self.stats = data
                    yield self.stats
                    if name == "end":
                        return
            time.sleep(_FIRST_PAUSE)

    def items(self, cursor: Optional[str] = None) -> Items:
        """Its items in the order in which they were stored, to the end of the crawl. Of one that runs they come as they are stored.

        An item that a crash had stored twice comes twice, with the same `id`. To go on later, or in another process, keep `cursor`:

            items = crawl.items(cursor=load())
            for item in items:
                store(item)
                save(items.cursor)
        """
        return Items(self, cursor)

    def add(self, urls: Sequence[Page]) -> int:
        """Adds up to 10,000 URLs, while it runs. Returns how many were new; of a call that had to be repeated those may be fewer."""
        new: int = self._client._call("POST", f"{self._path}/urls", body={"urls": list(urls)})["new"]
        return new

    def pause(self) -> Crawl:
        """Holds it: no fetch begins until it is resumed."""
        return self._ordered("pause")

    def resume(self) -> Crawl:
        """Lets it go on."""
        return self._ordered("resume")

    def cancel(self) -> Crawl:
        """Ends it; what is left of it is cancelled."""
        return self._ordered("cancel")

    def url(self, url: str) -> Json:
        """Where one URL is: `state` is `unseen`, `pending`, `failed` or `ended`; the other members say more of it."""
        answer: Json = self._client._call("GET", f"{self._path}/url", query={"url": url})
        return answer

    def hosts(self) -> List[Json]:
        """Its hosts with the most URLs, those first."""
        hosts: List[Json] = self._client._call("GET", f"{self._path}/hosts", query={"limit": 1000})["hosts"]
        return hosts

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Its URLs that failed."""
        return self._client.dead_letters(crawl=self.id)

    def _ordered(self, order: str) -> Crawl:
        self.stats = self._client._call("POST", f"{self._path}/{order}")
        return self

    def _look(self, wait: float) -> None:
        """Asks how it stands when it is over, or after `wait` seconds."""
        query = {"wait": f"{max(1, round(wait * 1000))}ms"}
        self.stats = self._client._call("GET", self._path, query=query, wait=wait)

    def _page(self, cursor: Optional[str]) -> Json:
        page: Json = self._client._call("GET", f"{self._path}/items", query={"limit": 1000, "cursor": cursor})
        return page


class Items(Iterator[Item]):
    """The items of a crawl. `cursor` is where to go on so that none is lost; up to a page of them may come again."""

    def __init__(self, crawl: Crawl, cursor: Optional[str]) -> None:
        self.cursor = cursor
        self._crawl = crawl
        self._page: Iterator[Item] = iter(())
        self._next, self._is_last = cursor, False

    def __next__(self) -> Item:
        while True:
            for item in self._page:
                return item
            # All of the page were handed out, and whoever asks for the next one is done with them.
            self.cursor = self._next
            if self._is_last:
                raise StopIteration
            self._read()

    def _read(self) -> None:
        page = self._crawl._page(self.cursor)
        self._next, self._is_last = page.get("next", self.cursor), "next" not in page
        self._page = iter(page["items"])
        if not page["items"] and not self._is_last:
            self._crawl._look(1.0)


def event(body: bytes, headers: Mapping[str, str], secret: str, max_age: float = 300.0) -> Event:
    """The event that trawl has posted to a webhook. Raises `Forged` if it was not trawl, or longer than `max_age` seconds ago.

    It may come twice, with the same `id`. Any answer with a status of 2xx takes it.

        event = trawl.event(request.get_data(), request.headers, os.environ["SHOP_WEBHOOK_SECRET"])
        if event["type"] == "crawl.finished":
            print(event["crawl"], "is over:", event["done"], "pages")
    """
    _check_signature(body, headers, secret, max_age)
    told: Event = json.loads(body)
    return told


def posted_items(body: bytes, headers: Mapping[str, str], secret: str, max_age: float = 300.0) -> List[Item]:
    """The items that a sink `webhook` has posted. Raises `Forged` if it was not trawl, or longer than `max_age` seconds ago.

    One may come twice, with the same `id`. They are posted again unless the answer has a status of 2xx: store them first.

        for item in trawl.posted_items(request.get_data(), request.headers, os.environ["ITEMS_SECRET"]):
            store(item["id"], item["fields"])
    """
    _check_signature(body, headers, secret, max_age)
    items: List[Item] = json.loads(body)
    return items


def _check_signature(body: bytes, headers: Mapping[str, str], secret: str, max_age: float) -> None:
    """Raises `Forged` unless trawl has posted this body with this secret lately."""
    sent = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = sent.get("x-trawl-timestamp", ""), sent.get("x-trawl-signature", "")
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(f"sha256={digest}".encode(), signature.encode()):
        raise Forged("the signature is not trawl's")
    if abs(time.time() - int(timestamp)) > max_age:
        raise Forged(f"it was sent more than {max_age:.0f} s ago")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The API redirects nobody: whoever else does must not be given the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _told(call: Callable[[], T]) -> T:
    """What a call returns, or what went wrong in the words of this module."""
    try:
        return call()
    except urllib.error.HTTPError as error:
        raise _api_error(error) from None
    except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
        raise Unreachable(f"no whole answer: {getattr(error, 'reason', error)}") from error


def _api_error(error: urllib.error.HTTPError) -> ApiError:
    with error:
        retry_after = error.headers.get("Retry-After", "")
        try:
            problem = json.loads(error.read(65_536))
        except (OSError, http.client.HTTPException, ValueError):
            problem = None
    problem = problem if isinstance(problem, dict) else {}
    return ApiError(error.code, problem, float(retry_after) if retry_after.isdecimal() else None)


def _sse(stream: http.client.HTTPResponse) -> Iterator[Tuple[str, Any]]:
    """The events of a stream, until it ends or breaks. The API writes the data of each in one line."""
    name = ""
    try:
        for line in stream:
            field, _, value = line.decode().rstrip("\r\n").partition(":")
            if field == "event":
                name = value.strip()
            elif field == "data":
                yield name, json.loads(value)
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return


def _selection(
    all: bool,
    crawl: Optional[str],
    spider: Optional[str],
    urls: Sequence[str],
    reason: Optional[str],
    host: Optional[str],
    older_than: Optional[str],
) -> Json:
    wanted = {"crawl": crawl, "spider": spider, "reason": reason, "host": host, "older_than": older_than}
    return {"all": all, "urls": list(urls), **wanted}


def _quoted(segment: str) -> str:
    return urllib.parse.quote(segment, safe="")
