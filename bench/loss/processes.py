"""Processes of a crawl: started, found by their connections, killed with all that they started, and started again."""

import os
import pathlib
import signal
import subprocess
import time

# As a service manager would: after a second, and not for ever.
RESTART_AFTER, MOST_RESTARTS = 1.0, 40


class Worker:
    """A worker that is started again when it dies: a service always, a crawl in one process unless it has ended."""

    def __init__(self, command, folder, environment, log, service, done):
        self.command, self.folder, self.log = [str(word) for word in command], folder, log
        self.environment = {**os.environ, **{name: str(value) for name, value in environment.items()}}
        self.service, self.done = service, done
        self.restarts, self.ended, self.died = 0, None, None
        self.start()

    def start(self):
        self.died = None
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, cwd=self.folder, env=self.environment, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, start_new_session=True)

    def look(self):
        """Starts it again if it has died for long enough; notes when it ended by itself."""
        code = self.process.poll()
        if code is None or self.ended:
            return
        self.died = self.died or time.monotonic()
        if code in self.done and not self.service:
            self.ended = self.died
        elif time.monotonic() > self.died + RESTART_AFTER and self.restarts < MOST_RESTARTS:
            self.restarts += 1
            self.start()

    def family(self):
        return family(self.process.pid)

    def signal(self, number):
        """To it and all that it started, as to a container."""
        members = self.family()
        for pid in members:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def end(self):
        self.ended = self.ended or time.monotonic()
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.process.wait()


def family(pid):
    """A process and all that it started."""
    found = [pid]
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    except OSError:
        pass
    return found


def holder_of(port, pids):
    """The process among these that holds the client's end of a connection, by its port; None if there is none."""
    return next((pid for pid in reversed(pids) if port in ports_of([pid])), None)


def ports_of(pids):
    """The local ports of all connections of these processes."""
    sockets = set()
    for pid in pids:
        try:
            sockets |= {os.readlink(file) for file in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            continue
    lines = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if f"socket:[{fields[9]}]" in sockets}
