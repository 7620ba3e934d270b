"""The folder of a whole run's items and remaining work (`JOBDIR`), from which the next attempt on this machine continues.

Scrapy writes the latter completely only when it closes a spider in order, as after SIGTERM. After `kill -9` its list of
seen requests is there and its queue is not, so a run would silently leave out pages. Such a folder is removed, and the
attempt starts anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from .components import NEAREST_TO_ENGINE, StartsOnce

# In seconds.
_KEPT = 14 * 24 * 3600


class JobFolder:
    """The folder of one task."""

    def __init__(self, task: dict[str, Any]) -> None:
        """Opens the folder if it was closed in order, else an empty one. From here on it counts as not closed."""
        self._path = _ours() / str(task["id"])
        self._closed = self._path / "closed"
        if self._closed.exists():
            self._closed.unlink()
        else:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path.mkdir(mode=0o700)

    @property
    def items(self) -> Path:
        """The file of the run's items."""
        return self._path / "items.jsonl"

    def hand_items_over(self) -> str:
        """Moves the file of items to the place where trawl expects it, and returns its path."""
        return str(shutil.move(self.items, Path(os.environ["TRAWL_TMP"]) / self.items.name))

    def settle_in(self, settings: Settings) -> None:
        """Makes Scrapy keep its job here and not in the project's folder: without the items it is worth nothing."""
        settings.set("JOBDIR", str(self._path / "job"), priority="cmdline")
        settings.set(StartsOnce.SETTING, str(self._path / "started"), priority="cmdline")
        middlewares = {**settings.getdict("SPIDER_MIDDLEWARES"), StartsOnce: NEAREST_TO_ENGINE}
        settings.set("SPIDER_MIDDLEWARES", middlewares, priority="cmdline")

    def keep(self) -> None:
        """Keeps the folder for the next attempt, which continues from here."""
        self._closed.touch()

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._path, ignore_errors=True)


def _ours() -> Path:
    """Returns the parent of all job folders. It is not below `TMPDIR`, which is removed with the process."""
    path = Path(os.environ.get("HOME") or "/") / ".cache" / "trawl-scrapy"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        # Without this folder a stopped run cannot be continued.
        return Path(tempfile.mkdtemp(prefix="trawl-scrapy-"))
    found = path.lstat()
    # Scrapy reads pickles from there, so nobody else may have written it.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{path} belongs to somebody else, or others may write to it: remove it")
    _forget_old(path)
    return path


def _forget_old(path: Path) -> None:
    """Removes the folders of runs whose tasks continued elsewhere."""
    for folder in path.iterdir():
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - _KEPT:
                shutil.rmtree(folder)
