"""A task handler that sends its own requests: each recipe is the URL of a JSON list of products, each with details at another URL.

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
            # robots.txt or an operator forbids the request.
            yield Log(str(why))
            continue
        if details.status == 200:
            yield {"name": product["name"], **details.json()}


run()
