"""A task handler: a chain of documents that each name the next one. None is done twice, even if they form a cycle.

    [handler]
    run = ["python3", "tasks.py"]
    secret = { NEXT = { payment = "contract", contract = "tender" } }
"""

from trawl_handler import Task, run, task_handler


@task_handler
def download(task):
    yield {"document": task.recipe}
    following = task.secret["NEXT"].get(task.recipe)
    if following:
        yield Task(following, unique=following)


run()
