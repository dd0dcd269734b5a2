"""The agent on LangGraph: a graph of a model node and the library's own tool node, with the SQLite checkpointer.

A graph with a checkpoint is resumed as the library's documentation says: it is invoked with no input.
"""

import json

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import shared

# None is the library's default, "async".
DURABILITY = {"default": None, "sync": "sync", "task": "sync"}[shared.VARIANT]


def model(state):
    said = shared.ask([plain(message) for message in state["messages"]])
    calls = [{"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
             for call in said.get("tool_calls", [])]
    return {"messages": [AIMessage(said["content"] or "", tool_calls=calls)]}


def plain(message):
    match message:
        case HumanMessage():
            return {"role": "user", "content": message.content}
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    return {"role": "assistant", "content": message.content}


@task
def run(command: str) -> str:
    return shared.shell(command)


@tool
def shell(command: str) -> str:
    """Runs a command."""
    # The library's documentation recommends a task for what has side effects.
    return run(command).result() if shared.VARIANT == "task" else shared.shell(command)


def work():
    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([shell]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    with SqliteSaver.from_conn_string(str(shared.FOLDER / "checkpoints.sqlite")) as checkpointer:
        agent = graph.compile(checkpointer)
        config = {"configurable": {"thread_id": "trial"}}
        begun = agent.get_state(config).next
        state = agent.invoke(None if begun else {"messages": shared.QUESTION}, config, durability=DURABILITY)
        return state["messages"][-1].content


if __name__ == "__main__":
    shared.conclude(work)
