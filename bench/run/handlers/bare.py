"""The handler's function over the files that a list names: what it costs without trawl and without a network."""

import json
import sys

from title import title

with open(sys.argv[1]) as files, open(sys.argv[2], "w") as items:
    for file in files.read().splitlines():
        with open(file, encoding="utf-8", errors="replace") as page:
            items.write(json.dumps(title(page.read())) + "\n")
