"""The agent on DBOS: a workflow whose requests to the model and tool calls are steps, on SQLite.

DBOS recovers a workflow when the process launches it again.
"""

import os

from dbos import DBOS, SetWorkflowID

import shared

# A workflow with no recovery attempts runs at most once. The library's default stands for the other variant.
OPTIONS = {"default": {}, "once": {"max_recovery_attempts": 0}}[shared.VARIANT]

DBOS(config={"name": "compare", "system_database_url": f"sqlite:///{shared.FOLDER}/dbos.sqlite", "log_level": "ERROR"})


@DBOS.step()
def ask(messages):
    return shared.ask(messages)


@DBOS.step()
def shell(command):
    return shared.shell(command)


@DBOS.workflow(**OPTIONS)
def agent():
    messages = list(shared.QUESTION)
    while (said := ask(messages)).get("tool_calls"):
        call_id, command = shared.call(said)
        messages += [said, shared.result(call_id, shell(command))]
    return said["content"]


def work():
    DBOS.launch()
    if DBOS.get_workflow_status("trial") is None:
        with SetWorkflowID("trial"):
            DBOS.start_workflow(agent)
    return DBOS.retrieve_workflow("trial").get_result()


if __name__ == "__main__":
    shared.conclude(work)
    # Threads of the library do not keep the process.
    os._exit(0)
