"""A scripted model: it asks for one tool call, and then repeats the tool's result."""

import contextlib
import http.server
import json
import threading


class Script:
    """The part of one trial."""

    def __init__(self, command):
        self.command = command
        self.asked = threading.Event()
        # Until it is set, the model is asked and does not answer.
        self.may_answer = threading.Event()

    def answer(self, request):
        last = request["messages"][-1]
        if last["role"] == "tool":
            return {"content": f"The tool said: {last['content']}"}
        if not request.get("tools"):
            return {"content": "A title."}
        self.asked.set()
        self.may_answer.wait()
        name = request["tools"][0]["function"]["name"] if len(request["tools"]) == 1 else "Shell"
        arguments = json.dumps({"command": self.command})
        return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                                "function": {"name": name, "arguments": arguments}}]}


class Model:
    """Serves the scripts of all trials on one port, each below a path of its own."""

    def __init__(self):
        self.scripts = {}
        scripts = self.scripts

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                said = scripts[self.path.split("/")[1]].answer(request)
                # The asker may have been killed.
                with contextlib.suppress(OSError):
                    self.say(said, request.get("stream"))

            def say(self, said, streamed):
                end = "tool_calls" if "tool_calls" in said else "stop"
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                message = {"role": "assistant", "content": None, **said}
                self.send_response(200)
                if not streamed:
                    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage})
                    self.send_header("Content-Type", "application/json")
                else:
                    chunks = [{"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                              {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
                              {"choices": [], "usage": usage}]
                    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
                    self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, trial):
        return f"http://127.0.0.1:{self.server.server_address[1]}/{trial}/v1"
