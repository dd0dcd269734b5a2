"""A tool server without a library, of the era that its first argument names: `legacy`, `modern` or `slow`.

It notes each call of a tool in the file `calls` of its directory. `slow` is a modern one that needs longer to start than
a client waits for its first answer.
"""

import json
import sys
import time

ERA = sys.argv[1]
MODERN = ERA != "legacy"
DOT = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {}}
INFO = {"name": "stand-in", "version": "1"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
FORM = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "title": "City"},
            "nights": {"type": "integer", "minimum": 1, "default": 2},
        },
        "required": ["city"],
    },
}
PAGE = {"mode": "url", "message": "Sign the contract", "url": "https://sign.example.org/c/1", "elicitationId": "e1"}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def answer(id, result):
    send({"id": id, "result": {"resultType": "complete", **result} if MODERN else result})


def refuse(id, code, words):
    send({"id": id, "error": {"code": code, "message": words}})


def text(words, failed=False):
    return {"content": [{"type": "text", "text": words}], "isError": failed}


def ask(id, params, question):
    """The answer of a person: by a request of the server's own, or by a second round of the client's."""
    if not MODERN:
        send({"id": "q1", "method": "elicitation/create", "params": question})
        while True:
            message = receive()
            if message.get("id") == "q1":
                return message.get("result", message)
    given = params.get("inputResponses", {}).get("q")
    if given is None:
        request = {"method": "elicitation/create", "params": question}
        send({"id": id, "result": {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "s"}})
    return given


def call(id, params):
    name, given = params["name"], params.get("arguments", {})
    with open("calls", "a") as calls:
        calls.write(f"{name} {json.dumps(given)}\n")
    if name == "echo":
        return answer(id, text(given.get("text", "")))
    if name == "judge":
        verdict = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "the judge says no"}}
        return answer(id, text(json.dumps(verdict) if "secret" in str(given) else ""))
    if name == "book" or name == "sign":
        reply = ask(id, params, FORM if name == "book" else PAGE)
        return None if reply is None else answer(id, text(json.dumps(reply)))
    if name == "die":
        sys.stderr.write("out of luck\n")
        sys.exit(3)
    return refuse(id, -32602, "there is no such tool")


def tools():
    named = {"echo": {"text": {"type": "string"}}, "book": {}, "sign": {}, "judge": {"text": {"type": "string"}}, "die": {}}
    return [
        {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object", "properties": properties}}
        for name, properties in named.items()
    ]


def main():
    if ERA == "slow":
        time.sleep(4)
    while True:
        message = receive()
        id, method, params = message.get("id"), message.get("method"), message.get("params", {})
        if id is None or method is None:
            continue
        if method == "server/discover" and MODERN:
            answer(id, {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, "_meta": {SERVER_INFO: INFO}})
        elif method == "initialize" and not MODERN:
            answer(id, {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO})
        elif method == "tools/list":
            answer(id, {"tools": tools()})
        elif method == "tools/call":
            call(id, params)
        elif method == "prompts/list":
            arguments = [{"name": "who", "required": True}, {"name": "how"}]
            answer(id, {"prompts": [{"name": "greet", "description": "Greets somebody", "arguments": arguments}]})
        elif method == "prompts/get":
            given = params["arguments"]
            words = f"Greet {given['who']}, {given.get('how', 'as usual')}."
            answer(id, {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]})
        elif method == "resources/list":
            answer(id, {"resources": [{"uri": "note://one", "name": "The first note"}, {"uri": "dot://", "name": "A dot"}]})
        elif method == "resources/read":
            if params["uri"] == "note://one":
                answer(id, {"contents": [{"uri": "note://one", "text": "the moon is far"}]})
            elif params["uri"] == "dot://":
                answer(id, {"contents": [{"uri": "dot://", "mimeType": "image/png", "blob": DOT}]})
            else:
                refuse(id, -32002, "no such resource")
        else:
            refuse(id, -32601, "method not found")


main()
