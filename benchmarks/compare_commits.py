#!/usr/bin/env python3
"""Builds two commits' benchmarks and runs them in turn, old, new, old, new, ...: what did a change make slower?

usage: benchmarks/compare_commits.py OLD NEW [--suites dispatch,training,kernels] [--threads N] [--rows REGEX]
         [--pairs N] [--turn MS] [--folder DIR] [--jobs N]

OLD and NEW are anything that git takes for a commit. Each is checked out and built in a worktree under DIR (default
build/compare), which is kept, so that the next comparison with it builds nothing. A row that only one of them has is
left out. For every row it prints the median over the pairs of old / new, so above 1 the new one is faster, and flags those
below 0.97; the exit status is 1 if there is one. Rows that are flagged by chance are not when they are run again.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from contest import Side  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGGED_BELOW = 0.97


def git(*arguments):
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def built(commit, suites, arguments):
    """The folder of the commit's benchmark programs, built."""
    name = git("rev-parse", "--short=12", f"{commit}^{{commit}}")
    source = pathlib.Path(arguments.folder).resolve() / name
    if not source.exists():
        git("worktree", "add", "--detach", str(source), name)
    build = source / "build" / "release"
    log = source / "build.log"
    programs = [f"bench_contest_{suite}" for suite in suites]
    print(f"{commit}: {name}, building {', '.join(programs)}, see {log}", flush=True)
    with open(log, "w") as output:
        for command in (["cmake", "--preset", "release"],
                        ["cmake", "--build", str(build), "-j", str(arguments.jobs), "--target", *programs]):
            if subprocess.run(command, cwd=source, stdout=output, stderr=subprocess.STDOUT).returncode != 0:
                sys.exit(f"{' '.join(command)} failed in {source}, see {log}")
    return build / "benchmarks"


def compare(suite, programs, arguments):
    """Prints a line for each row that both have; returns the rows that are flagged."""
    cores = set(sorted(os.sched_getaffinity(0))[:arguments.threads])
    old, new = (Side(name, [str(folder / f"bench_contest_{suite}"), str(arguments.threads)], cores)
                for name, folder in zip(("old", "new"), programs))
    flagged = []
    for row in new.rows:
        if not row or row not in old.rows or not re.search(arguments.rows, row):
            continue
        for side in (old, new):
            side.run(row, 1)
        pairs = [(old.run(row, arguments.turn), new.run(row, arguments.turn)) for _ in range(arguments.pairs)]
        for side in (old, new):
            side.ask(f"drop {row}")
        ratio = statistics.median(before / after for before, after in pairs)
        is_flagged = ratio < FLAGGED_BELOW
        if is_flagged:
            flagged.append(f"{suite}: {row}")
        medians = [statistics.median(times) for times in zip(*pairs)]
        print(f"{suite:9s} {row:46s} old {medians[0]:14.0f} ns  new {medians[1]:14.0f} ns  old / new {ratio:6.3f}"
              f"{'  SLOWER' if is_flagged else ''}", flush=True)
    for side in (old, new):
        side.close()
    return flagged


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--suites", default="dispatch,training,kernels")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", default="")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--turn", type=float, default=100, help="milliseconds")
    parser.add_argument("--folder", default=str(ROOT / "build" / "compare"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    suites = arguments.suites.split(",")
    programs = [built(commit, suites, arguments) for commit in (arguments.old, arguments.new)]
    flagged = [row for suite in suites for row in compare(suite, programs, arguments)]
    print(f"{len(flagged)} rows below {FLAGGED_BELOW}" + "".join(f"\n  {row}" for row in flagged))
    return 1 if flagged else 0


if __name__ == "__main__":
    sys.exit(main())
