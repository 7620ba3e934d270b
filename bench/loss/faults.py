"""The faults. Each comes when a page is asked for after AFTER pages were served, never at a time."""

import asyncio
import signal
import time

AFTER = 200
# The last second of a store is what it did since this many pages were served, at the pace of the crawl.
KEPT = AFTER - 10
# Seconds: of a stop (for a minute in life), of a full disk, of a cut, of a Retry-After, and of an answer of the slow host.
STOP, FULL, CUT, RETRY_AFTER, SLOW = 30, 15, 10, 10, 2
DISK = "400m"
CLOCK_BACK = -3600


class Fault:
    """What happens in a cell; `request` came just then, from the client's `port`."""

    name = title = None
    # What must be prepared: a small disk, clocks that can be set, a network that can be cut, a copy of the state.
    disk = clocks = network = copy = False

    async def strike(self, cell, request, port):
        raise NotImplementedError


async def apart(function, *arguments):
    """On a thread, while the site goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


class Nothing(Fault):
    """Nothing happens: how each crawls otherwise."""

    name, title = "none", "no fault"

    async def strike(self, cell, request, port):
        pass


class Kill(Fault):
    """`kill -9` of the worker that has just asked for a page, with all its processes; it is started again."""

    name, title = "kill", "worker killed"

    async def strike(self, cell, request, port):
        await cell.kill(cell.asker(port))


class Stop(Fault):
    """SIGSTOP of the worker that has just asked for a page, and SIGCONT 30 s later."""

    name, title = "stop", "worker stopped"

    async def strike(self, cell, request, port):
        worker = cell.asker(port)
        worker.signal(signal.SIGSTOP)
        await asyncio.sleep(STOP)
        worker.signal(signal.SIGCONT)


class Broker(Fault):
    """SIGTERM of the server that holds the queue, and a start with its data."""

    name, title = "broker", "broker restarted"

    async def strike(self, cell, request, port):
        await apart(getattr(cell.servers, cell.contestant.queue).restart, signal.SIGTERM)


class Emptied(Fault):
    """FLUSHALL of Redis."""

    name, title = "emptied", "store emptied"

    async def strike(self, cell, request, port):
        await apart(cell.servers.redis.command, "FLUSHALL")


class LastSecond(Fault):
    """`kill -9` of Redis, or of a crawl in one process, which comes back as it was ten pages before."""

    name, title, copy = "last-second", "store loses its last second", True

    async def strike(self, cell, request, port):
        if cell.servers.redis:
            await apart(cell.servers.redis.fall_back, cell.copied)
        else:
            await cell.kill(cell.workers[0])
            cell.put_back()


class DiskFull(Fault):
    """The disk of workers and servers is full for 15 s."""

    name, title, disk = "disk-full", "disk full", True

    async def strike(self, cell, request, port):
        ballast = cell.disk / "ballast"
        await apart(fill, ballast)
        await asyncio.sleep(FULL)
        ballast.unlink()


def fill(file):
    with open(file, "wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(1 << 16)):
                pass
        except OSError:
            pass


class Clock(Fault):
    """The clock of the worker that has just asked for a page goes back by an hour."""

    name, title, clocks = "clock", "clock set back", True

    async def strike(self, cell, request, port):
        cell.set_clock(cell.workers.index(cell.asker(port)), CLOCK_BACK)


class Lethal(Fault):
    """A page kills the process that asks for it, each time, before it is answered."""

    name, title = "lethal", "page that kills"

    async def strike(self, cell, request, port):
        cell.site.lethal = request.page
        cell.kill_asker(port)


class SlowHost(Fault):
    """One of the two hosts takes 2 s for each page from then on."""

    name, title = "slow", "slow host"

    async def strike(self, cell, request, port):
        cell.site.slow = SLOW


class TooMany(Fault):
    """The first host answers 429 for 10 s, with a Retry-After to their end."""

    name, title = "429", "429 with Retry-After"

    async def strike(self, cell, request, port):
        cell.site.refuses_until = time.monotonic() + RETRY_AFTER


class Duplicate(Fault):
    """Every message that waits is sent once more, and what workers have is delivered again."""

    name, title = "duplicate", "duplicate delivery"

    async def strike(self, cell, request, port):
        count = await apart(cell.contestant.send_again, cell.place, cell.servers)
        cell.note(f"{count} messages were sent again")


class NetworkCut(Fault):
    """For 10 s neither the site nor any server can be reached; all connections are cut."""

    name, title, network = "cut", "network cut", True

    async def strike(self, cell, request, port):
        cell.network.cut()
        cell.site.close()
        await asyncio.sleep(CUT)
        await cell.network.mend()
        await cell.site.open()


FAULTS = {fault.name: fault() for fault in (
    Nothing, Kill, Stop, Broker, Emptied, Lethal, SlowHost, TooMany, LastSecond, NetworkCut, Duplicate, DiskFull, Clock,
)}
