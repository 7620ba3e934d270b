"""Programs for trawl's spiders in Python: one file, and nothing but the standard library.

A page handler gets each page of a spider with `[handler] mode = "stream"`, and yields items and links:

    from trawl_handler import handler, run

    @handler
    def parse(page):
        yield {"title": page.text.split("<title>")[1].split("</title>")[0]}
        yield page.follow("/next")

    run()

A task handler gets tasks, with `mode = "stream"` or `mode = "once"`:

    from trawl_handler import run, task_handler, Task

    @task_handler
    def search(task):
        yield {"name": task.recipe}
        yield Task("the next one")

    run()

A link may be a request with a method, a body, header fields and cookies of its own, and with data for whoever reads its page:

    yield page.follow("/search", form={"q": "trawl"}, data={"page": 1})       # later page.data == {"page": 1}

Where no page comes of a request that asks for its failures, the handler is given why, as `page.failure`:

    yield page.follow("/maybe", failures="last")       # later page.failure is None, or says what failed after all retries

What neither of them gets as a page they ask for themselves, through their worker's proxy, at the pace that the fleet keeps to each host:

    prices = fetch("https://api.shop.example/prices").json()

All is done in the main thread, one after another, unless the spider's file says `concurrency` under `[handler]`, with `mode = "stream"`: then up to so
many pages and tasks are done at once, each in a thread of its own; one that is an `async def` runs on one event loop with the others. What a handler keeps
between two calls has to stand that.

Both yield any number of items (dictionaries), `Follow` (a URL or a request), `Task` and `Log`; or return a list of them, or one, or None. An exception makes the task
or page fail, to be tried again, with its stack trace in the log; `Skip` leaves it out. What is printed goes to standard error, for standard output
is trawl's. Half of a surrogate pair, which is no character, becomes a question mark. The protocol is that of docs/handlers.md.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import inspect
import io
import json
import os
import queue
import sys
import threading
import traceback
import urllib.parse
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import (
    IO, Any, AsyncIterable, Awaitable, Callable, Coroutine, Dict, Iterable, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple, TypeVar, Union,
)

__all__ = ["Failure", "Follow", "Log", "NotFetched", "Page", "Response", "Skip", "Task", "TaskToDo", "fetch", "handler", "run", "task_handler"]

Json = Dict[str, Any]

DONE, FAILED, SKIP = 0, 1, 2
ERROR, WARN, INFO, DEBUG = 3, 4, 5, 6

_Body = Union[None, str, bytes]

# A line of an answer is sent when it has about so much in it.
_PART = 512 * 1024

# So much of what a host answers to `fetch` is read.
_MOST = 64 * 1024 * 1024
# Items of more characters than that go into a file: an answer may have 16 MB, a character has at most four bytes, and an object counts as
# 80 at least.
_IN_ANSWER = 3_000_000
# The stack of each thread, in bytes: enough for a thousand calls within each other.
_STACK = 1024 * 1024


class Skip(Exception):
    """Leaves the task or page out: it counts as skipped."""


@dataclass(frozen=True)
class Follow:
    """A URL to fetch. With anything but its URL it is a request: `method` is GET without it, or POST where there is a body. Of requests for
    one URL by one method, a spider takes in one with the same body, or with the same `unique`. `data` is any JSON. With `any_status`
    whatever response comes is its page, also a redirect or a 404. With `failures` the handler is given, as `page.failure`, why there is no
    page: "last" after all retries, "each" at each attempt, and whether that is tried again it says itself. With a `priority` above 0 it is urgent; `retries` says how often it is tried again."""

    url: str
    method: Optional[str] = None
    body: _Body = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    unique: Optional[str] = None
    any_status: bool = False
    priority: Optional[float] = None
    retries: Optional[int] = None
    failures: Optional[str] = None

    def _to_json(self) -> Union[str, Json]:
        method = self.method or ("GET" if self.body is None else "POST")
        said: Json = {"method": method} if method != "GET" else {}
        said.update((name, dict(value)) for name, value in (("headers", self.headers), ("cookies", self.cookies)) if value)
        if isinstance(self.body, bytes):
            said["base64"] = base64.b64encode(self.body).decode()
        elif self.body is not None:
            said["body"] = self.body
        others = {name: getattr(self, name) for name in ("data", "unique", "failures", "priority", "retries")}
        said.update((name, value) for name, value in others.items() if value is not None)
        if self.any_status:
            said["any_status"] = True
        return {"url": self.url, **said} if said else self.url


@dataclass(frozen=True)
class Task:
    """A task to be done, by this spider or another."""

    recipe: str
    unique: Optional[str] = None
    priority: Optional[float] = None
    retries: Optional[int] = None
    spider: Optional[str] = None
    project: Optional[str] = None

    def _to_json(self) -> Json:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Log:
    """An entry for the log: 1 fatal, 3 error, 4 warn, 5 info, 6 debug, 7 trace."""

    message: str
    level: int = INFO


Yielded = Union[Mapping[str, Any], Follow, Task, Log]
_Said = Union[None, Yielded, Iterable[Yielded]]
Returned = Union[_Said, Awaitable[_Said], AsyncIterable[Yielded]]


@dataclass(frozen=True)
class TaskToDo:
    """A task that is to be done now. `secret` is what the spider's file has under `[handler] secret`."""

    id: str
    recipe: str
    spider: str
    project: str
    crawl: str
    attempt: int
    max_retries: int
    priority: float
    secret: Json = field(repr=False, default_factory=dict)

    def json(self) -> Any:
        """The recipe, where that is JSON."""
        return json.loads(self.recipe)


