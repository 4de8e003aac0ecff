#!/usr/bin/env python3
"""Programs that compile dflow themselves: an include path is enough.

Usage: tests/consumers/src/compile.py --work DIR [--jobs N] [--compilers CXX...] [NAME...]

NAME is one of:
    parts      all ops: each part of <dflow/src.hpp> in a unit of its own, and a program
    missing    a program with an op table of its own, without a part that it needs: an error that names the part and the op
Each is compiled at -O0 without optional libraries, with -Wall -Wextra -Werror. Prints CPU time and peak memory of each
unit, and fails where a unit takes more than LIMIT_MB.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
INCLUDE = ROOT / "include"
FLAGS = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-isystem", "/usr/include/eigen3"]
LIMIT_MB = 2000


def run(command):
    """(exit status, output, seconds of CPU time, peak megabytes)"""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Consumer:
    def __init__(self, compiler, work, jobs):
        self.compiler, self.jobs = compiler, jobs
        self.work = work / Path(compiler).name
        self.work.mkdir(parents=True, exist_ok=True)
        self.failures = []

    def fail(self, what, output=""):
        self.failures.append(what)
        print(f"{what}\n{output[-3000:]}")

    def compile(self, name, text):
        """Compiles a unit; its object, or None."""
        source, target = self.work / f"{name}.cpp", self.work / f"{name}.o"
        source.write_text(text)
        status, output, seconds, megabytes = run([self.compiler, *FLAGS, "-c", source, "-o", target])
        print(f"  {Path(self.compiler).name} {name}: {seconds:.1f} s of CPU time, {megabytes:.0f} MB", flush=True)
        self.seconds += seconds
        if status != 0:
            self.fail(f"{name} does not compile", output)
            return None
        if megabytes > LIMIT_MB:
            self.fail(f"{name} takes {megabytes:.0f} MB, more than {LIMIT_MB}")
        return target

    def link(self, name, objects):
        """Links a program: (exit status, output)."""
        status, output, _, _ = run([self.compiler, *objects, "-o", self.work / name, "-pthread"])
        return status, output

    def link_and_run(self, name, objects):
        if None in objects:
            return
        status, output = self.link(name, objects)
        if status == 0:
            status, output, _, _ = run([self.work / name])
        if status != 0:
            self.fail(f"{name} does not link or run", output)

    def parts(self):
        headers = [INCLUDE / f"dflow/src/{part}.hpp" for part in ("core", "io", "data", "trace", "train", "net")]
        headers += sorted((INCLUDE / "dflow/src/all").glob("*.hpp"))
        # What src.hpp includes is what is compiled here.
        named = set(re.findall(r"#include <(dflow/src/[^>]+)>", (INCLUDE / "dflow/src.hpp").read_text()))
        if named != {str(header.relative_to(INCLUDE)) for header in headers}:
            self.fail("src.hpp does not include just these parts")
        units = [(f"part_{header.parent.name}_{header.stem}", f"#include <{header.relative_to(INCLUDE)}>\n") for header in headers]
        units.append(("consumer", (HERE.parent / "consumer.cpp").read_text()))
        with ThreadPoolExecutor(self.jobs) as pool:
            objects = list(pool.map(lambda unit: self.compile(*unit), units))
        self.link_and_run("parts", objects)

    def missing(self):
        text = (HERE / "few_ops.cpp").read_text()
        source = self.work / "missing.cpp"
        source.write_text(text.replace("#include <dflow/src/ops/nn.hpp>\n", ""))
        status, output, _, _ = run([self.compiler, *FLAGS, "-fsyntax-only", source])
        if status == 0 or "dflow/src/ops/nn.hpp" not in output or "Softmax" not in output:
            self.fail("a part that is missing is not named", output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["parts", "missing"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compilers", nargs="*", default=[c for c in ("g++", "clang++-16") if shutil.which(c)])
    options = parser.parse_args()
    failures = 0
    for compiler in options.compilers:
        consumer = Consumer(compiler, options.work, options.jobs)
        for name in options.names:
            consumer.seconds = 0
            getattr(consumer, name)()
            print(f"{Path(compiler).name} {name}: {consumer.seconds:.0f} s of CPU time", flush=True)
        failures += len(consumer.failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
