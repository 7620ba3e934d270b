#!/usr/bin/env python3
"""Holds the dashboard and the scaler to the schemas of Grafana and KEDA, which their makers publish as Python classes.

check.py DASHBOARD SCALED_OBJECT EXPRESSIONS

What a class does not know it leaves out, so whatever does not come back from it is a mistake. The dashboard's expressions are written to
the file EXPRESSIONS as rules, for promtool to read.
"""

import json
import re
import sys

import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

# What Grafana writes in place of its variables.
VARIABLES = {"$__rate_interval": "1m"}
# Of Grafana's grid.
COLUMNS = 24


def lost(before, after, path=""):
    """The paths of all that is in one and not in the other."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (value, other) in enumerate(zip(before, after)):
            yield from lost(value, other, f"{path}[{index}]")
    elif before != after:
        yield path


def dashboard_mistakes(dashboard):
    plugins.register_default_plugins()
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    for path in lost(dashboard, known):
        yield f"Grafana's schema does not have {path}"
    panels = dashboard["panels"]
    if len({panel["id"] for panel in panels}) < len(panels):
        yield "two panels have the same id"
    yield from collisions(panels)


def collisions(panels):
    """Panels that lie over each other, or beyond the grid."""
    taken = {}
    for panel in panels:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if x >= COLUMNS or other != panel["title"]:
                    yield f"{panel['title']} is beyond the grid, or over {other}"
                    return


def rules(dashboard):
    """A rule for each expression of a dashboard."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            name = re.sub(r"\W", "_", f"{panel['title']}_{panel['id']}_{target['refId']}")
            yield {"record": f"dashboard:{name}", "expr": expression}


def scaler_mistakes(scaler):
    known = ScaledObject.model_validate(scaler).model_dump(by_alias=True, exclude_none=True, mode="json")
    for path in lost(scaler, known):
        yield f"KEDA's schema does not have {path}"


def main(dashboard_path, scaler_path, expressions_path):
    with open(dashboard_path, encoding="utf-8") as file:
        dashboard = json.load(file)
    with open(scaler_path, encoding="utf-8") as file:
        scaler = yaml.safe_load(file)
    mistakes = [f"{dashboard_path}: {mistake}" for mistake in dashboard_mistakes(dashboard)]
    mistakes += [f"{scaler_path}: {mistake}" for mistake in scaler_mistakes(scaler)]
    with open(expressions_path, "w", encoding="utf-8") as file:
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": list(rules(dashboard))}]}, file)
    print("\n".join(mistakes) or f"{len(dashboard['panels'])} panels and a scaler are as their schemas have them")
    return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
