"""One crawl by one contestant under one fault, in a folder of its own."""

import asyncio
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults
from contestants import CONTESTANTS, Place
from cut import Network
from processes import Worker, holder_of, ports_of
from servers import Servers
from verdict import judge
from website import PAGES, Site

# Seconds without a request after which nothing more comes: when pages are missing or the end was not said, as long as the
# slowest recovery of any contestant; when all is done, what is needed to see a page come again.
PATIENCE, AFTERMATH = 210, 20
LOOK = 0.1


class Cell:
    def __init__(self, contestant, fault, folder, installed, trawl):
        self.contestant, self.fault, self.folder = contestant, fault, folder
        self.installed, self.trawl = installed, trawl
        self.site, self.network = Site(), Network()
        self.workers, self.waiter, self.tasks = [], None, []
        self.struck = self.said = self.copied = None
        # What fills up with the disk: all but the logs.
        self.disk = folder / "disk"
        self.work = self.disk / "work"
        self.notes = []

    def note(self, text):
        self.notes.append(text)

    async def run(self):
        # Whoever stops the run stops its processes with it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
        self.work.mkdir()
        self.servers = Servers(self.disk, self.folder, self.contestant.needs)
        try:
            await faults.apart(self.servers.start)
            await self.site.open()
            self.site.watch = self.watch
            await self.start()
            await self.last()
        finally:
            for worker in [*self.workers, *([self.waiter] if self.waiter else [])]:
                worker.end()
            for task in self.tasks:
                task.cancel()
            self.site.close()
            self.network.cut()
            # Connections need a moment to notice.
            await asyncio.sleep(LOOK)
            self.servers.end()
        self.keep_log()
        if self.struck is None:
            raise RuntimeError(f"the fault never came: {len(self.site.served)} pages were served; see {self.folder}")
        for task in self.tasks:
            if task.done() and not task.cancelled() and task.exception():
                raise task.exception()
        return judge(self.site.log, self.struck, self.said, self.site.lethal, self.site.refuses_until)

    async def start(self):
        urls = self.servers.urls
        if self.fault.network:
            urls = {name: await self.network.through(url) for name, url in urls.items()}
        seed = self.site.url(0)
        environment = {"SEED": seed, "PYTHONDONTWRITEBYTECODE": 1, "PYTHONUNBUFFERED": 1, **urls,
                       **self.contestant.environment()}
        self.place = place = Place(self.work, seed, environment, self.installed, self.trawl)
        if command := self.contestant.fill(place):
            await self.run_once(command, environment)
        for number in range(self.contestant.count):
            more = self.clock(number) if self.fault.clocks else {}
            self.workers.append(Worker(self.contestant.worker(place, number), self.work, {**environment, **more},
                                       self.folder / f"worker-{number}.log", self.contestant.service,
                                       self.contestant.done))
        if command := self.contestant.wait(place):
            self.waiter = Worker(command, self.work, environment, self.folder / "wait.log", False, (0, 3))

    async def run_once(self, command, environment):
        filler = Worker(command, self.work, environment, self.folder / "fill.log", False, (0, 3))
        while not filler.ended:
            filler.look()
            if filler.process.poll() not in (None, 0, 3):
                raise RuntimeError(f"the crawl could not be started: see {self.folder}/fill.log")
            await asyncio.sleep(LOOK)

    async def last(self):
        """Until the crawl is over, and nothing more comes."""
        begun = time.monotonic()
        while True:
            await asyncio.sleep(LOOK)
            self.servers.look()
            for worker in [*self.workers, *([self.waiter] if self.waiter else [])]:
                worker.look()
            self.note_end()
            # A page that kills may be asked for without an end.
            asked = (request.at for request in reversed(self.site.log) if request.page != self.site.lethal)
            active = max(begun, next(asked, begun), self.said or begun)
            complete = len(self.site.served) >= PAGES - (self.site.lethal is not None)
            over = complete and self.said or self.workers_ended()
            if time.monotonic() - active > (AFTERMATH if over else PATIENCE):
                return

    def workers_ended(self):
        return all(worker.ended for worker in self.workers)

    def note_end(self):
        """Notes when the crawl says that it has ended: who waits for it is done, or every worker has closed."""
        if self.said is None:
            self.said = self.waiter.ended if self.waiter else self.workers_ended() and time.monotonic() or None

    def watch(self, request, port):
        served = len(self.site.served)
        if self.fault.copy and self.copied is None and served >= faults.KEPT:
            self.copied = self.disk / "copy"
            self.keep()
        if self.site.lethal == request.page:
            self.kill_asker(port)
        if self.struck is None and served >= faults.AFTER:
            self.struck = request.at
            self.tasks.append(asyncio.get_running_loop().create_task(self.fault.strike(self, request, port)))

    def keep_log(self):
        """Writes down each request, with its time from the fault on in seconds."""
        begun = self.struck or 0.0
        lines = (f"{request.at - begun:.3f} {request.host} {request.page} {request.status}\n" for request in self.site.log)
        (self.folder / "requests.log").write_text("".join(lines))

    def asker(self, port):
        """The worker that has this connection."""
        for worker in self.workers:
            if holder_of(port, worker.family()):
                return worker
        raise RuntimeError("nobody has the connection of a request")

    async def kill(self, worker):
        """Kills a worker with all its processes: none of its requests gets an answer."""
        self.site.forsake(ports_of(worker.family()))
        worker.signal(signal.SIGKILL)
        await faults.apart(worker.process.wait)

    def kill_asker(self, port):
        """Kills the process that has this connection; the rest of its worker sees it die."""
        for worker in self.workers:
            if pid := holder_of(port, worker.family()):
                self.site.forsake(ports_of([pid]))
                os.kill(pid, signal.SIGKILL)

    def keep(self):
        if self.servers.redis:
            self.servers.redis.keep(self.copied)
            return
        worker = self.workers[0]
        worker.signal(signal.SIGSTOP)
        self.copied.mkdir()
        copy(self.contestant.state, self.work, self.copied)
        worker.signal(signal.SIGCONT)

    def put_back(self):
        for name in self.contestant.state:
            remove(self.work / name)
        copy(self.contestant.state, self.copied, self.work)

    def clock(self, number):
        """The environment of a worker whose clock can be set."""
        library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        self.set_clock(number, 0)
        return {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": self.folder / f"clock-{number}",
                "FAKETIME_CACHE_DURATION": 1, "FAKETIME_DONT_FAKE_MONOTONIC": 1}

    def set_clock(self, number, seconds):
        new = self.folder / f"clock-{number}.new"
        new.write_text(f"{seconds:+}")
        new.rename(self.folder / f"clock-{number}")


def copy(names, source, target):
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        elif (source / name).exists():
            shutil.copy2(source / name, target / name)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def disk(folder, small):
    """A folder for the data of a cell, removed at its end; a small disk of its own if the fault fills it."""
    folder.mkdir()
    if small:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={faults.DISK},mode=0755", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        if small:
            subprocess.run(["umount", "-l", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def see_in_time():
    """Has the site note requests when they come, however busy the machine is; what it starts is as important as usual."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def main():
    see_in_time()
    peer, name, root, installed, trawl = sys.argv[1:]
    fault = faults.FAULTS[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{peer}-{name}-", dir=root))
    with disk(folder / "disk", fault.disk):
        cell = Cell(CONTESTANTS[peer], fault, folder, pathlib.Path(installed), pathlib.Path(trawl))
        verdict = asyncio.run(cell.run())
    restarts = sum(worker.restarts for worker in cell.workers)
    print(json.dumps({**dataclasses.asdict(verdict), "restarts": restarts, "notes": cell.notes}))


if __name__ == "__main__":
    main()
