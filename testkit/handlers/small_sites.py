"""What the programs in spiders/ ask: an API of artists, a register of documents that refer to each other, pages that link to others."""

import json
import random

from tutorial_sites import Site


class Artists(Site):
    """Finds artists by their names."""

    def find(self, path, query, form, cookie):
        if path != "/v1/search":
            return None
        return json_of(
            {"artists": {"items": [{"name": query["q"].strip('"'), "popularity": len(query["q"])}], "limit": int(query["limit"])}}
        )


class Documents(Site):
    """Each payment refers to a contract, that to a tender, that to its corrected version, and that back to payments."""

    KINDS = ("payment", "contract", "tender", "corrected-tender")

    def __init__(self, run, chains=25, seed=3, **kwargs):
        chance = random.Random(seed)
        self.documents = {}
        for number in range(chains):
            for kind, following in zip(self.KINDS, (*self.KINDS[1:], self.KINDS[0]), strict=True):
                # Mostly its own chain's, sometimes another's, and now and then both.
                others = {number if chance.random() < 0.7 else chance.randrange(chains)}
                if chance.random() < 0.3:
                    others.add(chance.randrange(chains))
                references = [f"{following}-{run}-{other}" for other in sorted(others)]
                id = f"{kind}-{run}-{number}"
                self.documents[id] = {"id": id, "kind": kind, "references": references}
        super().__init__(**kwargs)

    def reachable(self, ids):
        """All documents that these lead to, and these."""
        found, left = set(), list(ids)
        while left:
            if (document := left.pop()) not in found:
                found.add(document)
                left += self.documents[document]["references"]
        return found

    def find(self, path, query, form, cookie):
        match path.strip("/").split("/"):
            case ["search", document] if document in self.documents:
                return json_of(self.documents[document])
        return None


class Tree(Site):
    """Page n links to pages 2n and 2n + 1, and back to the first. Each says for how many seconds to work on it."""

    def __init__(self, pages=31, seconds=0.4, **kwargs):
        self.pages, self.seconds = pages, seconds
        super().__init__(**kwargs)

    def find(self, path, query, form, cookie):
        match path.strip("/").split("/"):
            case ["page", number] if number.isdigit() and 1 <= int(number) <= self.pages:
                links = [1, *(child for child in (2 * int(number), 2 * int(number) + 1) if child <= self.pages)]
                return f'<body data-seconds="{self.seconds}">' + "".join(f'<a href="/page/{link}">{link}</a>' for link in links)
        return None


def json_of(value):
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()
