"""Checks that operators' tokens reach the console alone, in all the ways to deploy it.

    python testkit/deploy/secrets.py docker-compose.yml RENDERED_KUBERNETES.yaml deploy/systemd
"""

import sys
from pathlib import Path

import yaml

# Whatever names an operator's token: variables, files and secrets.
MARKS = ("CONSOLE", "console-token", "console.env", "operator-token", "trawl-console")


def marks_in(text):
    return [mark for mark in MARKS if mark in text]


def compose_parts(path):
    for name, service in yaml.safe_load(path.read_text())["services"].items():
        yield name, yaml.safe_dump([service.get(key) for key in ("env_file", "environment", "secrets", "volumes")])


def kubernetes_parts(path):
    for resource in yaml.safe_load_all(path.read_text()):
        name = f"{resource['kind']} {resource['metadata']['name']}"
        if resource["kind"] == "Secret":
            yield name, yaml.safe_dump([resource.get("data"), resource.get("stringData")])
        elif "spec" in resource and resource["kind"] in ("Deployment", "StatefulSet", "CronJob", "Job"):
            yield name, yaml.safe_dump(resource["spec"])


def systemd_parts(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".service", ".conf"):
            lines = path.read_text().splitlines()
            yield path.name, "\n".join(line for line in lines if line.startswith(("LoadCredential", "Environment")))


def main(compose, kubernetes, systemd):
    parts = [*compose_parts(Path(compose)), *kubernetes_parts(Path(kubernetes)), *systemd_parts(Path(systemd))]
    holders = {name: found for name, text in parts if (found := marks_in(text))}
    others = {name: found for name, found in holders.items() if "console" not in name}
    for name, found in others.items():
        print(f"{name} gets what is the console's alone: {', '.join(found)}")
    if len(holders) - len(others) < 3:
        print(f"the console should have its tokens in each of three ways, not only in {sorted(holders)}")
        return 1
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
