"""The command `trawl-scrapy`."""

from __future__ import annotations

import argparse
import sys

from . import run, serve


def main() -> None:
    """Parses the command line and runs the command."""
    parser = argparse.ArgumentParser(
        prog="trawl-scrapy", description="Runs an unmodified Scrapy project as a handler of trawl (docs/scrapy.md)."
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    once = modes.add_parser("run", help='a handler of mode "once": each task is a whole run of a spider')
    stream = modes.add_parser("serve", help='a handler of mode "stream": each request of a spider is one of trawl')
    for mode in (once, stream):
        mode.add_argument("--project", default=".", help="the folder of scrapy.cfg (default: the current one)")
    once.add_argument("task", help="the task as JSON: trawl adds it")
    once.add_argument("secret", nargs="?", help="the project's secret as JSON: trawl adds it")
    given = parser.parse_args()
    sys.exit(run.run(given.project, given.task) if given.mode == "run" else serve.serve(given.project))


if __name__ == "__main__":
    main()
