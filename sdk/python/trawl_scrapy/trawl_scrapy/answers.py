"""The answers to the worker: JSON objects, one per line, on the original standard output."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, TextIO

from scrapy.utils.serialize import ScrapyJSONEncoder

_ENCODER = ScrapyJSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Answers:
    """Takes over standard output. All other output is redirected to standard error from then on."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def say(self, **answer: Any) -> None:
        """Writes an answer, waiting while the worker reads nothing. Ends the process if the worker is gone."""
        line = encode(answer) + "\n"
        with self._lock:
            try:
                self._out.write(line)
                self._out.flush()
            except BrokenPipeError:
                os._exit(1)


def encode(value: Any) -> str:
    """Returns a value as JSON, with dates and similar values as in Scrapy's feeds."""
    text = _ENCODER.encode(value)
    if "NaN" in text or "Infinity" in text:
        # Python writes numbers that JSON does not have.
        text = _ENCODER.encode(json.loads(text, parse_constant=lambda _: None))
    return text
