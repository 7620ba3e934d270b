"""A place of its own on RabbitMQ and Redis for each run, and what is asked of them."""

import base64
import os
import socket
import urllib.parse
import urllib.request

TIMEOUT = 60


class Servers:
    """The servers that `scripts/servers` has started in a folder."""

    def __init__(self, folder):
        self.pids = {name: int((folder / f"{name}.pid").read_text()) for name in ("rabbitmq", "redis")}
        self.broker = urllib.parse.urlsplit(os.environ["RABBITMQ_URL"])
        self.management = urllib.parse.urlsplit(os.environ["RABBITMQ_MANAGEMENT_URL"])
        self.store = urllib.parse.urlsplit(os.environ["REDIS_URL"])

    def clean(self, name):
        """An empty virtual host, an empty Redis; returns the environment that names them."""
        self.redis("FLUSHALL")
        self.manage("PUT", f"vhosts/{name}")
        self.manage("PUT", f"permissions/{name}/{self.broker.username}",
                    b'{"configure": ".*", "write": ".*", "read": ".*"}')
        return {"RABBITMQ_URL": self.broker._replace(path=f"/{name}").geturl(), "REDIS_URL": self.store.geturl()}

    def remove(self, name):
        self.manage("DELETE", f"vhosts/{name}")

    def manage(self, method, path, body=None):
        address = f"http://{self.management.hostname}:{self.management.port}/api/{path}"
        request = urllib.request.Request(address, data=body, method=method)
        user = f"{self.management.username}:{self.management.password}".encode()
        request.add_header("Authorization", "Basic " + base64.b64encode(user).decode())
        request.add_header("Content-Type", "application/json")
        return urllib.request.urlopen(request, timeout=TIMEOUT).read()

    def redis(self, *words):
        """The answer to one command: a text, a number, or None."""
        parts = [str(word).encode() for word in words]
        request = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        with socket.create_connection((self.store.hostname, self.store.port), timeout=TIMEOUT) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                line = answer.readline().decode().strip()
                if line.startswith("-"):
                    raise RuntimeError(f"redis: {line}")
                if line.startswith("$"):
                    length = int(line[1:])
                    return answer.read(length).decode() if length >= 0 else None
                return line[1:]

    def memory(self):
        """Bytes that Redis has in use."""
        return int(next(line for line in self.redis("INFO", "memory").splitlines()
                        if line.startswith("used_memory:")).split(":")[1])


def processes(servers, site):
    """All servers by name, for the account of CPU."""
    return {"nginx": site.server.pid, **servers.pids}


