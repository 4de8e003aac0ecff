#!/usr/bin/env python3
"""What an idle task of a cluster costs: threads, memory, sockets; of bench_contest_cluster's, over TCP on loopback.

usage: benchmarks/cluster_costs.py [--build DIR] [--ps N] [--workers N]

Each worker has run a step that reads a scalar from each parameter server, so it has a control connection with each. Memory
is proportional (PSS): what processes share is counted once in all. Of a connection it is the mean of both its ends, by the
difference to a cluster of one worker. Needs Linux's /proc.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import time


def words_of(path, name):
    return next(line.split() for line in path.read_text().splitlines() if line.startswith(name))


class Process:
    def __init__(self, pid):
        proc = pathlib.Path("/proc") / str(pid)
        command = (proc / "cmdline").read_bytes().split(b"\0")
        self.job = command[2].decode()
        self.threads = int(words_of(proc / "status", "Threads:")[1])
        self.resident = int(words_of(proc / "smaps_rollup", "Rss:")[1])
        self.kilobytes = int(words_of(proc / "smaps_rollup", "Pss:")[1])
        self.sockets = sum(os.readlink(fd).startswith("socket:") for fd in (proc / "fd").iterdir())


def tasks_of(program, ps, workers):
    """The tasks, idle."""
    row = f"null step, scalar, {ps} x {workers}"
    side = subprocess.Popen([program, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    side.stdin.write(f"run 0 {row}\n")
    side.stdin.flush()
    side.stdout.readline()
    time.sleep(1)
    children = pathlib.Path(f"/proc/{side.pid}/task/{side.pid}/children").read_text().split()
    found = [Process(pid) for pid in children]
    side.stdin.close()
    side.wait()
    return found


def mean(processes, what):
    return statistics.mean(getattr(process, what) for process in processes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ps", type=int, default=16)
    parser.add_argument("--workers", type=int, choices=(10, 25, 50, 100), default=100)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.build) / "benchmarks" / "bench_contest_cluster")
    few, many = tasks_of(program, arguments.ps, 1), tasks_of(program, arguments.ps, arguments.workers)
    by_job = {job: [task for task in many if task.job == job] for job in ("ps", "worker")}
    for job, tasks in by_job.items():
        print(f"{job:7s} {len(tasks):4d} tasks: {mean(tasks, 'threads'):.1f} threads, {mean(tasks, 'sockets'):.1f} sockets, "
              f"{mean(tasks, 'kilobytes') / 1024:.1f} MB each ({mean(tasks, 'resident') / 1024:.1f} MB resident with what is shared)")
    before = mean([task for task in few if task.job == "ps"], "kilobytes")
    added = mean(by_job["ps"], "kilobytes") - before
    print(f"a connection, at a ps: {added / (arguments.workers - 1):.0f} KB")
    print(f"all {len(many)} tasks: {sum(task.kilobytes for task in many) / 1024:.0f} MB")


if __name__ == "__main__":
    main()