@dataclass(frozen=True)
class Failure:
    """Why there is no page: `kind` is the class of a failure, such as "dns" or "timeout", or where it is `skipped` the reason of that, such as
    "robots". `attempt` counts from 1."""

    kind: str
    detail: str
    skipped: bool
    attempt: int
    status: Optional[int] = None


class Page:
    """A page that was fetched; or where its request asks for that, the `failure` that came in its place: then `status` is 0 where there was no
    response, and there is no header field and no body. `secret` is what the spider's file has under `[handler] secret`."""

    def __init__(self, page: Json, secret: Json) -> None:
        self.url: str = page["url"]
        self.method: str = page.get("method", "GET")
        self.data: Any = page.get("data")
        self.final_url: str = page.get("final_url") or self.url
        self.crawl: str = page["crawl"]
        self.failure: Optional[Failure] = _failure(page["failure"]) if "failure" in page else None
        self.status: int = page["status"] if self.failure is None else self.failure.status or 0
        self.headers: List[Tuple[str, str]] = [(name, value) for name, value in page.get("headers", ())]
        self.fetched_at: str = page.get("fetched_at", "")
        self.depth: int = page["depth"]
        self.referrer: Optional[str] = page.get("referrer")
        self.secret = secret
        self._page = page
        self._bytes: Optional[bytes] = None

    def header(self, name: str) -> Optional[str]:
        """The first header field of this name."""
        return _header(self.headers, name)

    @property
    def text(self) -> str:
        """The body as text. One that comes as bytes is read in the charset that its header names, or else as UTF-8."""
        if "text" in self._page:
            return str(self._page["text"])
        return _text(self.headers, self.bytes)

    @property
    def bytes(self) -> bytes:
        """The body. One that comes as text is encoded in UTF-8."""
        if self._bytes is None:
            if "file" in self._page:
                with open(self._page["file"], "rb") as file:
                    self._bytes = file.read()
            elif "base64" in self._page:
                self._bytes = base64.b64decode(self._page["base64"])
            else:
                self._bytes = str(self._page.get("text", "")).encode()
        return self._bytes

    def json(self) -> Any:
        """The body, where that is JSON."""
        return json.loads(self.text)

    def follow(
        self,
        href: str,
        *,
        method: Optional[str] = None,
        body: _Body = None,
        form: Optional[Mapping[str, Any]] = None,
        json: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        cookies: Optional[Mapping[str, str]] = None,
        data: Any = None,
        unique: Optional[str] = None,
        any_status: bool = False,
        priority: Optional[float] = None,
        retries: Optional[int] = None,
        failures: Optional[str] = None,
    ) -> Follow:
        """The URL to which `href` leads from this page, or a request for it. The body is `body`, the fields of a `form`, or `json`."""
        url = urllib.parse.urljoin(self.final_url, href)
        body, kind = _body(body, form, json)
        fields = dict(headers or {})
        if kind and not any(name.lower() == "content-type" for name in fields):
            fields["Content-Type"] = kind
        return Follow(url, method, body, fields, cookies or {}, data, unique, any_status, priority, retries, failures)


def _failure(said: Json) -> Failure:
    return Failure(said["class"], said["detail"], said["skipped"], said["attempt"], said.get("status"))


