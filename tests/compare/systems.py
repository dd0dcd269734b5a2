"""The systems that are compared: how each is started, killed and started again.

`begin` starts the work of a trial, `kill` is the SIGKILL, and `finish` starts what was killed again, and waits for the
end of the work: {"state": …, "text": …}.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys

from trial import HERE, PATIENCE_S, kill, kill_with_commands, wait

ROOT = HERE.parent.parent
BIN = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "debug"


class Peer:
    """A library: its process is worker and engine at once, and runs the command as a child."""

    def __init__(self, program, variant, **environment):
        self.program, self.variant, self.environment = program, variant, environment

    def begin(self, trial):
        with open(trial.folder / "worker.log", "a") as log:
            trial.worker = subprocess.Popen(
                [sys.executable, HERE / "peers" / self.program, trial.folder, self.variant], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **self.environment, "COMPARE_MODEL": trial.model})
        trial.started.append(trial.worker)

    def kill(self, trial, what):
        match what:
            case "worker":
                kill(trial.worker)
            case "worker and command":
                kill_with_commands(trial, trial.worker)

    def finish(self, trial):
        self.begin(trial)
        trial.worker.wait(PATIENCE_S)
        return json.loads((trial.folder / "end.json").read_text())


class TemporalServer:
    """A Temporal server for all trials, as its command line starts one for development. It is never killed."""

    def __init__(self, folder):
        self.address = f"127.0.0.1:{free_port()}"
        self.log = folder / "temporal.log"
        program = pathlib.Path(sys.prefix) / "bin/temporal"
        host, port = self.address.split(":")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [program, "server", "start-dev", "--headless", "--ip", host, "--port", port, "--db-filename",
                 folder / "temporal.sqlite"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait("the Temporal server", self.answers)

    def answers(self):
        if self.process.poll() is not None:
            raise SystemExit(f"compare: the Temporal server stopped: see {self.log}")
        health = [pathlib.Path(sys.prefix) / "bin/temporal", "operator", "cluster", "health", "--address", self.address]
        return subprocess.run(health, capture_output=True).returncode == 0


class Gantry:
    """A server on SQLite, and a runner. The runner's supervisor runs the command."""

    def begin(self, trial):
        trial.environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "GANTRY_MODEL": "scripted",
                             "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": trial.model, **self.settings(trial)}
        self.server_of_its_own(trial, "home")
        trial.server, code = self.start_server(trial)
        self.gantry(trial, "login", "--server", trial.environment["GANTRY_SERVER"], input=code + "\n")
        servers = [word for url in (trial.environment["GANTRY_SERVER"], *self.more_servers(trial))
                   for word in ("--server", url)]
        token = self.run(trial, "gantry-server", "join-token")
        (trial.folder / "workspace").mkdir()
        self.run(trial, "gantry-runner", "enrol", *servers, "--name", "here", "--workspace",
                 str(trial.folder / "workspace"), "-", input=token)
        self.start_runner(trial)
        wait("the runner", lambda: "online" in self.gantry(trial, "runners", "list"))
        self.gantry(trial, "runners", "use", "here")
        trial.chat = self.start(trial, "gantry", "chat", "--mode", "full", "--plain", "go")

    def settings(self, trial):
        """What all servers of the trial are told."""
        return {}

    def more_servers(self, trial):
        """The addresses of further servers, which it starts."""
        return []

    def server_of_its_own(self, trial, home):
        """Has the trial's environment name another server."""
        trial.environment = {**trial.environment, "GANTRY_HOME": str(trial.folder / home),
                             "GANTRY_SERVER": f"http://127.0.0.1:{free_port()}"}

    def start_server(self, trial):
        """The process, and the first time its sign-in code."""
        listen = trial.environment["GANTRY_SERVER"].removeprefix("http://")
        server = self.start(trial, "gantry-server", "run", "--listen", listen, stdout=subprocess.PIPE)
        code = None
        for line in server.stdout:
            if line.startswith("sign-in code: "):
                code = line.removeprefix("sign-in code: ").strip()
            if line.startswith("listening on "):
                return server, code
        raise SystemExit(f"compare: {trial.name}: the server does not start: see {trial.folder}/gantry-server.log")

    def start_runner(self, trial):
        trial.runner = self.start(trial, "gantry-runner", "run")

    def kill(self, trial, what):
        match what:
            case "server":
                kill(trial.server)
            case "runner":
                kill(trial.runner)
            case "server and runner":
                kill(trial.server, trial.runner)
            case "server, runner and command":
                kill_with_commands(trial, trial.server, trial.runner)

    def finish(self, trial):
        if trial.server.poll() is not None:
            trial.server, _ = self.start_server(trial)
        if trial.runner.poll() is not None:
            self.start_runner(trial)
        trial.chat.wait(PATIENCE_S)
        return end_of(trial, self.events(trial))

    def events(self, trial):
        lines = map(json.loads, self.gantry(trial, "show", "last", "--json").splitlines())
        return [line["event"] for line in lines if line["type"] == "event"]

    def gantry(self, trial, *words, **more):
        return self.run(trial, "gantry", *words, **more)

    def run(self, trial, program, *words, **more):
        done = subprocess.run([BIN / program, *words], env=trial.environment, text=True, capture_output=True, **more)
        if done.returncode:
            raise SystemExit(f"compare: {trial.name}: {program} {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self, trial, program, *words, stdout=None):
        with open(trial.folder / f"{program}.log", "a") as log:
            process = subprocess.Popen([BIN / program, *words], env=trial.environment, text=True, stdin=subprocess.DEVNULL,
                                       stdout=stdout or log, stderr=log, start_new_session=True)
        trial.started.append(process)
        return process


class GantryPair(Gantry):
    """Two servers on one PostgreSQL. The one with the turn and the runner is killed, and stays dead."""

    def settings(self, trial):
        database = f"scenario_{os.getpid()}_{random.randrange(10**9)}"
        made = subprocess.run([ROOT / "tests/postgres", "create", database], check=True, text=True, stdout=subprocess.PIPE)
        return {"GANTRY_DATABASE_URL": made.stdout.strip()}

    def more_servers(self, trial):
        first = trial.environment
        self.server_of_its_own(trial, "other-home")
        shutil.copytree(trial.folder / "home/server/keys", trial.folder / "other-home/server/keys")
        self.start_server(trial)
        trial.environment, trial.other = first, trial.environment
        return [trial.other["GANTRY_SERVER"]]

    def finish(self, trial):
        kill(trial.chat)
        trial.environment = trial.other
        code = self.run(trial, "gantry-server", "sign-in-code").split()[-1]
        self.gantry(trial, "login", "--server", trial.environment["GANTRY_SERVER"], input=code + "\n")
        return wait("the end of the turn", lambda: end_of(trial, self.events(trial)), every_s=0.5)


def end_of(trial, events):
    """The outcome of the only turn, and the model's last text, which repeats the tool's result; none while it works."""
    ended = [event for event in events if event["type"] == "turn.ended"]
    if not ended:
        return None
    (trial.folder / "events.json").write_text(json.dumps(events, indent=1))
    texts = [part["text"] for event in events if event["type"] == "answer.recorded"
             for part in event["parts"] if part.get("type") == "text"]
    return {"state": ended[0]["outcome"], "text": texts[-1] if texts else ended[0].get("reason", "")}


# Ports outside of the range that the system gives to others, each given once.
PORTS = iter(random.sample(range(20000, 30000), 10000))


def free_port():
    """A port that was free a moment ago."""
    for port in PORTS:
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            return port
    raise SystemExit("compare: no port from 20000 to 29999 is free")
