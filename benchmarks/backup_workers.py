#!/usr/bin/env python3
"""The time of a step over the number of backup workers, where some replicas are slow at random (Abadi et al. 2016,
arXiv:1605.08695, figure 8): examples/07_backup_workers.cpp in processes of its own.

usage: benchmarks/backup_workers.py [--build DIR] [--workers N] [--most B] [--steps N] [--straggling P] [--straggle_ms MS]
         [--rounds N]

Before a step a replica sleeps for MS with probability P. A step takes the gradients of the N - b that come first. The gain is
of useful gradients in a time, over that without backups: t(0) / t(b) * (N - b) / N. It has an optimum: more backups
wait for fewer stragglers, but throw away more of what is computed.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys


def step_ms(arguments, backups):
    build = pathlib.Path(arguments.build)
    command = [build / "tools" / "dflow-launch", "--ps", "1", "--workers", str(arguments.workers), "--",
               build / "examples" / "backup_workers", "--model", "softmax", "--steps", str(arguments.steps),
               "--backups", str(backups), "--straggling", str(arguments.straggling), "--straggle_ms", str(arguments.straggle_ms)]
    output = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    found = re.search(r"([0-9.]+) ms per step", output.stdout + output.stderr)
    if found is None:
        sys.exit(f"no step time in:\n{output.stdout}{output.stderr}")
    return float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--most", type=int, default=7, help="backups at most")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--straggling", type=float, default=0.1)
    parser.add_argument("--straggle_ms", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    rounds = [[step_ms(arguments, backups) for backups in range(arguments.most + 1)] for _ in range(arguments.rounds)]
    times = [statistics.median(each) for each in zip(*rounds)]
    gains = [times[0] / t * (arguments.workers - b) / arguments.workers for b, t in enumerate(times)]
    for backups, (t, gain) in enumerate(zip(times, gains)):
        print(f"{arguments.workers} workers, {backups} of them backups: {t:8.2f} ms a step, gain {gain:.2f}"
              f"{'  best' if gain == max(gains) else ''}")


if __name__ == "__main__":
    main()
