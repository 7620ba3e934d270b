"""What the program is made of, as CycloneDX 1.6: the crates that are linked into it, with their licences and checksums."""

import json
import subprocess
import tomllib
from datetime import UTC, datetime


def write(release, program):
    crates = linked(release, program.target)
    edges = list(dependencies(release, program.target, crates))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(release.time, UTC).isoformat(),
            "component": {"type": "application", **crates[("trawl", release.version)]},
        },
        "components": [
            {"type": "library", **crate} for (name, _), crate in sorted(crates.items()) if name != "trawl"
        ],
        "dependencies": edges,
    }
    path = release.folder / f"trawl-{release.version}.cdx.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def cargo(release, *arguments):
    return subprocess.run(
        ["cargo", *arguments], cwd=release.root, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def linked(release, target):
    """Returns the crates of the program by name and version: neither those that only build it, nor macros."""
    tree = cargo(
        release, "tree", "--locked", "-p", "trawl", "--target", target, "-e", "normal,no-proc-macro", "--prefix", "none",
        "--format", "{p}|{l}|",
    )  # fmt: skip
    sums = {(one["name"], one["version"]): one.get("checksum") for one in lock(release)["package"]}
    return dict(crate(line, sums) for line in tree.splitlines())


def lock(release):
    return tomllib.loads((release.root / "Cargo.lock").read_text())


def crate(line, sums):
    package, license, _ = line.split("|")
    name, version = package.split()[:2]
    version = version.removeprefix("v")
    url = f"pkg:cargo/{name}@{version}"
    described = {"bom-ref": url, "name": name, "version": version}
    if checksum := sums[(name, version)]:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if license:
        # An old way to write it.
        described["licenses"] = [{"expression": license.replace("/", " OR ")}]
    return (name, version), described | {"purl": url}


def dependencies(release, target, crates):
    resolved = json.loads(cargo(release, "metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    keys = {package["id"]: (package["name"], package["version"]) for package in resolved["packages"]}
    for node in sorted(resolved["resolve"]["nodes"], key=lambda node: keys[node["id"]]):
        if keys[node["id"]] in crates:
            on = {keys[dep["pkg"]] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])}
            refs = [crates[key]["bom-ref"] for key in sorted(on) if key in crates]
            yield {"ref": crates[keys[node["id"]]]["bom-ref"], "dependsOn": refs}
