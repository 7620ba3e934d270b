"""A Redis and a RabbitMQ of a cell's own, by `scripts/servers`, with what happens to them."""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/servers"
PATIENCE = 90
# Redis as its documentation advises where data matter: the append-only file, synced each second.
REDIS = ("--appendonly", "yes", "--appendfsync", "everysec")


class Server:
    """One of the two, which is started again when it dies by itself."""

    def __init__(self, folder, logs, name, arguments=()):
        self.folder, self.name, self.arguments = folder, name, arguments
        self.data, self.log = folder / name.partition("-")[0], logs / f"{name}.log"
        self.wanted = False

    def start(self):
        command = [SCRIPT, "run", self.folder, self.name, *self.arguments]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            start_new_session=True)
        (self.folder / f"{self.name}.pid").write_text(str(self.process.pid))
        self.wanted = True

    def stop(self, number):
        self.wanted = False
        group = self.process.pid
        os.killpg(group, number)
        self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while lives(group):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not stop: see {self.log}")
            time.sleep(0.05)

    def restart(self, number):
        self.stop(number)
        self.start()
        self.wait()

    def look(self):
        if self.wanted and self.process.poll() is not None:
            self.start()

    def wait(self):
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not answer: see {self.log}")
            time.sleep(0.1)


def lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class Redis(Server):
    def __init__(self, folder, logs, address):
        super().__init__(folder, logs, "redis-server", REDIS)
        self.address = urllib.parse.urlsplit(address)

    def answers(self):
        try:
            return self.command("PING") == "PONG"
        except OSError:
            return False

    def command(self, *words):
        """The answer to one command: a text, or a list of texts."""
        parts = [str(word).encode() for word in words]
        request = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        with socket.create_connection((self.address.hostname, self.address.port), timeout=PATIENCE) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                return read(answer)

    def keep(self, copy):
        """Copies its data as a crash would leave them now."""
        self.process.send_signal(signal.SIGSTOP)
        shutil.copytree(self.data / "appendonlydir", copy)
        self.process.send_signal(signal.SIGCONT)

    def fall_back(self, copy):
        """Crashes, and comes back as it was when the copy was made."""
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.data / "appendonlydir")
        shutil.copytree(copy, self.data / "appendonlydir")
        self.start()
        self.wait()


def read(answer):
    line = answer.readline().decode().strip()
    if line.startswith("$"):
        length = int(line[1:])
        return answer.read(length + 2)[:-2].decode() if length >= 0 else None
    if line.startswith("*"):
        return [read(answer) for _ in range(int(line[1:]))]
    return line[1:]


class RabbitMQ(Server):
    def __init__(self, folder, logs, management):
        super().__init__(folder, logs, "rabbitmq-server")
        self.management = urllib.parse.urlsplit(management)

    def answers(self):
        try:
            self.ask("GET", "health/checks/virtual-hosts")
        except OSError:
            return False
        return True

    def ask(self, method, path, body=None):
        address = f"http://{self.management.hostname}:{self.management.port}/api/{path}"
        request = urllib.request.Request(address, data=json.dumps(body).encode() if body else None, method=method)
        user = f"{self.management.username}:{self.management.password}".encode()
        request.add_header("Authorization", "Basic " + base64.b64encode(user).decode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def queues(self):
        """The names of all queues."""
        return [queue["name"] for queue in self.ask("GET", "queues/%2F")]

    def cut_off(self):
        """Closes every connection, so that what was delivered and not acknowledged is delivered again."""
        for connection in self.ask("GET", "connections"):
            self.ask("DELETE", f"connections/{urllib.parse.quote(connection['name'], safe='')}")


class Servers:
    """Those of a cell, in a folder that may be a small disk of its own; empty for crawlers that need none."""

    def __init__(self, folder, logs, needs):
        self.folder, self.all, self.redis, self.rabbitmq = folder, [], None, None
        self.urls = {}
        if not needs:
            return
        settings = subprocess.run([SCRIPT, "settings", folder], check=True, capture_output=True, text=True).stdout
        urls = dict(line.removeprefix("export ").split("=", 1) for line in settings.splitlines())
        if "redis" in needs:
            self.redis = Redis(folder, logs, urls["REDIS_URL"])
            self.urls["REDIS_URL"] = urls["REDIS_URL"]
        if "rabbitmq" in needs:
            self.rabbitmq = RabbitMQ(folder, logs, urls["RABBITMQ_MANAGEMENT_URL"])
            self.urls["RABBITMQ_URL"] = urls["RABBITMQ_URL"]
        self.all = [server for server in (self.redis, self.rabbitmq) if server]

    def start(self):
        for server in self.all:
            server.start()
        for server in self.all:
            server.wait()

    def look(self):
        for server in self.all:
            server.look()

    def end(self):
        for server in self.all:
            server.wanted = False
        if self.all:
            subprocess.run([SCRIPT, "stop", self.folder], check=False)
