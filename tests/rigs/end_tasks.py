#!/usr/bin/env python3
"""Tasks of a cluster that trains in step are told to end (SIGTERM), or killed for good, by a seed.

usage: end_tasks.py [--schedules N] [--seed N] [--beside N] [--only NAME] PROGRAM

PROGRAM is the example backup_workers. What is tried:
  schedules      a random part of the tasks gets SIGTERM, some of them twice, within 0 to 5 s, in half of the schedules
                 before all are started: all tasks exit with 0, and the newest checkpoint has every step that a replica has
                 begun after. If the chief, or the parameter server, ends before the first step, the others say so
  killed_backup  a backup worker is killed at a random moment, and not replaced: all others end well
  killed_chief   the chief is killed, and not replaced: all other workers end in time, and name the chief
"""

import argparse
import concurrent.futures
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from cluster_tasks import Cluster

WORKERS = 3
ENDED_EARLY = ("the model is not ready", "no chief has led this replica")


def last_step(task):
    """The step in which the replica has ended: so many steps were made before."""
    task.reader.join()
    steps = [int(line.split()[-1]) for line in task.lines if line.startswith("ends in step")]
    return steps[-1] if steps else 0


def catches_sigterm(task):
    """Before it has a Supervisor or a server that it joins, a process just ends by the signal."""
    try:
        status = Path(f"/proc/{task.process.pid}/status").read_text()
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


class Trial:
    def __init__(self, args, seed, *flags):
        self.chance, self.log, self.told = random.Random(seed), [], set()
        self.folder = tempfile.TemporaryDirectory()
        self.cluster = Cluster(args.program, 1, WORKERS, flags, self.folder.name, self.log)
        self.workers = [("worker", i) for i in range(WORKERS)]
        self.names = [("ps", 0), *self.workers]

    def __enter__(self):
        return self

    def start_and_begin(self):
        for task in self.names:
            self.cluster.start(task)
        self.cluster.wait_for_steps(1)  # then all replicas have begun

    def __exit__(self, *_):
        self.cluster.end()
        self.folder.cleanup()

    def fail(self, message):
        raise SystemExit(message + "\n" + "\n".join(self.log[-80:]))

    def tell(self, name):
        """Whether the task still ran."""
        task = self.cluster.tasks[name]
        if name not in self.told:
            self.cluster.wait_for(f"{name} to take signals", lambda: task.has_ended() or catches_sigterm(task), 60)
        self.told.add(name)
        if task.has_ended():
            return False
        task.send(signal.SIGTERM)
        return True

    def require_good_end(self, tasks, seconds, may_be_early=()):
        for name in tasks:
            task = self.cluster.tasks[name]
            self.cluster.wait_for(f"the end of {name}", task.has_ended, seconds)
            task.reader.join()
            # Without its Supervisor, or its server, a process ends by a second signal.
            ends_by_signal = task.process.returncode == -signal.SIGTERM and task.has_said("ends in step")
            is_early = name in may_be_early and any(task.has_said(line) for line in ENDED_EARLY)
            if task.process.returncode != 0 and not ends_by_signal and not is_early:
                self.fail(f"{name} has exited with {task.process.returncode}")


def schedule(args, seed):
    flags = ("--steps", str(args.steps), "--save_every", "40", "--ready_seconds", "20")
    with Trial(args, seed, *flags) as trial:
        chance, tasks = trial.chance, trial.cluster.tasks
        told = [task for task in trial.names if chance.random() < 0.6] or [("worker", 0)]
        spread = chance.choice([0, 0.05, 0.3, 1, 5])
        has_begun = chance.random() < 0.5
        starts = [] if has_begun else [(chance.uniform(0, 2), task) for task in trial.names]
        at_start = {task: at for at, task in starts}
        times = [(at_start.get(task, 0) + chance.uniform(0, spread), task) for task in told]
        times += [(at + chance.uniform(0, 1), task) for at, task in times if chance.random() < 0.3]
        events = sorted([(at, 0, task) for at, task in starts] + [(at, 1, task) for at, task in times])
        plan = ", ".join(f"{job} {index} {('starts', 'told')[kind]} at {at:.2f}" for at, kind, (job, index) in events)
        trial.log.append(f"schedule {seed}: {plan}")
        if has_begun:
            trial.start_and_begin()
            time.sleep(chance.uniform(0, 1))
        begin, untold = time.monotonic(), set()
        for at, is_signal, task in events:
            time.sleep(max(0, begin + at - time.monotonic()))
            if not is_signal:
                trial.cluster.start(task)
                continue
            is_early = trial.cluster.saved_step() == 0
            if trial.tell(task) and is_early and task in [("ps", 0), ("worker", 0)]:
                untold = set(trial.names) - set(told)
        trial.require_good_end(trial.workers, args.timeout, untold)
        if ("ps", 0) in told:
            trial.require_good_end([("ps", 0)], args.timeout)
        begun = max(last_step(tasks[name]) for name in trial.workers)
        saved = trial.cluster.saved_step()
        if saved < begun:
            trial.fail(f"schedule {seed}: {begun} steps were made, and the newest checkpoint has {saved}")
        return f"schedule {seed}: {saved} steps; {plan}"


def killed_backup(args, seed):
    with Trial(args, seed, "--steps", str(args.steps), "--backups", "1") as trial:
        trial.start_and_begin()
        time.sleep(trial.chance.uniform(0, 4))
        trial.cluster.tasks["worker", 2].end(signal.SIGKILL)
        trial.require_good_end(trial.workers[:2], args.timeout)
        return "killed backup: the others have ended"


def killed_chief(args, seed):
    with Trial(args, seed, "--steps", "1000000", "--ready_seconds", "5") as trial:
        trial.start_and_begin()
        time.sleep(trial.chance.uniform(0, 2))
        trial.cluster.tasks["worker", 0].end(signal.SIGKILL)
        begin = time.monotonic()
        for name in trial.workers[1:]:
            task = trial.cluster.tasks[name]
            trial.cluster.wait_for(f"the end of {name}", task.has_ended, 30)
            task.reader.join()
            if not any("chief" in line for line in task.lines[-10:]):
                trial.fail(f"{name} has not named the chief")
        return f"killed chief: the others have ended after {time.monotonic() - begin:.1f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", type=int, default=2, help="so many clusters at one time")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--timeout", type=float, default=120, help="seconds until a task must have ended")
    parser.add_argument("--only", choices=["schedules", "killed_backup", "killed_chief"])
    parser.add_argument("program")
    args = parser.parse_args()
    trials = [(schedule, args.seed + i) for i in range(args.schedules)]
    trials += [(kind, args.seed + i) for i in range(3) for kind in (killed_backup, killed_chief)]
    if args.only:
        name = "schedule" if args.only == "schedules" else args.only
        trials = [trial for trial in trials if trial[0].__name__ == name]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(args.beside) as pool:
        for done in [pool.submit(kind, args, seed) for kind, seed in trials]:
            try:
                print(done.result(), flush=True)
            except SystemExit as error:
                failures += 1
                print(error, flush=True)
    print(f"{len(trials) - failures} of {len(trials)} trials have ended well")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
