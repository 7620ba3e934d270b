"""Archives whose bytes depend on nothing but what is in them, and a time."""

import gzip
import io
import tarfile


def tar_gz(path, files, time):
    """Writes a compressed tar of `files`: names to (bytes, mode)."""
    with path.open("wb") as out, gzip.GzipFile("", "wb", 6, out, time) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, time
            tar.addfile(entry, io.BytesIO(content))
    return path
