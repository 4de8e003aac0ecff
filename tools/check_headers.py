#!/usr/bin/env python3
"""Checks that each header of include/dflow/ compiles alone, or each unit.

Usage: tools/check_headers.py [--units [--core]] [--jobs N] [--compiler CXX] [HEADER...]
--units checks headers of include/dflow/src/, which hold bodies: as where each is a unit, with the optional libraries that are
installed, or with --core without them. Bodies that stand behind others in a larger unit include too little without anybody
noticing. Without a name all units are checked, but those of kernels: what they instantiate takes minutes.
A header that another one includes before anything else of its own may stand before that one in the same unit: what it has
seen by then is what the other would have included by itself. So the headers come in as few rows as that allows, and each
row is a unit. For the same reason a row may stand behind a precompiled header that all of it include first of all.
"""

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
BUILD = ROOT / "build" / "headers"
UNITS = INCLUDE / "dflow" / "src" / "units"
KERNEL_UNITS = {"kernels", "linalg", "loops", "routines", "tables"}
OPTIONAL = {"DFLOW_HAS_ONEDNN=1": "dnnl.hpp", "DFLOW_HAS_ZLIB=1": "zlib.h",
            "DFLOW_HAS_OPENSSL=1": "openssl/ssl.h"}

# What the units of the component image need.
IMAGE = ("jpeglib.h", "png.h")


def eigen_flags():
    """Where Eigen lies: pkg-config's word, or Debian's place."""
    try:
        output = subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True, check=True)
        return output.stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return ["-I/usr/include/eigen3"]


class Includes:
    """What the headers of a folder include, by their names below it."""

    def __init__(self, folder):
        self.folder = folder
        self.own = {}

    def of(self, name):
        """Headers of the folder that this one includes: first, before any line of its own and in all builds; and all."""
        if name not in self.own:
            first, every, depth, is_first = [], [], 0, True
            for line in (self.folder / name).read_text().splitlines():
                line = line.strip()
                included = re.match(r'#\s*include\s*[<"]([^>"]+)[>"]', line)
                if included:
                    if (self.folder / included[1]).is_file():
                        every.append(included[1])
                        if is_first and depth == 0:
                            first.append(included[1])
                elif line.startswith("#"):
                    depth += bool(re.match(r"#\s*if", line)) - bool(re.match(r"#\s*endif", line))
                    is_first = is_first and not re.match(r"#\s*(define|undef)", line)
                elif line and not line.startswith("//"):
                    is_first = False
            self.own[name] = first, every
        return self.own[name]

    def closure(self, name, kind):
        """All that `name` includes, directly or not; kind 0: first of all, 1: anywhere."""
        found, left = set(), [name]
        while left:
            for other in self.of(left.pop())[kind]:
                if other not in found:
                    found.add(other)
                    left.append(other)
        return found


def rows(names, includes):
    """The names in the fewest lists in which each includes the one before it, first of all, and that one never it."""
    before = {name: includes.closure(name, 0) for name in names}
    anywhere = {name: includes.closure(name, 1) for name in names}
    follows = {a: [b for b in names if a != b and a in before[b] and b not in anywhere[a]] for a in names}
    previous = {}

    def extend(a, seen):
        for b in follows[a]:
            if b not in seen:
                seen.add(b)
                if b not in previous or extend(previous[b], seen):
                    previous[b] = a
                    return True
        return False

    for name in names:
        extend(name, set())
    result = []
    for name in sorted(set(names) - set(previous.values())):
        row = [name]
        while row[0] in previous:
            row.insert(0, previous[row[0]])
        result.append(row)
    return result


