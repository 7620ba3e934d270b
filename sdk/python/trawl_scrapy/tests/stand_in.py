"""A frontier and workers of a few lines, to try a handler of mode `stream` without a fleet: tasks once by `unique`, several processes,
which are killed at random. What a killed one had in flight goes to the others."""

import asyncio
import json
import os
import random
import signal
from collections import deque


class Frontier:
    """The tasks of one crawl."""

    def __init__(self, recipes):
        self.items, self.logs, self.results, self.known, self.left = [], [], {}, set(), deque()
        self.changed, self.recipes = asyncio.Condition(), []
        for recipe in recipes:
            self.admit({"recipe": recipe, "unique": recipe})

    def admit(self, task):
        if task["unique"] not in self.known:
            self.known.add(task["unique"])
            self.recipes.append(task["recipe"])
            self.left.append({"id": task["unique"], "crawl": "a", "attempt": 1, "max_retries": 3, **task})

    def settle(self, task, answer):
        self.logs += answer.get("logs", [])
        # Only what is done yields anything.
        if answer["result"] == 0:
            self.items += answer.get("items", [])
            for child in answer.get("tasks", []):
                self.admit(child)
        if answer["result"] == 1 and task["attempt"] <= task["max_retries"]:
            self.left.append({**task, "attempt": task["attempt"] + 1})
        else:
            self.results[task["id"]] = answer["result"]

    def is_over(self):
        return len(self.results) == len(self.known)


class Worker:
    """One process of the handler, with so many tasks in flight."""

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
                held[number] = task = self.frontier.left.popleft()
            self.say({"type": "task", "id": number, "task": task})

    def say(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")

    def kill(self):
        if getattr(self, "process", None) and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)


async def crawl(recipes, run, cwd, env=None, processes=2, kills=0, seed=0):
    """Works on the recipes and all that comes of them. Returns the frontier, and how many processes died."""
    frontier, chance = Frontier(recipes), random.Random(seed)
    workers = [Worker(frontier, run, cwd, env) for _ in range(processes)]
    running = [asyncio.create_task(worker.work()) for worker in workers]
    for _ in range(kills):
        await asyncio.sleep(chance.uniform(0.8, 2.5))
        chance.choice(workers).kill()
    await asyncio.gather(*running)
    return frontier, sum(worker.deaths for worker in workers)
