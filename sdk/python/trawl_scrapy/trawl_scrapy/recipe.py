"""What a task says: which spider, its arguments and settings, and which of its requests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

KEYS = ("spider", "args", "settings", "run", "start", "request", "prepared", "cookies")


class InvalidRecipe(Exception):
    """The text is no recipe. The message says what to change."""


@dataclass(frozen=True)
class Recipe:
    """The name of a spider, or a JSON object of `spider`, `args` and `settings`. The tasks and requests that `serve` asks
    for also name their run, and have a `request`, which the downloader middlewares have looked at if it is `prepared`, or say how much of the spider's
    start is done."""

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
        """What `to_object` has made, or a person has written."""
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
        """The same as text."""
        return json.dumps(self.to_object(), ensure_ascii=False, separators=(",", ":"))

    def to_object(self) -> dict[str, Any]:
        """The shortest object that says it."""
        return {key: value for key in KEYS if (value := getattr(self, key))}

    def for_request(self, run: str, request: dict[str, Any], cookies: list[Any], prepared: bool = False) -> Recipe:
        """For one of the requests of the same run."""
        return replace(self, run=run, start=0, request=request, prepared=prepared, cookies=cookies)

    def starting_from(self, run: str, start: int) -> Recipe:
        """For the rest of the same run's start."""
        return replace(self, run=run, start=start)

    def identity(self) -> str:
        """The same for runs of one spider with the same arguments and settings."""
        return json.dumps([self.spider, self.args, self.settings], sort_keys=True)
