"""The formula for Homebrew, which installs a tar. Homebrew takes it from a tap alone, not as a file."""

import hashlib


def write(release, program, tar):
    values = {
        "repository": release.repository,
        "version": release.version,
        "file": tar.name,
        "sha256": hashlib.sha256(tar.read_bytes()).hexdigest(),
        "architecture": {"aarch64": "arm64"}.get(program.architecture, program.architecture),
    }
    text = (release.root / "deploy/homebrew/trawl.rb").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    path = release.folder / "trawl.rb"
    path.write_text(text)
    return path
