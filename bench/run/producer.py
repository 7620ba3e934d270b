"""The producer against bare publishing to a quorum queue, each some rounds, one after the other."""

import statistics

from contestants import TIMEOUT, POLITENESS_OFF
from measure import Watch
from servers import Servers
from stage import parser, work_folder, write_costs

HOSTS = 1000


def main():
    options = arguments()
    with work_folder() as folder:
        urls = folder / "urls.txt"
        write_urls(urls, options.urls)
        servers = Servers(options.servers)
        runs = {"bare publishing, 800 confirms ahead": [], "trawl producer": []}
        for turn in range(options.rounds):
            for name, costs in runs.items():
                command = bare if name.startswith("bare") else producer
                costs.append(run(command(options.programs, urls), servers, folder))
                print(f"round {turn + 1}: {name}: {options.urls / costs[-1].seconds:,.0f} URLs/s", flush=True)
        print()
        table(runs, options.urls)
        write_costs(options, runs)


def arguments():
    options = parser(__doc__, rounds=3)
    options.add_argument("--urls", type=int, default=1_000_000)
    return options.parse_args()


def write_urls(path, count):
    """So many URLs of 64 characters."""
    with open(path, "w") as lines:
        for number in range(count):
            start = f"https://host-{number % HOSTS:04}.example.com/articles/{number:09}/"
            lines.write(start.ljust(64, "x") + "\n")


def bare(programs, urls):
    return [programs / "publish", urls]


def producer(programs, urls):
    return [programs / "trawl", "producer", urls, "--crawl", "bench"]


def run(command, servers, folder):
    place = servers.clean("bench")
    with open(folder / "log", "wb") as log:
        try:
            with Watch(servers.pids, log) as watch:
                watch.start(command, {**POLITENESS_OFF, **place})
                watch.await_all(TIMEOUT)
                watch.stop_clock()
        except (RuntimeError, TimeoutError) as error:
            raise SystemExit(f"{error}\n{(folder / 'log').read_text(errors='replace')[-2000:]}") from error
    servers.remove("bench")
    return watch.cost()


def table(runs, count):
    base = next(iter(runs.values()))
    print("| | URLs/s | of bare | own CPU | rabbitmq | redis | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for name, costs in runs.items():
        middle = lambda figure: statistics.median(figure(cost) for cost in costs)
        ratio = statistics.median(one.seconds / cost.seconds for one, cost in zip(base, costs))
        print(
            f"| {name} | {middle(lambda cost: count / cost.seconds):,.0f} | {ratio:.2f} "
            f"| {middle(lambda cost: cost.own_cpu / count * 1e6):.0f} µs "
            f"| {middle(lambda cost: cost.servers_cpu['rabbitmq'] / count * 1e6):.0f} µs "
            f"| {middle(lambda cost: cost.servers_cpu['redis'] / count * 1e6):.0f} µs "
            f"| {middle(lambda cost: cost.peak_memory / 1e6):.0f} MB |"
        )
    print()
    print("CPU for one URL.")


if __name__ == "__main__":
    main()
