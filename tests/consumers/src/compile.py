#!/usr/bin/env python3
"""Programs that compile dflow themselves: an include path is enough.

Usage: tests/consumers/src/compile.py --work DIR [--jobs N] [NAME[:COMPILER]...]

NAME is one of:
    few        a program with an op table of its own
    missing    the same without a part that it needs: an error that names the part and the op
    parts      all ops: the parts of <dflow/src.hpp> in units of their own, and a program
The compiler is g++ where none is named. All is compiled at -O0 without optional libraries, with -Wall -Wextra -Wshadow -Werror. Prints CPU time and peak memory of each
unit, and fails where a unit takes more than LIMIT_MB.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
INCLUDE = ROOT / "include"
FLAGS = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Wshadow", "-Werror", f"-I{INCLUDE}", "-isystem", "/usr/include/eigen3"]
LIMIT_MB = {"few": 4000}  # 2000 for the others


def run(command):
    """(exit status, output, seconds of CPU time, peak megabytes)"""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Consumer:
    def __init__(self, compiler, work, pool):
        self.compiler, self.pool = compiler, pool
        self.work = work / Path(compiler).name
        self.work.mkdir(parents=True, exist_ok=True)
        self.failures, self.seconds = [], 0

    def fail(self, what, output=""):
        self.failures.append(what)
        print(f"{what}\n{output[-3000:]}")

    def compile(self, name, text, *flags):
        """Compiles a unit; its object, or None."""
        source, target = self.work / f"{name}.cpp", self.work / f"{name}.o"
        source.write_text(text)
        status, output, seconds, megabytes = run([self.compiler, *FLAGS, *flags, "-c", source, "-o", target])
        print(f"  {Path(self.compiler).name} {name}: {seconds:.1f} s of CPU time, {megabytes:.0f} MB", flush=True)
        self.seconds += seconds
        if status != 0:
            self.fail(f"{name} does not compile", output)
            return None
        limit = LIMIT_MB.get(name, 2000)
        if megabytes > limit:
            self.fail(f"{name} takes {megabytes:.0f} MB, more than {limit}")
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
        source = INCLUDE / "dflow/src"
        names = re.findall(r"#include <dflow/src/([^>]+)>", (INCLUDE / "dflow/src.hpp").read_text())
        # The core and linear algebra take much memory in one unit, so the parts of them have units of their own; ops are small.
        large = ("core.hpp", "all/linalg.hpp")
        smaller = [name for part in large for name in re.findall(r"#include <dflow/src/([^>]+)>", (source / part).read_text())]
        units = {name: [name] for name in [*names, *smaller] if name not in large and "/ops/" not in name}
        units["units/ops"] = [name for name in smaller if "/ops/" in name]
        texts = [(re.sub(r"\W", "_", unit), "".join(f"#include <dflow/src/{name}>\n" for name in includes))
                 for unit, includes in sorted(units.items())]  # fmt: skip
        texts.append(("consumer", (HERE.parent / "consumer.cpp").read_text()))
        objects = list(self.pool.map(lambda text: self.compile(*text), texts))
        self.link_and_run("parts", objects)

    def few(self):
        # Its unit is also part of the programs of tests/consumers/run that hold a second dflow.
        few = self.compile("few", (HERE / "few_ops.cpp").read_text(), "-fvisibility=hidden", "-Dmain=run_own")
        self.link_and_run("few", [few, self.compile("main", "int run_own();\nint main() { return run_own(); }\n")])

    def missing(self):
        text = (HERE / "few_ops.cpp").read_text()
        source = self.work / "missing.cpp"
        source.write_text(text.replace("#include <dflow/src/ops/nn.hpp>\n", ""))
        status, output, self.seconds, _ = run([self.compiler, *FLAGS, "-fsyntax-only", source])
        if status == 0 or "dflow/src/ops/nn.hpp" not in output or "Softmax" not in output:
            self.fail("a part that is missing is not named", output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["few", "missing", "parts"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    tried = []
    with ThreadPoolExecutor(options.jobs) as pool, ThreadPoolExecutor() as waiting:
        for name in options.names:
            name, _, compiler = name.partition(":")
            consumer = Consumer(compiler or "g++", options.work, pool)
            # What compiles many units waits for them beside the pool.
            runs_in = waiting if name == "parts" else pool
            tried.append((name, consumer, runs_in.submit(getattr(consumer, name))))
        for name, consumer, end in tried:
            end.result()
            print(f"{Path(consumer.compiler).name} {name}: {consumer.seconds:.0f} s of CPU time", flush=True)
    failures = sum(len(consumer.failures) for _, consumer, _ in tried)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