def precompiled(names, includes, most=16):
    """For each name the header that it stands behind, precompiled, or None: one that it includes first of all. What a header
    costs is the number of those that it includes."""
    cost = functools.cache(lambda name: len(includes.closure(name, 1)))
    may = {a: {b for b in includes.closure(a, 0) if b in names and a not in includes.closure(b, 1)} for a in names}
    behind = dict.fromkeys(names)

    def saved(by):
        return sum(max(0, cost(by) - (cost(behind[name]) if behind[name] else 0)) for name in names if by in may[name])

    for _ in range(most):
        # A precompiled header costs a run of the compiler of its own, and takes longer to write than to compile once.
        best = max(names, key=lambda name: saved(name) - cost(name))
        if saved(best) < 3 * cost(best):
            break
        for name in names:
            if best in may[name] and (behind[name] is None or cost(best) > cost(behind[name])):
                behind[name] = best
    return behind


def check_units(command, units, jobs):
    """Compiles each alone; the exit status."""

    def compiles(unit):
        return unit, subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=f"#include <{unit.relative_to(INCLUDE)}>\n",
                                    capture_output=True, text=True, check=False)

    failures = 0
    with ThreadPoolExecutor(jobs) as pool:
        for unit, result in pool.map(compiles, units):
            if result.returncode != 0:
                failures += 1
                print("\n".join([f"{unit.relative_to(ROOT)}: does not compile alone", *result.stderr.splitlines()[:12]]))
    print(f"units: {len(units)} checked, {failures} failed")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="*", type=Path)
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    options = parser.parse_args()

    # -Werror=unused would fire on a lone header's static functions; -Wall -Wextra are the library's own level.
    command = [options.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    command += ["-isystem" + flag[2:] if flag.startswith("-I") else flag for flag in eigen_flags()]
    optional = [f"-D{name}" for name, header in OPTIONAL.items() if Path("/usr/include", header).exists()]
    named = [path.resolve() for path in options.headers]
    if options.units:
        units = named or sorted(path for path in UNITS.rglob("*.hpp") if path.parent.name not in KERNEL_UNITS)
        if not all(Path("/usr/include", header).exists() for header in IMAGE):
            units = [path for path in units if path.parent.name != "image"]
        return check_units([*command, *([] if options.core else optional)], units, options.jobs)
    if options.core:
        parser.error("--core is for --units")
    headers = named or sorted(path for path in (INCLUDE / "dflow").rglob("*.hpp") if not path.is_relative_to(INCLUDE / "dflow/src"))
    headers = [path for path in headers if path != INCLUDE / "dflow/src.hpp"]

    def compiles(unit):
        row, behind = unit
        source = "".join(f"#include <{name}>\n" for name in row)
        first = ["-include", BUILD / behind] if behind else []
        return row, subprocess.run([*command, *first, "-fsyntax-only", "-x", "c++", "-"], input=source,
                                   capture_output=True, text=True, check=False)  # fmt: skip

    def precompile(name):
        file = BUILD / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#include <{name}>\n")
        subprocess.run([*command, "-x", "c++-header", file, "-o", f"{file}.gch"], capture_output=True, check=False)

    names = [str(header.relative_to(INCLUDE)) for header in headers]
    failures = 0
    for name in names:
        if not re.search(r"^#pragma once$", (INCLUDE / name).read_text(), re.MULTILINE):
            failures += 1
            print(f"include/{name}: may not be included twice")
    includes = Includes(INCLUDE)
    behind = precompiled(names, includes)
    chosen = sorted({name for name in behind.values() if name})
    units = [(row, header) for header in [None, *chosen] for row in rows([n for n in names if behind[n] == header], includes)]
    shutil.rmtree(BUILD, ignore_errors=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(precompile, chosen))
        for row, result in pool.map(compiles, units):
            if result.returncode != 0:
                failures += 1
                print("\n".join(["does not compile alone, or behind what stands before it:", *row]))
                print("\n".join("    " + line for line in result.stderr.splitlines()[:12]))
    print(f"headers: {len(headers)} checked in {len(units)} units, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if not shutil.which("g++") and "CXX" not in os.environ and "--compiler" not in sys.argv:
        sys.exit("check_headers: no g++; set CXX")
    sys.exit(main())
