"""Packages for npm: one with the program for each platform, and `trawl`, which depends on the right one."""

import json

from .archive import tar_gz

NAME = "trawl"
CPUS = {"x86_64": "x64", "aarch64": "arm64"}  # as Node calls them


def write(release, program):
    platform = f"{NAME}-linux-{CPUS[program.architecture]}"
    described = {
        "name": platform,
        "description": f"The program of {NAME} for Linux on {CPUS[program.architecture]}",
        "os": ["linux"],
        "cpu": [CPUS[program.architecture]],
        # A static program runs on systems of any C library.
        **({"libc": ["glibc"]} if program.glibc else {}),
        "preferUnplugged": True,
    }
    yield pack(release, described, {"bin/trawl": (program.path.read_bytes(), 0o755)})
    described = {
        "name": NAME,
        "description": release.summary,
        "engines": {"node": ">=18"},
        "bin": {"trawl": "bin/trawl.js"},
        "optionalDependencies": {platform: release.version},
    }
    yield pack(release, described, {"bin/trawl.js": ((release.root / "deploy/npm/trawl.js").read_bytes(), 0o755)})


def pack(release, described, files):
    described |= {
        "version": release.version,
        "license": release.license,
        "repository": {"type": "git", "url": f"git+{release.repository}.git"},
        "files": ["bin"],
    }
    files |= {name: ((release.root / name).read_bytes(), 0o644) for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    files["README.md"] = (release.readme.encode(), 0o644)
    files["package.json"] = (json.dumps(described, indent=2).encode() + b"\n", 0o644)
    files = {f"package/{name}": entry for name, entry in files.items()}
    return tar_gz(release.folder / f"{described['name']}-{release.version}.tgz", files, release.time)
