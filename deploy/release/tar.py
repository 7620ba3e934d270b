"""The tar of a target: the program, licences, README, manual pages and completions."""

from pathlib import Path
from tempfile import TemporaryDirectory

from .archive import tar_gz

DOCUMENTS = ["CHANGELOG.md", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "README.md"]
COMPLETIONS = {"bash": "trawl.bash", "zsh": "_trawl", "fish": "trawl.fish"}


def name(version, program):
    """The name of the tar and of the folder in it. cargo-binstall looks for the same: trawl/Cargo.toml."""
    return f"trawl-{version}-{program.target}"


def write(release, program):
    files = {"trawl": (program.path.read_bytes(), 0o755)}
    files |= {document: ((release.root / document).read_bytes(), 0o644) for document in DOCUMENTS}
    files |= {
        f"completions/{file}": (program.output("completions", shell), 0o644) for shell, file in COMPLETIONS.items()
    }
    with TemporaryDirectory() as folder:
        program.output("man", folder)
        files |= {f"man/man1/{page.name}": (page.read_bytes(), 0o644) for page in Path(folder).iterdir()}
    top = name(release.version, program)
    files = {f"{top}/{file}": entry for file, entry in files.items()}
    return tar_gz(release.folder / f"{top}.tar.gz", files, release.time)