def _body(
    body: _Body, form: Optional[Mapping[str, Any]], value: Any
) -> Tuple[_Body, Optional[str]]:
    """The one body that is given, and its type if that is known."""
    if sum(given is not None for given in (body, form, value)) > 1:
        raise ValueError("a request has one body: body=, form= or json=")
    if form is not None:
        return urllib.parse.urlencode(form, doseq=True), "application/x-www-form-urlencoded"
    if value is not None:
        return json.dumps(value, ensure_ascii=False), "application/json"
    return body, None


@dataclass(frozen=True)
class Response:
    """What a host answered to `fetch`. The names of header fields are in lower case."""

    status: int
    headers: List[Tuple[str, str]]
    body: bytes = field(repr=False)

    def header(self, name: str) -> Optional[str]:
        """The first header field of this name."""
        return _header(self.headers, name)

    @property
    def text(self) -> str:
        """The body as text, in the charset that its header names, or else in UTF-8."""
        return _text(self.headers, self.body)

    def json(self) -> Any:
        """The body, where that is JSON."""
        return json.loads(self.text)


class NotFetched(Exception):
    """The worker's proxy gives no answer of the host: it says why, and what to do. `status` is the proxy's own: 403 where the host is not to be
    asked, 502 and 504 where it did not answer, 503 where it is not to be asked now, but after `retry_after` seconds."""

    def __init__(self, why: str, status: int, retry_after: Optional[int] = None) -> None:
        super().__init__(why)
        self.status, self.retry_after = status, retry_after


def fetch(
    url: str,
    *,
    method: Optional[str] = None,
    headers: Optional[Mapping[str, str]] = None,
    body: _Body = None,
    timeout: float = 240,
) -> Response:
    """Asks a host through the worker's proxy, and returns whatever it answers: of any status, a redirect as it is, a body of 64 MB at most. It waits
    until the fleet may ask the host, for two minutes at most; `timeout` is for each wait, in seconds. `method` is GET without it, or POST where there
    is a body. Raises NotFetched; where a handler lets that pass, its page or task fails, and is tried again later."""
    if "TRAWL_PROXY" not in os.environ:
        raise RuntimeError("there is no TRAWL_PROXY: run this by trawl, and without `proxy = \"none\"` in [handler]")
    proxy = urllib.parse.urlsplit(os.environ["TRAWL_PROXY"])
    login = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    content = body.encode() if isinstance(body, str) else body
    # The proxy itself speaks TLS with the host, so it sees the path and the status.
    connection = http.client.HTTPConnection(proxy.hostname or "", proxy.port, timeout=timeout)
    try:
        fields = {**(headers or {}), "Proxy-Authorization": f"Basic {login}"}
        connection.request(method or ("GET" if body is None else "POST"), _ascii(url), content, fields)
        answer = connection.getresponse()
        given = Response(answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read(_MOST + 1))
    finally:
        connection.close()
    if (given.header("proxy-status") or "").startswith("trawl;"):
        raise _not_fetched(url, given)
    if len(given.body) > _MOST:
        raise ValueError(f"{url}: the answer has more than {_MOST >> 20} MB: ask for less of it, by a field Range")
    return given


def _not_fetched(url: str, said: Response) -> NotFetched:
    wait = int(said.header("retry-after") or 0) or None
    why = f"{url}: {said.text.strip()}"
    if wait:
        why += f"; try again in {wait} s, or yield the URL in place of fetching it: then trawl waits"
    return NotFetched(why, said.status, wait)


def _ascii(url: str) -> str:
    """A URL as a request line has it."""
    whole = urllib.parse.urlsplit(url.strip())
    if whole.scheme not in ("http", "https") or not whole.netloc:
        raise ValueError(f"{url!r} is no whole URL: it begins with http:// or https://")
    host = whole.netloc if whole.netloc.isascii() else whole.netloc.encode("idna").decode()
    path, query = (urllib.parse.quote(part, safe="%/:;=@&+$,!~*'()?[]|") for part in (whole.path, whole.query))
    return urllib.parse.urlunsplit((whole.scheme, host, path or "/", query, ""))


def _header(headers: Sequence[Tuple[str, str]], name: str) -> Optional[str]:
    wanted = name.lower()
    return next((value for name, value in headers if name == wanted), None)


def _text(headers: Sequence[Tuple[str, str]], body: bytes) -> str:
    charset = (_header(headers, "content-type") or "").partition("charset=")[2].split(";")[0].strip(" \"'")
    try:
        return body.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return body.decode("utf-8", errors="replace")


