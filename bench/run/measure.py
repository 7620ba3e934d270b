"""What a run costs: time, CPU and memory of its own processes, and CPU of the servers it uses."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Cost:
    """Seconds of time and CPU, and peak memory in bytes of the run's own processes together."""

    seconds: float
    own_cpu: float
    servers_cpu: dict
    peak_memory: int


class Watch:
    """Starts processes, ends them, and adds up what they cost; `servers` are pids by name."""

    def __init__(self, servers, log):
        self.servers, self.log = servers, log
        self.processes, self.cpu, self.peak, self.highest, self.ran = [], 0.0, 0, {}, {}
        self.over = threading.Event()

    def __enter__(self):
        self.servers_before = self.servers_cpu()
        self.sampler = threading.Thread(target=self.sample)
        self.sampler.start()
        self.begun = time.monotonic()
        return self

    def start(self, command, environment=None):
        """Starts a process of the run."""
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**os.environ, **{name: str(value) for name, value in (environment or {}).items()}},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        self.processes.append(process)
        return process

    def await_all(self, timeout):
        """Waits until all have ended by themselves."""
        for process in list(self.processes):
            self.await_one(process, timeout)

    def await_one(self, process, timeout):
        deadline = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                raise TimeoutError(f"{process.args[0]} did not end within {timeout} s")
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.processes.remove(process)
        self.cpu += usage.ru_utime + usage.ru_stime
        if process.returncode not in (0, -signal.SIGTERM):
            raise RuntimeError(f"{process.args} ended with {process.returncode}")

    def stop_clock(self):
        """The work is done; what follows is only tidying up."""
        self.seconds = time.monotonic() - self.begun
        self.servers_after = self.servers_cpu()

    def __exit__(self, *_):
        if not hasattr(self, "seconds"):
            self.stop_clock()
        for process in list(self.processes):
            process.terminate()
            self.await_one(process, 60)
        self.over.set()
        self.sampler.join()

    def cost(self):
        servers = {name: self.servers_after[name] - before for name, before in self.servers_before.items()}
        # What a child ran counts for its parent only if that waited for it; what is seen here lacks the last moment.
        return Cost(self.seconds, max(self.cpu, sum(self.ran.values())), servers, self.peak)

    def sample(self):
        """Memory and CPU, as long as the run lasts: of each process the kernel keeps peak and sum itself."""
        while not self.over.wait(0.02):
            for process in list(self.processes):
                for pid in family(process.pid):
                    self.highest[pid] = max(self.highest.get(pid, 0), peak_memory(pid))
                    self.ran[pid] = max(self.ran.get(pid, 0), own_cpu(pid))
            self.peak = sum(self.highest.values())

    def servers_cpu(self):
        return {name: cpu(pid) for name, pid in self.servers.items()}


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


def cpu(pid):
    """Seconds that a process and its children have run."""
    return sum(own_cpu(member) for member in family(pid))


def own_cpu(pid):
    """Seconds that a process itself has run."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_memory(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), None)
    return int(line.split()[1]) * 1024 if line else 0
