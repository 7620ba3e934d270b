"""A crawl of 1,000,000 URLs by one worker: what a page costs at its start, in its middle and at its end."""

import time

from contestants import POLITENESS_OFF
from measure import Watch, cpu, peak_memory
from stage import add_port, parser, stage

LOOK = 0.05


def main():
    options = arguments()
    with stage(options, 20) as (folder, servers, site), open(folder / "log", "wb") as log:
        urls = folder / "urls.txt"
        write_urls(urls, site.hosts, options.urls)
        place = servers.clean("bench")
        (folder / "trawl.toml").write_text(
            f'[[sinks]]\nkind = "jsonl"\npath = "{folder}/items.jsonl"\n[[route]]\nlane = "bulk"\n'
            '[queues.bulk]\nttl = "6h"\n'
        )
        environment = {**POLITENESS_OFF, **place}
        trawl = options.programs / "trawl"
        with Watch({}, log) as watch:
            watch.start([trawl, "producer", urls, "--crawl", "bench"], environment)
            watch.await_all(3600)
        print(f"Redis with {options.urls:,} records: {servers.memory() / 1e6:,.0f} MB", flush=True)
        print("| pages done | pages/s | worker | rabbitmq | redis | worker's peak memory | Redis |")
        print("|---|---|---|---|---|---|---|")
        with Watch({}, log) as watch:
            worker = watch.start([trawl, "worker"], environment)
            follow(options, servers, {"worker": worker.pid, **servers.pids})
        servers.remove("bench")
    print()
    print("CPU in µs a page, over the last step.")


def follow(options, servers, pids):
    """A line for every so many pages."""
    done, last, then = 0, {name: cpu(pid) for name, pid in pids.items()}, time.monotonic()
    while done < options.urls:
        time.sleep(LOOK)
        count = int(servers.redis("HGET", "{crawled_urls}:crawl:bench", "done") or 0)
        if count < done + options.step and count < options.urls:
            continue
        now, used = time.monotonic(), {name: cpu(pid) for name, pid in pids.items()}
        each = {name: (used[name] - last[name]) / (count - done) * 1e6 for name in pids}
        print(
            f"| {count:,} | {(count - done) / (now - then):,.0f} | {each['worker']:.0f} | {each['rabbitmq']:.0f} "
            f"| {each['redis']:.0f} | {peak_memory(pids['worker']) / 1e6:.0f} MB | {servers.memory() / 1e6:,.0f} MB |",
            flush=True,
        )
        done, last, then = count, used, now


def arguments():
    options = parser(__doc__)
    add_port(options)
    options.add_argument("--urls", type=int, default=1_000_000)
    options.add_argument("--step", type=int, default=100_000, help="a line for so many pages")
    return options.parse_args()


def write_urls(path, hosts, count):
    """So many URLs, of hosts in turn; nginx answers each with a small page."""
    with open(path, "w") as lines:
        for number in range(count):
            lines.write(f"{hosts[number % len(hosts)]}/small/{number:09}/a-page-as-long-as-most\n")


if __name__ == "__main__":
    main()
