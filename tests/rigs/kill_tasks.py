#!/usr/bin/env python3
"""Kills tasks of a cluster that trains in step, by a seed, and compares what comes out with an undisturbed run.

usage: kill_tasks.py [--kills N] [--seed N] [--ps N] [--workers N] [--steps N] PROGRAM

PROGRAM is the example backup_workers. Each killed task (SIGKILL, at a random moment, any of them) is started again after
a random while. The test loss at the end must be the one of the run without kills, digit for digit.
"""

import argparse
import random
import signal
import sys
import tempfile
import time

from cluster_tasks import Cluster


def train(args, kills, chance, log):
    """The test loss that the chief prints, and how many were killed."""
    with tempfile.TemporaryDirectory() as checkpoints:
        flags = ["--steps", str(args.steps), "--save_every", "20"]
        cluster = Cluster(args.program, args.ps, args.workers, flags, checkpoints, log)
        workers = [("worker", i) for i in range(args.workers)]
        chief = workers[0]
        deadline = time.monotonic() + args.timeout
        killed = 0
        try:
            for task in cluster.addresses:
                cluster.start(task)
            while not cluster.tasks[chief].has_ended():
                if time.monotonic() > deadline:
                    raise SystemExit(f"the cluster has not ended after {args.timeout} s and {killed} kills:\n"
                                     + "\n".join(log[-60:]))
                time.sleep(chance.uniform(0.1, 0.6) if killed < kills else 0.05)
                victim = chance.choice(list(cluster.addresses))
                is_training = not cluster.tasks[chief].has_said("test loss")
                if killed >= kills or not is_training or any(cluster.tasks[task].has_ended() for task in workers):
                    continue
                cluster.tasks[victim].end(signal.SIGKILL)
                killed += 1
                time.sleep(chance.uniform(0, 0.3))
                cluster.start(victim)
            for name in workers:
                task = cluster.tasks[name]
                cluster.wait_for(f"the end of {name}", task.has_ended, 60)
                task.reader.join()
                if task.process.returncode != 0:
                    raise SystemExit(f"{task.command[-2:]} failed:\n" + "\n".join(task.lines[-20:]))
        finally:
            cluster.end()
        losses = [line for line in cluster.tasks[chief].lines if line.startswith("test loss")]
        if not losses:
            raise SystemExit("the chief has printed no test loss:\n" + "\n".join(cluster.tasks[chief].lines[-20:]))
        return losses[-1], killed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    parser.add_argument("program")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    log = []
    undisturbed, _ = train(args, 0, random.Random(0), log)
    begin = time.monotonic()
    disturbed, killed = train(args, args.kills, random.Random(args.seed), log)
    print(f"{killed} kills in {time.monotonic() - begin:.1f} s: {disturbed}; undisturbed: {undisturbed}")
    if disturbed != undisturbed:
        print("\n".join(log[-200:]))
        sys.exit("the runs have ended differently")
    if killed < args.kills:
        sys.exit(f"only {killed} tasks were killed before the training had ended: use more --steps")


if __name__ == "__main__":
    main()
