"""Where contestants run: what every program here is told, and the folder, the servers and the site that it works with."""

import argparse
import contextlib
import json
import os
import pathlib
import tempfile

from servers import Servers
from web import Site


def path(text):
    """A path that stays right when the program moves to its folder."""
    return pathlib.Path(text).resolve()


def parser(about, rounds=None):
    """The options that all have; with so many rounds, those of a comparison too."""
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--programs", type=path, required=True, help="the folder of the build")
    options.add_argument("--servers", type=path, required=True, help="the folder given to scripts/servers")
    if rounds:
        options.add_argument("--rounds", type=int, default=rounds)
        options.add_argument("--json", type=path, help="write every single figure to this file")
    return options


def add_port(options):
    """For those that need the site."""
    options.add_argument("--port", type=int, default=18_080, help="where nginx listens, on 127.0.0.1 to 127.0.0.20")


@contextlib.contextmanager
def work_folder():
    """A folder of its own, which is the current one: no trawl.toml of somebody's is read."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="trawl-bench-") as name:
        folder = pathlib.Path(name)
        # nginx reads in it as another user.
        folder.chmod(0o755)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


@contextlib.contextmanager
def stage(options, pages, kind=Site):
    """The folder, the servers, and the site with so many pages."""
    with work_folder() as folder, kind(folder / "site", options.port, pages) as site:
        yield folder, Servers(options.servers), site


def write_costs(options, costs):
    """Every single figure, if that is asked for."""
    if options.json:
        figures = {name: [vars(cost) for cost in of_one] for name, of_one in costs.items()}
        options.json.write_text(json.dumps(figures, indent=1))
