"""What a site that does harm costs its neighbours: the pace of an honest crawl beside it, memory, and bytes in the servers."""

import json
import sys
import time

from hostile import ATTACKS, Site, now
from measure import Watch
from servers import Servers
from stage import parser, work_folder

LOOK = 0.25
# The honest site may be asked so often in a second.
PACE = 50
# Bytes that no attack may exceed: half as much again as `worker.page_memory`; the budgets of cache and robots.txt, and records; messages.
MEMORY, REDIS, RABBITMQ = 768e6, 300e6, 50e6
VHOST = "neighbours"
TIMEOUT = 120
# What the fleet signs its messages with.
KEY = "a key of the fleet that nobody else has"


def main():
    options, missed = arguments(), []
    print("| attack | engine | first honest page | honest pages/s | longest gap | memory | Redis | RabbitMQ | noted |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.only or ATTACKS:
        attack = ATTACKS[name]
        for engine in options.engine or ENGINES:
            if engine in attack.engines and not measure(options, attack(), engine):
                missed.append(f"{name} ({engine})")
    if missed:
        sys.exit(f"neighbours: what must hold did not beside {', '.join(missed)}")


def arguments():
    options = parser(__doc__)
    options.add_argument("--seconds", type=int, default=20, help="for each attack and engine")
    options.add_argument("--only", action="append", choices=ATTACKS, help="this attack; may be repeated")
    options.add_argument("--engine", action="append", choices=ENGINES, help="this engine; may be repeated")
    return options.parse_args()


def measure(options, attack, engine):
    """A line for one attack. Returns whether its neighbour, memory and the servers kept to what they must."""
    with work_folder() as folder, open(folder / "log", "wb") as log:
        servers, honest = Servers(options.servers), attack.neighbour()
        attack.servers, attack.vhost = servers, VHOST
        honest.pages = PACE * options.seconds
        (folder / "urls.txt").write_text("".join(f"{url}\n" for url in [*attack.urls(), *honest.urls()]))
        write_settings(folder, attack, honest)
        with Site(attack, folder / "noted") as hostile, Site(honest, folder / "asked") as site:
            with Watch({}, log) as watch:
                run = ENGINES[engine](watch, options.programs / "trawl", servers, folder)
                until = now() + options.seconds
                while now() < until:
                    run.look()
                    time.sleep(LOOK)
                # It need not end well: what it has in hand may take long.
                while watch.processes:
                    process = watch.processes.pop()
                    process.kill()
                    process.wait()
                run.end()
            asked = [when for when in site.times() if when <= until]
            noted = len(hostile.times()) / options.seconds
    began = until - options.seconds
    first = asked[0] if asked else until
    gap = max(after - before for before, after in zip([first, *asked], [*asked, until]))
    pace = len(asked) / max(until - first, 1)
    redis, rabbitmq = (f"{peak / 1e6:.1f} MB" for peak in (run.redis, run.rabbitmq))
    print(
        f"| {attack.__doc__} | {engine} | {first - began:.1f} s | {pace:.1f} | {gap:.2f} s | {watch.peak / 1e6:.0f} MB | {redis} | {rabbitmq} "
        f"| {f'{noted:.1f}/s' if noted else ''} |", flush=True,
    )
    is_served = pace >= attack.least and gap < attack.longest_gap
    return is_served and watch.peak < MEMORY and run.redis < REDIS and run.rabbitmq < RABBITMQ


class Embedded:
    """`trawl crawl`."""

    redis = rabbitmq = 0

    def __init__(self, watch, trawl, servers, folder):
        command = [trawl, "crawl", folder / "urls.txt", "--spider", "neighbours", "--state", folder / "crawl.db"]
        watch.start([*command, "--quiet"])

    def look(self):
        pass

    def end(self):
        pass


class Fleet:
    """A worker, and the producer before it."""

    redis = rabbitmq = 0

    def __init__(self, watch, trawl, servers, folder):
        self.servers, place = servers, servers.clean(VHOST)
        self.empty = servers.memory()
        watch.start([trawl, "producer", folder / "urls.txt", "--spider", "neighbours"], place)
        watch.await_all(TIMEOUT)
        watch.start([trawl, "worker"], place)

    def look(self):
        self.redis = max(self.redis, self.servers.memory() - self.empty)
        queues = json.loads(self.servers.manage("GET", f"queues/{VHOST}"))
        self.rabbitmq = max(self.rabbitmq, sum(queue.get("message_bytes", 0) for queue in queues))

    def end(self):
        self.servers.remove(VHOST)


ENGINES = {"embedded": Embedded, "fleet": Fleet}


def write_settings(folder, attack, honest):
    (folder / "trawl.toml").write_text(
        '[fetch]\nallow_private = true\ncontact = "bench@localhost"\n[log]\nlevel = "warn"\n'
        f'[rabbitmq]\nkey = "{KEY}"\n[politeness]\nrate = "{attack.rate}"\n[[politeness.host]]\nhost = {json.dumps(honest.addresses())}\n'
        f'rate = "{honest.rate}"\n[[sinks]]\nkind = "jsonl"\npath = "{folder}/items-{{worker}}.jsonl"\n'
    )
    (folder / "spiders").mkdir()
    (folder / "spiders" / "neighbours.toml").write_text(attack.spider)


if __name__ == "__main__":
    main()