PageHandler = Callable[[Page], Returned]
TaskHandler = Callable[[TaskToDo], Returned]
_P = TypeVar("_P", bound=PageHandler)
_T = TypeVar("_T", bound=TaskHandler)

_pages: List[PageHandler] = []
_tasks: List[TaskHandler] = []


def handler(function: _P) -> _P:
    """Has a function read the pages."""
    _pages[:] = [function]
    return function


def task_handler(function: _T) -> _T:
    """Has a function do the tasks."""
    _tasks[:] = [function]
    return function


def run() -> None:
    """Does what trawl asks for, until it asks for no more: with the mode `once` the one task in the arguments, else all that comes."""
    # Whatever prints does so to standard error.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace", newline="\n")
    os.dup2(2, 1)
    if "TRAWL_TASK" in os.environ:
        _once(out)
    else:
        _stream(io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="\n"), out)


def _once(out: IO[str]) -> None:
    argument = sys.argv[-2]
    task = json.loads(sys.stdin.readline() if argument == "-" else argument)
    _Asked(_Answer(None, out), {"type": "task", "task": task}, json.loads(sys.argv[-1])).do()


def _stream(requests: IO[str], out: IO[str]) -> None:
    secret: Json = {}
    at_once: Optional[_AtOnce] = None
    try:
        for line in requests:
            request = json.loads(line)
            if request["type"] == "start":
                secret = request.get("secret", {})
                if request.get("parallel") and request["concurrency"] > 1:
                    at_once = _AtOnce(request["concurrency"])
                continue
            asked = _Asked(_Answer(request["id"], out), request, secret)
            if at_once is None:
                asked.do()
            else:
                at_once.do(asked)
    finally:
        if at_once is not None:
            at_once.end()


