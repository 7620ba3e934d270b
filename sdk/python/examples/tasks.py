"""A task handler: a chain of documents, each of which names the next one. None is done twice, also where they lead in a circle.

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
