"""Program files: their targets, and what they need of a system."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ARCHITECTURES = {62: "x86_64", 183: "aarch64"}  # by the ELF header's e_machine


@dataclass(frozen=True)
class Program:
    """A stripped program."""

    path: Path
    architecture: str
    glibc: tuple[int, int] | None  # the oldest that has all it calls; None: linked statically, needs none

    @property
    def target(self):
        """The name of its target in Rust."""
        return f"{self.architecture}-unknown-linux-{'gnu' if self.glibc else 'musl'}"

    def output(self, *arguments):
        return subprocess.run([self.path, *arguments], check=True, capture_output=True).stdout


def strip(source, folder):
    """Writes a stripped copy, named `trawl`, to a folder of its own, and returns it."""
    folder.mkdir(parents=True)
    path = folder / "trawl"
    subprocess.run(["strip", "--strip-unneeded", "-o", path, source], check=True)
    return Program(path, architecture(path), glibc(path))


def architecture(path):
    with path.open("rb") as file:
        header = file.read(20)
    number = int.from_bytes(header[18:20], "little")
    if header[:5] != b"\x7fELF\x02" or number not in ARCHITECTURES:
        raise SystemExit(f"release: {path} is no 64-bit program for Linux on {' or '.join(ARCHITECTURES.values())}")
    return ARCHITECTURES[number]


def glibc(path):
    def dump(flag):
        return subprocess.run(["objdump", flag, path], check=True, capture_output=True, text=True).stdout

    headers = dump("-p")
    if " NEEDED " not in headers and " INTERP " not in headers:
        return None
    versions = [tuple(map(int, version)) for version in re.findall(r"GLIBC_(\d+)\.(\d+)", dump("-T"))]
    if not versions:
        raise SystemExit(f"release: {path} is linked dynamically, and not to glibc")
    return max(versions)