class _AtOnce:
    """Does several things at once: handlers that are an `async def` on the event loop, each other one in one of up to `most` threads."""

    def __init__(self, most: int) -> None:
        # The stacks of all count as memory of this program: the usual 8 MB each are more than it may have.
        threading.stack_size(_STACK)
        self._most = most
        self._work: "queue.SimpleQueue[Optional[_Asked]]" = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: List[threading.Thread] = []

    def do(self, asked: _Asked) -> None:
        if asked.is_async():
            _loop.start(asked.do_async())
        elif self._idle.acquire(blocking=False) or not self._may_start():
            self._work.put(asked)
        else:
            self._start(asked)

    def _may_start(self) -> bool:
        return len(self._threads) < self._most or not self._threads

    def _start(self, asked: _Asked) -> None:
        thread = threading.Thread(target=self._run, args=(asked,), name=f"handler {len(self._threads) + 1}")
        try:
            thread.start()
        except RuntimeError:
            # The limits of this program let no more start: those that there are do it, or else this one.
            self._most = len(self._threads)
            if self._threads:
                self._work.put(asked)
            else:
                asked.do()
        else:
            self._threads.append(thread)

    def _run(self, first: _Asked) -> None:
        asked: Optional[_Asked] = first
        while asked is not None:
            try:
                asked.do()
            except BaseException as error:
                _end(error)
            self._idle.release()
            asked = self._work.get()

    def end(self) -> None:
        """Returns once all is done."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()
        _loop.end()


def _end(error: BaseException) -> NoReturn:
    """Ends the program with what a handler does not survive, as where it calls `sys.exit`: a thread would end alone."""
    code = error.code if isinstance(error, SystemExit) else 1
    if not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, error.__traceback__)
    elif isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


class _Loop:
    """The event loop of all handlers that are asynchronous, in a thread of its own. What they keep, as a session of a client, lives in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._begun: "Set[Future[None]]" = set()

    def start(self, work: "Coroutine[Any, Any, None]") -> "Future[None]":
        """Has the loop do this, and does not wait for it."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
                self._loop = loop
            begun = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
            self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return begun

    def wait_for(self, work: "Coroutine[Any, Any, None]") -> None:
        self.start(work).result()

    def end(self) -> None:
        """Returns once all is done."""
        wait(list(self._begun))


_loop = _Loop()


async def _awaited(work: "Coroutine[Any, Any, None]") -> None:
    try:
        await work
    except (SystemExit, KeyboardInterrupt) as error:
        _end(error)


# Lines of different answers are not mixed.
_writing = threading.Lock()


class _Answer:
    """What is said about one request. With `once` it is one object, else parts of some size. Items beyond some megabytes are in a file."""

    def __init__(self, id: Optional[int], out: IO[str]) -> None:
        self._id, self._out, self._size, self._items = id, out, 0, 0
        self._part: Dict[str, List[str]] = {}
        self._file: Optional[IO[str]] = None

    def add(self, key: str, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if key == "items":
            self._items += len(text) + 80 * text.count("{")
            if self._items > _IN_ANSWER:
                return self._add_to_file(text)
        self._part.setdefault(key, []).append(text)
        self._size += len(text)
        if self._size > _PART and self._id is not None:
            self._send(None)

    def _add_to_file(self, item: str) -> None:
        if self._file is None:
            path = os.path.join(os.environ["TRAWL_TMP"], f"items-{self._id or 0}")
            self._file = open(path, "w", encoding="utf-8", errors="replace", newline="\n")
        self._file.write(item + "\n")

    def end(self, result: int) -> None:
        if self._file is not None:
            self._file.close()
            # trawl takes the file if the request is done.
            if result != DONE:
                os.unlink(self._file.name)
        self._send(result)

    def _send(self, result: Optional[int]) -> None:
        said = [f'"{key}":[{",".join(values)}]' for key, values in self._part.items()]
        if self._id is not None:
            said.insert(0, f'"id":{self._id}')
        if result is not None:
            if self._file is not None and result == DONE:
                said.append(f'"items_file":{json.dumps(self._file.name)}')
            said.append(f'"result":{result}')
        with _writing:
            self._out.write("{" + ",".join(said) + "}\n")
            self._out.flush()
        self._part, self._size = {}, 0


class _Asked:
    """A page or a task that is asked for, and its answer."""

    def __init__(self, answer: _Answer, request: Json, secret: Json) -> None:
        self._answer, self._request, self._secret = answer, request, secret

    def _function(self) -> Optional[Callable[[Any], Returned]]:
        functions: Sequence[Callable[[Any], Returned]] = _pages if self._request["type"] == "page" else _tasks
        return functions[0] if functions else None

    def is_async(self) -> bool:
        function = self._function()
        return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

    def _call(self) -> Returned:
        kind, function = self._request["type"], self._function()
        if function is None:
            raise RuntimeError(f"this program has no handler for a {kind}")
        given = Page(self._request["page"], self._secret) if kind == "page" else TaskToDo(secret=self._secret, **self._request["task"])
        return function(given)

    def do(self) -> None:
        try:
            said = self._call()
            if inspect.isawaitable(said) or isinstance(said, AsyncIterable):
                _loop.wait_for(self._add_awaited(said))
            else:
                self._add_all(said)
        except Exception as error:
            self._fail(error)
        else:
            self._answer.end(DONE)

    async def do_async(self) -> None:
        try:
            try:
                await self._add_awaited(self._call())
            except (Exception, asyncio.CancelledError) as error:
                self._fail(error)
            else:
                self._answer.end(DONE)
        except Exception as error:
            # The answer cannot be sent.
            _end(error)

    async def _add_awaited(self, said: Any) -> None:
        if inspect.isawaitable(said):
            said = await said
        if isinstance(said, AsyncIterable):
            async for one in said:
                _add(self._answer, one)
        else:
            self._add_all(said)

    def _add_all(self, said: Any) -> None:
        for one in _each(said):
            _add(self._answer, one)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, Skip):
            self._answer.add("logs", {"message": str(error) or "left out", "level": INFO})
            self._answer.end(SKIP)
        else:
            trace = traceback.format_exception(type(error), error, error.__traceback__)
            self._answer.add("logs", {"message": "".join(trace), "level": ERROR})
            self._answer.end(FAILED)


def _each(said: _Said) -> Iterable[Yielded]:
    if said is None:
        return ()
    if isinstance(said, (Mapping, Follow, Task, Log)):
        return (said,)
    return said


def _add(answer: _Answer, one: Yielded) -> None:
    if isinstance(one, Follow):
        answer.add("urls", one._to_json())
    elif isinstance(one, Task):
        answer.add("tasks", one._to_json())
    elif isinstance(one, Log):
        answer.add("logs", {"message": one.message, "level": one.level})
    elif isinstance(one, Mapping):
        answer.add("items", dict(one))
    else:
        raise TypeError(f"a handler yields dictionaries, Follow, Task and Log, not {type(one).__name__}")
