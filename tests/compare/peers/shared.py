"""The parts of an agent that are the same whatever runs it: the request to the model, and the tool."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request

FOLDER = pathlib.Path(sys.argv[1])
VARIANT = sys.argv[2]
QUESTION = [{"role": "user", "content": "go"}]
TOOLS = [{"type": "function", "function": {
    "name": "shell", "description": "Runs a command.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]


def ask(messages):
    """The model's message."""
    body = json.dumps({"model": "scripted", "messages": messages, "tools": TOOLS}).encode()
    request = urllib.request.Request(os.environ["COMPARE_MODEL"] + "/chat/completions", body,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


def shell(command):
    """The output of a command."""
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout + ("" if done.returncode == 0 else f"\nexit {done.returncode}")


def call(message):
    """The id and the command of the message's only tool call."""
    [asked] = message["tool_calls"]
    return asked["id"], json.loads(asked["function"]["arguments"])["command"]


def result(call_id, output):
    return {"role": "tool", "tool_call_id": call_id, "content": output}


def conclude(work):
    """Stores what the work returns, or its failure, as the end of the trial."""
    try:
        end = {"state": "completed", "text": work()}
    except Exception as error:
        end = {"state": "failed", "text": f"{type(error).__name__}: {error}; {error.__cause__}"}
    (FOLDER / "end.new").write_text(json.dumps(end))
    (FOLDER / "end.new").rename(FOLDER / "end.json")
