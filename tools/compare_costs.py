#!/usr/bin/env python3
"""Builds the library of two commits in one run and prints what each costs: did a change make dflow heavier?

    release       CPU time of `cmake --preset release`'s library from nothing, its longest unit, the size of its objects
    batches       the longest of its batches of units
    tables        CPU time of the units that hold the standard kernels and the standard ops
    subproject    CPU time of a program that takes dflow by add_subdirectory, from nothing
    hello         CPU time of a user's file at -O2, and of examples/01_*.cpp
    binaries      stripped static programs with ten ops and with all ops
    lines         lines and files of include/ and src/

Usage: tools/compare_costs.py OLD NEW [--folder DIR] [--jobs N] [--only ROW,...]
OLD and NEW are anything that git takes for a commit. Worktrees and builds are kept under DIR (default build/costs), and
what was built there once is not built again: remove DIR to measure anew. No compiler cache is used.
CPU time is the compiler's own, so other work on the machine disturbs it little. The last column is new / old.
"""
import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))
import measure_costs  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

# A compiler launcher that adds a line to a file for each compile: CPU seconds, then the source.
LAUNCHER = """#!/usr/bin/env python3
import os, resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
source = sys.argv[sys.argv.index("-c") + 1] if "-c" in sys.argv else "-"
with open({log!r}, "a") as log:
    log.write(f"{{used.ru_utime + used.ru_stime:.2f}} {{source}}\\n")
sys.exit(status)
"""

SUBPROJECT = """cmake_minimum_required(VERSION 3.23)
project(user CXX)
add_subdirectory({source} dflow)
add_executable(user {hello})
target_link_libraries(user PRIVATE dflow::dflow)
"""


def run(command, **options):
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{shlex.join(str(c) for c in command)} failed:\n{result.stdout[-3000:]}")
    return result.stdout


class Side:
    def __init__(self, commit, folder, jobs):
        self.jobs = jobs
        self.source = folder / run(["git", "-C", ROOT, "rev-parse", "--short=12", f"{commit}^{{commit}}"]).strip()
        if not self.source.exists():
            run(["git", "-C", ROOT, "worktree", "add", "--detach", self.source, commit])

    def built(self, name, source, *arguments, target="all"):
        """Builds `source`; the folder of the build, and (CPU seconds, source) of each compile, the longest first."""
        build = self.source / "build" / name
        log = self.source / "build" / f"{name}.log"
        done = self.source / "build" / f"{name}.done"
        if not done.exists():
            shutil.rmtree(build, ignore_errors=True)
            build.mkdir(parents=True)
            log.write_text("")
            launcher = build.parent / f"{name}_launcher.py"
            launcher.write_text(LAUNCHER.format(log=str(log)))
            launcher.chmod(0o755)
            environment = {**os.environ, "CCACHE_DISABLE": "1"}
            run(["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
                 f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", "-DDFLOW_WITH_CUDA=OFF", *arguments], env=environment)
            run(["cmake", "--build", build, "-j", self.jobs, "--target", target], env=environment)
            done.touch()
        compiles = [line.split(" ", 1) for line in log.read_text().splitlines()]
        return build, sorted(((float(seconds), path) for seconds, path in compiles), reverse=True)

    def library(self, unity):
        return self.built(f"library_{unity}", self.source, "-DDFLOW_TESTS=OFF", "-DDFLOW_BENCHMARKS=OFF", "-DDFLOW_EXAMPLES=OFF",
                          "-DDFLOW_TOOLS=OFF", f"-DDFLOW_UNITY_SOURCES={unity}")


def total(compiles):
    return sum(seconds for seconds, _ in compiles)


def first(compiles):
    seconds, path = compiles[0]
    return seconds, Path(path).stem


def time_of(compiles, *names):
    return next((seconds for seconds, path in compiles if path.endswith(names)), None)


def release(side):
    build, alone = side.library(0)
    _, batches = side.library(8)
    yield "release library, units alone", total(alone), "s"
    yield "release library, in batches", total(batches), "s"
    yield "longest unit", *first(alone)
    yield "longest batch", *first(batches)
    yield "objects", sum(path.stat().st_size for path in build.rglob("*.o")) / 1e6, "MB"
    yield "standard kernels", time_of(alone, "/cpu/standard_kernels.cpp", "tables_kernels.cpp"), "s"
    yield "standard ops", time_of(alone, "/ops/standard_ops.cpp", "tables_ops.cpp"), "s"


def subproject(side):
    folder = side.source / "build" / "user"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hello.cpp").write_text(measure_costs.HELLO)
    (folder / "CMakeLists.txt").write_text(SUBPROJECT.format(source=side.source, hello=folder / "hello.cpp"))
    yield "subproject", total(side.built("subproject", folder, target="user")[1]), "s"


def hello(side):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "hello.cpp"
        source.write_text(measure_costs.HELLO)
        example = next((side.source / "examples").glob("01_*.cpp"))
        for name, path in (("hello, -O2", source), (f"examples/{example.name}, -O2", example)):
            command = ["g++", "-std=c++20", "-O2", "-DNDEBUG", f"-I{side.source}/include", "-c", path, "-o", Path(folder) / "x.o"]
            yield name, measure_costs.best(command, 5)[1], "s"


def binaries(side):
    build, _ = side.library(8)
    options = SimpleNamespace(compiler="g++", build=build, repeats=1)
    measure_costs.ROOT, root = side.source, measure_costs.ROOT
    try:
        with tempfile.TemporaryDirectory() as folder:
            costs = measure_costs.Costs(options, Path(folder))
            for name, flags in (("few", ["-DFEW_OPS"]), ("all", [])):
                target = costs.program(name, measure_costs.TABLE, flags)
                run(["strip", target])
                yield f"binary, {name} ops", target.stat().st_size / 1e6, "MB"
    finally:
        measure_costs.ROOT = root


def lines(side):
    include = side.source / "include" / "dflow"
    for name in [*sorted(path.name for path in include.iterdir() if path.is_dir()), "all"]:
        folders = [include, side.source / "src"] if name == "all" else [include / name]
        files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".hpp", ".ipp", ".cpp", ".cu")]
        yield f"lines, {name}", sum(len(path.read_bytes().splitlines()) for path in files), f"in {len(files)} files"


ROWS = {"release": release, "subproject": subproject, "hello": hello, "binaries": binaries, "lines": lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "costs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(ROWS))
    options = parser.parse_args()
    sides = [Side(commit, options.folder.resolve(), options.jobs) for commit in (options.old, options.new)]
    print(f"| what | {options.old} | {options.new} | new / old |\n|---|---|---|---|")
    for name in options.only:
        old, new = ({row[0]: row[1:] for row in ROWS[name](side)} for side in sides)
        for what in {**old, **new}:
            cells = [f"{side[what][0]:.6g} {side[what][1]}" if what in side and side[what][0] is not None else "" for side in (old, new)]
            ratio = f"{new[what][0] / old[what][0]:.2f}" if all(cells) and old[what][0] else ""
            print(f"| {what} | {cells[0]} | {cells[1]} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
