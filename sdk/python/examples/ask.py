"""A task handler that asks the web by itself: each recipe is the URL of a list of products in JSON, of which each has details at a URL of its own.

    [handler]
    run = ["python3", "ask.py"]
"""

from trawl_handler import Log, NotFetched, fetch, run, task_handler


@task_handler
def products(task):
    for product in fetch(task.recipe).json():
        try:
            details = fetch(product["details"])
        except NotFetched as why:
            if why.status != 403:
                raise
            # Its robots.txt forbids it, or a person does.
            yield Log(str(why))
            continue
        if details.status == 200:
            yield {"name": product["name"], **details.json()}


run()
