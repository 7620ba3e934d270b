"""Where a whole run keeps its items, and what it still has to do (`JOBDIR`), so that the next attempt on this machine goes on from there.

Scrapy writes the latter whole only when it closes a spider in order, as after SIGTERM. After `kill -9` its list of requests seen is there,
and its queue is not, so that a run from it would leave out pages in silence. Such a folder is thrown away: that attempt begins anew.
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
        """As it was closed in order, or else empty. From here on it counts as not closed."""
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
        """Moves that file to where trawl takes it from, and returns its path."""
        return str(shutil.move(self.items, Path(os.environ["TRAWL_TMP"]) / self.items.name))

    def settle_in(self, settings: Settings) -> None:
        """Has Scrapy keep its job here, wherever else the project would keep it: without the items it is worth nothing."""
        settings.set("JOBDIR", str(self._path / "job"), priority="cmdline")
        settings.set(StartsOnce.SETTING, str(self._path / "started"), priority="cmdline")
        middlewares = {**settings.getdict("SPIDER_MIDDLEWARES"), StartsOnce: NEAREST_TO_ENGINE}
        settings.set("SPIDER_MIDDLEWARES", middlewares, priority="cmdline")

    def keep(self) -> None:
        """For the next attempt, which goes on from here."""
        self._closed.touch()

    def remove(self) -> None:
        """All of it."""
        shutil.rmtree(self._path, ignore_errors=True)


def _ours() -> Path:
    """The folder of all of them: not below `TMPDIR`, which goes with the process."""
    path = Path(os.environ.get("HOME") or "/") / ".cache" / "trawl-scrapy"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        # Nothing of a run that is stopped can be kept.
        return Path(tempfile.mkdtemp(prefix="trawl-scrapy-"))
    found = path.lstat()
    # Scrapy reads pickles from there, so nobody else may have written it.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{path} belongs to somebody else, or others may write to it: remove it")
    _forget_old(path)
    return path


def _forget_old(path: Path) -> None:
    """What was left by runs whose tasks went on elsewhere."""
    for folder in path.iterdir():
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - _KEPT:
                shutil.rmtree(folder)
