"""Downloads the document whose id is the recipe, and asks for those that it refers to: each once, also where they refer to each other."""

import json
import sys
import urllib.request

task, secret = json.loads(sys.argv[1]), json.loads(sys.argv[2])
with urllib.request.urlopen(f"{secret['SITE']}/search/{task['recipe']}", timeout=60) as response:
    document = json.load(response)
references = document.pop("references")
print(
    json.dumps(
        {
            "result": 0,
            "items": [document],
            "tasks": [{"recipe": reference, "unique": reference} for reference in references],
        }
    )
)
