"""Tasks of a cluster as processes of this machine, for the rigs that stop, kill and replace them."""

import contextlib
import os
import random
import re
import secrets
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path


SECRET = secrets.token_hex(16)  # of all clusters of a rig: tasks listen at TCP


def free_ports(count):
    """Ports that the system gives to nobody by itself: they stay free until their tasks start."""
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    sockets = {}
    for tried in range(100 + count):
        port = random.randrange(10000, end) if end > 11000 and tried < 100 else 0
        with contextlib.suppress(OSError):
            each = socket.create_server(("127.0.0.1", port))
            sockets[each.getsockname()[1]] = each
        if len(sockets) == count:
            break
    for each in sockets.values():
        each.close()
    return list(sockets)


class Task:
    """One task of the cluster, through all its lives."""

    def __init__(self, command, log):
        self.command, self.log, self.lines = command, log, []
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=os.environ | {"DFLOW_SECRET": SECRET}, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)  # fmt: skip
        self.reader = threading.Thread(target=self.read, args=(self.process,))
        self.reader.start()

    def read(self, process):
        for line in process.stdout:
            self.lines.append(line.rstrip())
            self.log.append(f"{self.command[-2]} {self.command[-1]}: {line.rstrip()[-200:]}")
            del self.lines[:-1000], self.log[:-1000]

    def send(self, signal_number):
        self.process.send_signal(signal_number)

    def end(self, signal_number=signal.SIGKILL):
        self.process.send_signal(signal_number)
        self.process.wait()
        self.reader.join()

    def has_ended(self):
        return self.process.poll() is not None

    def has_said(self, text):
        return any(text in line for line in self.lines)


class Cluster:
    """Tasks that run the example backup_workers; where each is, and what the others believe, may differ."""

    def __init__(self, program, ps, workers, flags, checkpoints, log):
        self.program, self.flags, self.checkpoints, self.log = program, flags, checkpoints, log
        ports = free_ports(ps + workers)
        self.addresses = {("ps", i): f"127.0.0.1:{ports[i]}" for i in range(ps)}
        self.addresses |= {("worker", i): f"127.0.0.1:{ports[ps + i]}" for i in range(workers)}
        self.tasks = {}
        self.all = []

    def command(self, task, addresses):
        jobs = {}
        for job, index in sorted(addresses):
            jobs.setdefault(job, []).append(addresses[job, index])
        cluster = ";".join(f"{job}={','.join(each)}" for job, each in jobs.items())
        return [self.program, *self.flags, "--checkpoints", self.checkpoints, f"--dflow_cluster={cluster}",
                f"--job={task[0]}", f"--task={task[1]}"]

    def start(self, task, **moved):
        """`moved`: addresses={...} that this task alone believes in."""
        addresses = self.addresses | moved.get("addresses", {})
        started = Task(self.command(task, addresses), self.log)
        self.tasks[task] = started
        self.all.append(started)
        return started

    def saved_step(self):
        """Of the latest checkpoint."""
        with contextlib.suppress(OSError):
            found = re.search(r'model_checkpoint_path: "[^"]*-(\d+)"', (Path(self.checkpoints) / "checkpoint").read_text())
            return int(found.group(1)) if found else 0
        return 0

    def wait_for(self, what, condition, seconds):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise SystemExit(f"{what}: not after {seconds} s\n" + "\n".join(self.log[-60:]))
            time.sleep(0.05)

    def wait_for_steps(self, more, seconds=120):
        target = self.saved_step() + more
        self.wait_for(f"a checkpoint of step {target}", lambda: self.saved_step() >= target, seconds)

    def end(self):
        for task in self.all:
            if not task.has_ended():
                task.end()
            task.reader.join()
