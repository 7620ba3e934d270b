"""What goes over the wires for a page: frames between trawl and RabbitMQ, counted on their way, and commands of Redis."""

import collections
import re
import socket
import struct
import threading

from contestants import Fleet
from measure import Watch
from servers import Servers
from stage import add_port, parser, stage

# AMQP 0-9-1: types of frames, and the methods that each message has.
TYPES = {1: "other methods", 2: "headers", 3: "bodies", 8: "heartbeats"}
METHODS = {(60, 40): "publish", (60, 60): "deliver", (60, 80): "ack", (60, 120): "nack"}


def main():
    options = parser(__doc__)
    add_port(options)
    options.add_argument("--pages", type=int, default=10_000)
    options = options.parse_args()
    with stage(options, options.pages) as (folder, servers, site), open(folder / "log", "wb") as log:
        relay = Relay(servers.broker.hostname, servers.broker.port)
        fleet, servers = Fleet(options.programs, 1), Relayed(options.servers, relay)
        print("| | frames a page | bytes a page | of these |\n|---|---|---|---|")
        with Watch({}, log) as watch:
            fleet.fill(watch, site, servers, folder)
            relay.tell("producer", options.pages)
        servers.redis("CONFIG", "RESETSTAT")
        with Watch({}, log) as watch:
            fleet.run(watch, site, servers, folder)
            commands = servers.redis("INFO", "commandstats")
            relay.tell("worker", options.pages)
        fleet.tidy(servers)
        print("\n| Redis | a page |\n|---|---|")
        calls = {name: int(count) for name, count in re.findall(r"cmdstat_([^:]+):calls=(\d+)", commands)}
        for name, count in sorted(calls.items(), key=lambda call: -call[1]):
            if count >= options.pages / 100:
                print(f"| `{name.upper()}` | {count / options.pages:.2f} |")
        print("\nCommands in scripts count too; `EVALSHA` is a script.")


class Relayed(Servers):
    """The servers, of which RabbitMQ is reached through a relay."""

    def __init__(self, folder, relay):
        super().__init__(folder)
        address = f"{self.broker.username}:{self.broker.password}@127.0.0.1:{relay.port}"
        self.broker = self.broker._replace(netloc=address)


class Relay:
    """Passes on what comes, both ways, and counts the frames in it."""

    def __init__(self, host, port):
        self.target, self.counts = (host, port), collections.defaultdict(collections.Counter)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(self.target)
            # A client begins with eight bytes that are no frame.
            for source, sink, way, skip in [(near, far, "to RabbitMQ", 8), (far, near, "from RabbitMQ", 0)]:
                threading.Thread(target=self.pump, args=(source, sink, way, skip), daemon=True).start()

    def pump(self, source, sink, way, skip):
        rest, counts = b"", self.counts[way]
        try:
            while piece := source.recv(1 << 16):
                sink.sendall(piece)
                counts["bytes"] += len(piece)
                rest += piece
                if len(rest) >= skip:
                    rest, skip = self.count(rest[skip:], counts), 0
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    @staticmethod
    def count(data, counts):
        """Counts whole frames, and returns what comes after them."""
        at = 0
        while len(data) >= at + 7:
            kind, _, size = struct.unpack_from(">BHI", data, at)
            if len(data) < at + size + 8:
                break
            method = struct.unpack_from(">HH", data, at + 7) if kind == 1 else None
            counts[METHODS.get(method) or TYPES.get(kind, "unknown")] += 1
            at += size + 8
        return data[at:]

    def tell(self, who, pages):
        for way, counts in self.counts.items():
            total = counts.pop("bytes", 0)
            often = [(name, count / pages) for name, count in counts.most_common() if count >= pages / 100]
            kinds = ", ".join(f"{count:.2f} {name}" for name, count in often)
            print(f"| {who}, {way} | {counts.total() / pages:.2f} | {total / pages:,.0f} | {kinds} |", flush=True)
            counts.clear()


if __name__ == "__main__":
    main()
