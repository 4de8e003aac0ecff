#!/usr/bin/env python3
"""Runs a cluster of five tasks through faults for a time, and fails if what survives grows.

usage: soak.py [--seconds N] [--seed N] PROGRAM

PROGRAM is the example backup_workers: 2 parameter servers, 3 workers, which reach the servers through chaos proxies. Every
few seconds one of these happens, by the seed: a task is killed and started again (not ps 0 and worker 0), a task is stopped
for a while, connections of a proxy are cut, reset or left half open. Of ps 0 and worker 0, the chief, resident memory,
threads and descriptors are sampled once a second. The medians of the last quarter of the samples may exceed those of the
second quarter by --growth_mb, and by 8 threads and descriptors; and steps must go on to the end.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cluster_tasks import Cluster

PROXY = Path(__file__).resolve().parent / "chaos_proxy.py"
SURVIVORS = (("ps", 0), ("worker", 0))


class Proxy:
    def __init__(self, target, seed):
        self.process = subprocess.Popen(
            [sys.executable, str(PROXY), "--listen", "127.0.0.1:0", "--to", target, "--seed", str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[1]

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer.startswith("ok"):
            raise SystemExit(f"chaos_proxy: {command}: {answer}")

    def end(self):
        self.process.kill()
        self.process.wait()


def sample(pid):
    """Resident MiB, threads, descriptors."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"]), len(os.listdir(f"/proc/{pid}/fd"))


class Soak:
    def __init__(self, args, checkpoints):
        self.args, self.chance = args, random.Random(args.seed)
        flags = ["--steps", "1000000000", "--save_every", "50"]
        self.cluster = Cluster(args.program, 2, 3, flags, checkpoints, [])
        self.proxies = [Proxy(self.cluster.addresses["ps", i], args.seed + i) for i in range(2)]
        self.through_proxies = {("ps", i): self.proxies[i].address for i in range(2)}
        self.faults = {}
        self.samples = {task: [] for task in SURVIVORS}

    def start(self, task):
        self.cluster.start(task, addresses={} if task[0] == "ps" else self.through_proxies)

    def go_on(self, seconds):
        """Samples meanwhile."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for task in SURVIVORS:
                if self.cluster.tasks[task].has_ended():
                    raise SystemExit(f"{task} has ended:\n" + "\n".join(self.cluster.log[-60:]))
                self.samples[task].append(sample(self.cluster.tasks[task].process.pid))
            time.sleep(min(1.0, until - now))

    def fault(self):
        what = self.chance.choice(("kill", "stop", "cut", "reset", "half-open"))
        if what == "kill":
            task = self.chance.choice([task for task in self.cluster.addresses if task not in SURVIVORS])
            self.cluster.tasks[task].end()
            self.go_on(self.chance.uniform(0, 1))
            self.start(task)
        elif what == "stop":
            task = self.cluster.tasks[self.chance.choice(list(self.cluster.addresses))]
            task.send(signal.SIGSTOP)
            self.go_on(self.chance.uniform(0.5, 4))
            task.send(signal.SIGCONT)
        else:
            self.chance.choice(self.proxies).tell(what)
        self.faults[what] = self.faults.get(what, 0) + 1

    def run(self):
        for task in self.cluster.addresses:
            self.start(task)
        self.cluster.wait_for_steps(50)
        begin = time.monotonic()
        while time.monotonic() < begin + self.args.seconds:
            self.go_on(self.chance.uniform(1, 4))
            self.fault()
        disturbed = self.cluster.saved_step()
        self.cluster.wait_for_steps(50)
        print(f"{self.faults} in {time.monotonic() - begin:.0f} s; steps saved: {disturbed}, and on to "
              f"{self.cluster.saved_step()} after the last fault")
        return [problem for task in SURVIVORS for problem in self.judge(task)]

    def judge(self, task):
        samples = self.samples[task]
        quarter = len(samples) // 4
        problems = []
        for i, (what, room) in enumerate((("MiB", self.args.growth_mb), ("threads", 8), ("descriptors", 8))):
            values = [each[i] for each in samples]
            early = statistics.median(values[quarter : 2 * quarter])
            late = statistics.median(values[3 * quarter :])
            print(f"{task[0]} {task[1]}: {what} {early:.1f} in the second quarter, {late:.1f} in the last, {max(values):.1f} at most")
            if late > early + room:
                problems.append(f"{task[0]} {task[1]} has grown from {early:.1f} to {late:.1f} {what}")
        return problems

    def end(self):
        self.cluster.end()
        for proxy in self.proxies:
            proxy.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--growth_mb", type=float, default=12)
    parser.add_argument("program")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as checkpoints:
        soak = Soak(args, checkpoints)
        try:
            problems = soak.run()
        finally:
            soak.end()
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
