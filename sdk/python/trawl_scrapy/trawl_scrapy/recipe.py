"""The recipe of a task: the spider, its arguments and settings, and optionally one of its requests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

KEYS = ("spider", "args", "settings", "run", "start", "request", "prepared", "cookies")


class InvalidRecipe(Exception):
    """The text is no valid recipe. The message says what to change."""


@dataclass(frozen=True)
class Recipe:
    """The name of a spider, or a JSON object with `spider`, `args` and `settings`. Tasks and requests that `serve`
    submits also have the name of their run. They have either a `request`, with `prepared` if the downloader
    middlewares have processed it, or the number of steps of the spider's start that are done."""

    spider: str
    args: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    run: str = ""
    start: int = 0
    request: dict[str, Any] | None = None
    prepared: bool = False
    cookies: list[Any] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Recipe:
        try:
            value = json.loads(text)
        except ValueError:
            if text.lstrip().startswith("{"):
                raise InvalidRecipe("the recipe begins like a JSON object, but it is no JSON") from None
            value = text.strip()
        if isinstance(value, str):
            value = {"spider": value}
        if not isinstance(value, dict):
            raise InvalidRecipe(
                'the recipe is the name of a spider, or a JSON object such as {"spider": "quotes", "args": {"tag": "love"}}'
            )
        return cls.of_object(value)

    @classmethod
    def of_object(cls, value: dict[str, Any]) -> Recipe:
        """Reads an object made by `to_object` or written by a person."""
        for key in value:
            if key not in KEYS:
                raise InvalidRecipe(f"a recipe has no `{key}`; there are `spider`, `args` and `settings`")
        if not isinstance(value.get("spider"), str) or not value["spider"]:
            raise InvalidRecipe("`spider` is missing: the name that `scrapy list` shows")
        for key in ("args", "settings"):
            if not isinstance(value.get(key, {}), dict):
                raise InvalidRecipe(f"`{key}` is an object of names and values")
        for name, argument in value.get("args", {}).items():
            if not isinstance(argument, str):
                raise InvalidRecipe(
                    f"the argument `{name}` is text, as with `scrapy crawl -a {name}=...`: write {json.dumps(str(argument))}"
                )
        return cls(**value)

    def to_json(self) -> str:
        """Returns the recipe as JSON."""
        return json.dumps(self.to_object(), ensure_ascii=False, separators=(",", ":"))

    def to_object(self) -> dict[str, Any]:
        """Returns the recipe as an object without default values."""
        return {key: value for key in KEYS if (value := getattr(self, key))}

    def for_request(self, run: str, request: dict[str, Any], cookies: list[Any], prepared: bool = False) -> Recipe:
        """Returns the recipe for a request of the same run."""
        return replace(self, run=run, start=0, request=request, prepared=prepared, cookies=cookies)

    def starting_from(self, run: str, start: int) -> Recipe:
        """Returns the recipe for the rest of the same run's start."""
        return replace(self, run=run, start=start)

    def identity(self) -> str:
        """Returns a text that is the same for runs of one spider with the same arguments and settings."""
        return json.dumps([self.spider, self.args, self.settings], sort_keys=True)
