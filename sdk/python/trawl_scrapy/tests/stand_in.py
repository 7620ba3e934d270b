"""A minimal frontier and workers, to test a handler of mode `stream` without a fleet: tasks and requests are unique
by `unique`, and several processes are killed at random. Work in flight in a killed process goes to the others."""

import asyncio
import base64
import gzip
import http.client
import json
import os
import random
import signal
import socket
import urllib.parse
from collections import deque


class Frontier:
    """The tasks and requests of one crawl."""

    def __init__(self, recipes):
        self.items, self.logs, self.results, self.known, self.left = [], [], {}, set(), deque()
        self.changed, self.recipes, self.requests = asyncio.Condition(), [], []
        for recipe in recipes:
            self.admit({"recipe": recipe, "unique": recipe})

    def admit(self, work):
        if work["unique"] in self.known:
            return
        self.known.add(work["unique"])
        if "recipe" in work:
            self.recipes.append(work["recipe"])
        else:
            self.requests.append(work)
        self.left.append({"id": work["unique"], "crawl": "a", "attempt": 1, "max_retries": 3, **work})

    def settle(self, work, answer):
        self.logs += answer.get("logs", [])
        # Only work that is done yields anything.
        if answer["result"] == 0:
            self.items += answer.get("items", [])
            for child in answer.get("tasks", []) + answer.get("urls", []):
                self.admit(child)
        if answer["result"] == 1 and work["attempt"] <= work["max_retries"]:
            self.left.append({**work, "attempt": work["attempt"] + 1})
        else:
            self.results[work["id"]] = answer["result"]

    def is_over(self):
        return len(self.results) == len(self.known)


class Worker:
    """A process of the handler, with a limit of tasks and pages in flight."""

    def __init__(self, frontier, run, cwd, env, in_flight=8):
        self.frontier, self.run, self.cwd, self.env, self.most, self.deaths = frontier, run, cwd, env, in_flight, 0

    async def work(self):
        while not self.frontier.is_over():
            self.process = await asyncio.create_subprocess_exec(
                *self.run,
                cwd=self.cwd,
                env=self.env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=16 * 1024 * 1024,
                start_new_session=True,
            )
            held = {}
            self.say({"type": "start", "protocol": 1, "project": "default", "spider": "a", "concurrency": self.most, "secret": {}})
            feeding = asyncio.create_task(self.feed(held))
            async for line in self.process.stdout:
                answer = json.loads(line)
                async with self.frontier.changed:
                    self.frontier.settle(held.pop(answer["id"]), answer)
                    self.frontier.changed.notify_all()
            feeding.cancel()
            self.deaths += await self.process.wait() != 0
            async with self.frontier.changed:
                self.frontier.left.extendleft(held.values())
                self.frontier.changed.notify_all()

    async def feed(self, held):
        number = 0
        while True:
            async with self.frontier.changed:
                await self.frontier.changed.wait_for(lambda: self.frontier.is_over() or (self.frontier.left and len(held) < self.most))
                if self.frontier.is_over():
                    return self.process.stdin.close()
                number += 1
                held[number] = work = self.frontier.left.popleft()
            if "recipe" in work:
                self.say({"type": "task", "id": number, "task": work})
            else:
                # It is already held, so it goes to another process if this one is killed meanwhile.
                try:
                    self.say({"type": "page", "id": number, "page": await asyncio.to_thread(fetched, work)})
                except OSError as error:
                    self.say({"type": "page", "id": number, "page": failed(work, error)})

    def say(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")

    def kill(self):
        if getattr(self, "process", None) and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def failed(request, error):
    """Returns the page for a program that handles each failure."""
    assert request["failures"] == "each"
    kind = "dns" if isinstance(error, socket.gaierror) else "timeout" if isinstance(error, TimeoutError) else "connect"
    failure = {"class": kind, "skipped": False, "detail": str(error), "attempt": request["attempt"]}
    if request["url"].endswith("/forbidden"):
        failure.update({"class": "robots", "skipped": True})
    return {"url": request["url"], "crawl": "a", "depth": 1, "data": request["data"], "failure": failure}


def fetched(request):
    """Returns the page of a request, whatever its status, in trawl's form."""
    url = urllib.parse.urlsplit(request["url"])
    if url.path == "/forbidden":
        raise PermissionError("the host's robots.txt forbids it")
    connection = http.client.HTTPConnection(url.netloc, timeout=0.5 if url.path == "/hangs" else None)
    method = request.get("method", "GET")
    connection.putrequest(method, urllib.parse.urlunsplit(("", "", url.path or "/", url.query, "")))
    body = base64.b64decode(request["base64"]) if "base64" in request else request.get("body", "").encode()
    cookies = "; ".join(f"{name}={value}" for name, value in request.get("cookies", []))
    given = [("Cookie", cookies)] if cookies else []
    for name, value in [*request.get("headers", []), *given, ("User-Agent", "trawl"), ("Content-Length", str(len(body)))]:
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    headers = [(name.lower(), value) for name, value in response.getheaders()]
    page = {"url": request["url"], "crawl": "a", "status": response.status, "headers": headers, "depth": 1, "data": request["data"]}
    content = response.read()
    if response.getheader("content-encoding") == "gzip":
        content = gzip.decompress(content)
    connection.close()
    try:
        return {**page, "text": content.decode()}
    except UnicodeDecodeError:
        return {**page, "base64": base64.b64encode(content).decode()}


async def crawl(recipes, run, cwd, env=None, processes=2, kills=0, seed=0):
    """Works on the recipes and everything that follows from them. Returns the frontier, and the number of processes
    that died."""
    frontier, chance = Frontier(recipes), random.Random(seed)
    workers = [Worker(frontier, run, cwd, env) for _ in range(processes)]
    running = [asyncio.create_task(worker.work()) for worker in workers]
    for _ in range(kills):
        await asyncio.sleep(chance.uniform(0.8, 2.5))
        chance.choice(workers).kill()
    await asyncio.gather(*running)
    return frontier, sum(worker.deaths for worker in workers)
