"""What it costs to read pages with a program of one's own: the title of each page, by a spider's rules, by its handler, by Scrapy, and by the bare function."""

import os
import pathlib
import shutil
import sys

from compare import rounds, table
from contestants import Peer, crawl, finish
from stage import add_port, parser, path, stage, write_costs

HERE = pathlib.Path(__file__).parent / "handlers"
SDK = pathlib.Path(__file__).parent.parent.parent / "sdk" / "python"


class Spider:
    """`trawl crawl` with a spider of the folder `handlers`."""

    durable = "every URL's state (SQLite), items"

    def __init__(self, programs, spider, name):
        self.program, self.spider, self.name = programs / "trawl", spider, name

    def fill(self, watch, site, servers, folder):
        shutil.copytree(HERE / self.spider, folder / "spiders" / self.spider)
        shutil.copy(SDK / "trawl_handler.py", folder / "spiders" / self.spider)

    def run(self, watch, site, servers, folder):
        spider = folder / "spiders" / self.spider / "spider.toml"
        crawl(self.program, ["--spider", spider], watch, site, folder)


class Function:
    """The handler's function over the files, which nobody fetches."""

    name, durable = "the function alone, over files", "nothing"

    def run(self, watch, site, servers, folder):
        (folder / "files").write_text("\n".join(map(str, site.files)))
        command = [sys.executable, HERE / "bare.py", folder / "files", folder / "items.jsonl"]
        watch.start(command, {"PYTHONPATH": os.pathsep.join(map(str, [SDK, HERE / "program"]))})
        finish(watch, site, folder)


def main():
    options = parser(__doc__, rounds=3)
    add_port(options)
    options.add_argument("--pages", type=int, default=10_000)
    options.add_argument("--peers", type=path, help="the folder that the peers are installed in")
    options = options.parse_args()
    programs = options.programs
    everyone = [
        Spider(programs, "rules", "trawl, [fields]"),
        Spider(programs, "program", "trawl, handler in Python"),
        Function(),
    ]
    if options.peers:
        everyone.append(Peer("Scrapy + scrapy-redis", "scrapy_redis", options.peers, "URLs not yet taken (Redis), items"))
    with stage(options, options.pages) as (folder, servers, site):
        costs = rounds(options, everyone, servers, site, folder)
        print()
        table(everyone, costs, len(site.urls))
        write_costs(options, costs)


if __name__ == "__main__":
    main()
