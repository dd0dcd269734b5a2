"""One trial: a system runs an agent with one tool call, is killed with SIGKILL at one point, and is started again."""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import time

from model import Script

HERE = pathlib.Path(__file__).resolve().parent
# A bound on waiting, not a measure of anything.
PATIENCE_S = 300
LINES = 30
# The kill comes at this line of the long command.
KILLED_AT_LINE = 10

# When the kill comes, and what the tool does.
POINTS = {"asked": "once", "effect": "once", "long": "long"}


class Trial:
    """The folder of a trial, what the command has left there, and the moments to wait for."""

    def __init__(self, name, point, folder, model):
        self.name, self.point, self.folder = name, point, folder
        # The processes to end with the trial.
        self.started = []
        folder.mkdir(parents=True)
        tool = POINTS[point]
        self.script = model.scripts[name] = Script(shlex.join([str(HERE / "tool"), tool, str(folder)]))
        self.model = model.url(name)

    def until_point(self):
        """Waits for the moment of the kill."""
        if self.point != "asked":
            self.script.may_answer.set()
        match self.point:
            case "asked":
                wait("the question to the model", self.script.asked.is_set)
            case "effect":
                wait("the effect", self.effects)
            case "long":
                wait(f"line {KILLED_AT_LINE}", lambda: len(self.effects()) >= KILLED_AT_LINE)

    def killed(self):
        """Lets everything go on, once the kill is done."""
        early = len(self.effects())
        held = {"asked": early == 0, "effect": early == 1, "long": early < LINES}[self.point]
        if not held:
            raise SystemExit(f"compare: {self.name}: the kill came too late, after {early} lines")
        self.script.may_answer.set()
        (self.folder / "may-end").touch()

    def until_quiet(self):
        """Waits for commands that outlived the process that ran them."""
        wait("the end of all commands", lambda: not any(map(alive, self.pids())))

    def effects(self):
        """The lines that the tool has left."""
        return read(self.folder / "effects")

    def pids(self):
        """The processes of the tool's runs."""
        return [int(line) for line in read(self.folder / "pids")]

    def outcome(self, end):
        """What is counted: lines, runs, and how much of one run's output the system's result has."""
        lines = self.effects()
        tokens = dict.fromkeys(line.split()[0] for line in lines)
        if POINTS[self.point] == "once":
            outputs = [[f"receipt {token}"] for token in tokens]
        else:
            outputs = [[f"line {number} {token}" for number in range(1, LINES + 1)] for token in tokens]
        there = [[line in re.split(r"\s*\n\s*|^The tool said: ", end["text"]) for line in output] for output in outputs]
        output = "all" if any(map(all, there)) else "part" if any(map(any, there)) else "none"
        return {"effects": len(lines), "runs": len(self.pids()), "output": output, "end": end}


def read(path):
    return path.read_text().splitlines() if path.exists() else []


def alive(pid):
    try:
        # A zombie has ended.
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait(what, ask, every_s=0.01):
    """Asks until there is an answer."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if answer := ask():
            return answer
        time.sleep(every_s)
    raise SystemExit(f"compare: {what} did not come within {PATIENCE_S} s")


def kill(*processes):
    for process in processes:
        process.kill()
        process.wait()


def kill_with_commands(trial, *processes):
    """Kills the processes, what they have started, and the tool with the processes above it.

    Those that wait for others die first, so that nothing is recorded of a death.
    """
    children, parents = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(entry.parent.name))
        parents[int(entry.parent.name)] = parent
    # The driver and the processes above it.
    spared, pid = {0, 1}, os.getpid()
    while pid and pid not in spared:
        spared.add(pid)
        pid = parents[pid]

    doomed = [process.pid for process in processes]
    for pid in doomed:
        doomed += [child for child in children.get(pid, []) if child not in doomed]
    for tool in trial.pids():
        chain = [tool]
        while parents.get(chain[0], 0) not in spared:
            chain.insert(0, parents[chain[0]])
        doomed += [pid for pid in chain if pid not in doomed]
    for pid in doomed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in processes:
        process.wait()
    wait("the death of what was killed", lambda: not any(map(alive, doomed)))
