"""A wheel with the program and the Python modules of sdk/, by the standard library alone: maturin would compile the program
again."""

import base64
import hashlib
import tomllib
import zipfile
from datetime import UTC, datetime

# On PyPI another program is called trawl.
NAME = "trawl-fleet"
# Any system can run a static program: those that pip and uv tell apart by their C library.
STATIC_TAGS = ["manylinux_2_17", "manylinux2014", "musllinux_1_1"]


def write(release, program):
    stem = f"{NAME.replace('-', '_')}-{release.version}"
    tag = f"py3-none-{platform(program)}"
    info = f"{stem}.dist-info"
    scrapy = project(release, "sdk/python/trawl_scrapy")
    files = modules(release.root / "sdk/python")
    files[f"{stem}.data/scripts/trawl"] = (program.path.read_bytes(), 0o755)
    files |= {
        f"{info}/licenses/{name}": ((release.root / name).read_bytes(), 0o644)
        for name in ("LICENSE-APACHE", "LICENSE-MIT")
    }
    texts = {"METADATA": metadata(release, scrapy), "WHEEL": wheel(tag), "entry_points.txt": entry_points(scrapy)}
    files |= {f"{info}/{name}": (text.encode(), 0o644) for name, text in texts.items()}
    files[f"{info}/RECORD"] = (record(files, f"{info}/RECORD").encode(), 0o644)
    return write_zip(release.folder / f"{stem}-{tag}.whl", files, release.time)


def platform(program):
    tags = ["manylinux_{}_{}".format(*program.glibc)] if program.glibc else STATIC_TAGS
    return ".".join(f"{tag}_{program.architecture}" for tag in tags)


def project(release, folder):
    """The metadata of one of the packages in sdk/, whose version is the program's."""
    found = tomllib.loads((release.root / folder / "pyproject.toml").read_text())["project"]
    if found["version"] != release.version:
        raise SystemExit(f"release: the version in {folder}/pyproject.toml is not {release.version}")
    return found


def modules(sdk):
    """The files of `trawl_handler`, which its package lays out by the same rule, and of `trawl_scrapy`."""
    layout = tomllib.loads((sdk / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    named = {to: sdk / source for source, to in layout["force-include"].items() if to.startswith("trawl_handler/")}
    scrapy = sdk / "trawl_scrapy"
    named |= {path.relative_to(scrapy).as_posix(): path for path in (scrapy / "trawl_scrapy").iterdir() if path.is_file()}
    return {name: (path.read_bytes(), 0o644) for name, path in named.items()}


def metadata(release, scrapy):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {release.version}",
        f"Summary: {release.summary}",
        f"License-Expression: {release.license}",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        f"Project-URL: Source, {release.repository}",
        f"Requires-Python: {scrapy['requires-python']}",
        "Provides-Extra: scrapy",
        *(f'Requires-Dist: {requirement}; extra == "scrapy"' for requirement in scrapy["dependencies"]),
        "Description-Content-Type: text/markdown",
        "",
        release.readme,
    ]
    return "\n".join(lines)


def wheel(tag):
    python, abi, platforms = tag.split("-")
    tags = (f"Tag: {python}-{abi}-{platform}" for platform in platforms.split("."))
    return "\n".join(["Wheel-Version: 1.0", "Generator: trawl", "Root-Is-Purelib: false", *tags, ""])


def entry_points(scrapy):
    scripts = (f"{name} = {function}" for name, function in scrapy["scripts"].items())
    return "\n".join(["[console_scripts]", *scripts, ""])


def record(files, own):
    def digest(content):
        return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()

    rows = [f"{name},sha256={digest(content)},{len(content)}" for name, (content, _) in sorted(files.items())]
    return "\n".join([*rows, f"{own},,", ""])


def write_zip(path, files, time):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        # A wheel's readers want what describes it at the end.
        for name, (content, mode) in sorted(files.items(), key=lambda file: (".dist-info/" in file[0], file[0])):
            # No zip knows times before 1980.
            entry = zipfile.ZipInfo(name, max(datetime.fromtimestamp(time, UTC).timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            entry.external_attr, entry.compress_type, entry.create_system = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED, 3
            out.writestr(entry, content)
    return path
