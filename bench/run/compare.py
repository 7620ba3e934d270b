"""Runs every contestant some rounds, one after the other in each round, and prints what they cost, side by side."""

import statistics

from contestants import Embedded, Fleet, Limit, Peer
from measure import Watch
from servers import processes
from stage import add_port, parser, path, stage, write_costs


def main():
    options = arguments()
    with stage(options, options.pages) as (folder, servers, site):
        everyone = contestants(options)
        chosen = [one for one in everyone if not options.only or any(word in one.name for word in options.only)]
        costs = rounds(options, chosen, servers, site, folder)
        print()
        print(f"{len(site.urls):,} pages of {site.bytes / len(site.urls) / 1000:.1f} KB on average, "
              f"{len(site.hosts)} hosts, {options.rounds} rounds, medians")
        print()
        table(chosen, costs, len(site.urls))
        write_costs(options, costs)


def arguments():
    options = parser(__doc__, rounds=5)
    add_port(options)
    options.add_argument("--peers", type=path, help="the folder that the peers are installed in")
    options.add_argument("--pages", type=int, default=10_000)
    options.add_argument("--only", action="append", help="only those with this in their name; may be repeated")
    return options.parse_args()


def contestants(options):
    programs = options.programs
    mine = [Limit(programs, False), Limit(programs, True), Embedded(programs), Fleet(programs, 1), Fleet(programs, 2)]
    if not options.peers:
        return mine
    return mine + [
        Peer("spider", "spider", options.peers, "items"),
        Peer("pika + requests", "pika", options.peers, "every URL's state (quorum queue), items"),
        Peer("Scrapy + scrapy-redis", "scrapy_redis", options.peers, "URLs not yet taken (Redis), items"),
        Peer("Crawlee, Cheerio", "crawlee", options.peers, "every URL's state (files), items"),
    ]


def rounds(options, contestants, servers, site, folder):
    """What each of them cost in each round, by its name."""
    costs = {one.name: [] for one in contestants}
    for number in range(options.rounds):
        for one in contestants:
            warm(options.programs, site)
            cost = run(one, site, servers, folder / f"{number}-{one.name.replace('/', '-')}")
            costs[one.name].append(cost)
            print(f"round {number + 1}: {one.name}: {len(site.urls) / cost.seconds:,.0f} pages/s", flush=True)
    return costs


def warm(programs, site):
    """Reads what all read, so that nobody waits for a disk because of who came before."""
    for file in [*site.files, *programs.iterdir()]:
        if file.is_file():
            file.read_bytes()


def run(one, site, servers, folder):
    """One run of one contestant, in a folder of its own."""
    folder.mkdir()
    with open(folder / "log", "wb") as log:
        try:
            if hasattr(one, "fill"):
                with Watch({}, log) as watch:
                    one.fill(watch, site, servers, folder)
            with Watch(processes(servers, site), log) as watch:
                one.run(watch, site, servers, folder)
            if hasattr(one, "tidy"):
                one.tidy(servers)
        except (RuntimeError, TimeoutError) as error:
            log.flush()
            said = (folder / "log").read_text(errors="replace")[-2000:]
            raise SystemExit(f"{one.name}: {error}\n{said}") from error
    return watch.cost()


def table(chosen, costs, pages):
    """A table in Markdown: the median of each figure, and of the ratio to the limit within each round."""
    limit = next((one.name for one in chosen if isinstance(one, Limit) and one.read), None)
    servers = list(next(iter(costs.values()))[0].servers_cpu)
    heads = ["", "pages/s", "of the limit", "own CPU", *servers, "peak memory", "keeps durable"]
    rows = []
    for one in chosen:
        runs = costs[one.name]
        ratio = (
            statistics.median(base.seconds / run.seconds for base, run in zip(costs[limit], runs)) if limit else None
        )
        middle = lambda figure: statistics.median(figure(run) for run in runs)
        rows.append([
            one.name,
            f"{middle(lambda run: pages / run.seconds):,.0f}",
            f"{ratio:.2f}" if ratio else "",
            f"{middle(lambda run: run.own_cpu / pages * 1000):.3f}",
            *(f"{middle(lambda run: run.servers_cpu[name] / pages * 1000):.3f}" for name in servers),
            f"{middle(lambda run: run.peak_memory / 1e6):.0f} MB",
            one.durable,
        ])
    print("| " + " | ".join(heads) + " |")
    print("|" + "|".join("---" for _ in heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()
    print("CPU in seconds for 1,000 pages.")


if __name__ == "__main__":
    main()
