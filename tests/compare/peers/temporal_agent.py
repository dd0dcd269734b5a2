"""The agent on Temporal: a workflow whose requests to the model and tool calls are activities.

The process is worker and client. It starts the workflow, or finds the one that runs, and waits for its result.
"""

import asyncio
import concurrent.futures
import datetime
import os

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    import shared

# Temporal asks for a time limit of each activity. It finds a killed worker by it, and the command needs 3 s.
WITHIN = datetime.timedelta(seconds=10)
# None is the default: attempts without end, the first after 1 s.
TOOL_RETRIES = {"default": None, "once": RetryPolicy(maximum_attempts=1)}[shared.VARIANT]


@activity.defn
def ask(messages: list) -> dict:
    return shared.ask(messages)


@activity.defn
def shell(command: str) -> str:
    return shared.shell(command)


@workflow.defn
class Agent:
    @workflow.run
    async def run(self) -> str:
        messages = list(shared.QUESTION)
        while True:
            said = await workflow.execute_activity(ask, messages, start_to_close_timeout=WITHIN)
            if not said.get("tool_calls"):
                return said["content"]
            call_id, command = shared.call(said)
            output = await workflow.execute_activity(shell, command, start_to_close_timeout=WITHIN, retry_policy=TOOL_RETRIES)
            messages += [said, shared.result(call_id, output)]


async def run():
    trial = shared.FOLDER.name
    client = await Client.connect(os.environ["COMPARE_TEMPORAL"])
    with concurrent.futures.ThreadPoolExecutor() as threads:
        async with Worker(client, task_queue=trial, workflows=[Agent], activities=[ask, shell], activity_executor=threads):
            handle = await client.start_workflow(Agent.run, id=trial, task_queue=trial,
                                                 id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
            return await handle.result()


if __name__ == "__main__":
    shared.conclude(lambda: asyncio.run(run()))
