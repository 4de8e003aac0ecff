#!/usr/bin/env python3
"""Checks that what belongs to a family of ops is in the family's lists, so that nothing of an op can be forgotten.

Usage: tools/check_lists.py [--write]

A family is a folder of include/dflow/ops/. Of each:
- src/ops/FAMILY.cpp includes every .ipp of the folder, kernels/cpu/FAMILY/list.hpp every kernel header of its folder, and
  list.hpp every header with an op; --write writes these includes;
- every op struct of the folder stands in a list of ops (`using ...Ops = TypeList<...>`), in list.hpp or beside the op.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
OPS = INCLUDE / "dflow/ops"
KERNELS = INCLUDE / "dflow/kernels/cpu"

OP_STRUCT = re.compile(r"^struct (\w+)\s*:\s*(?:\w+::)*\w*Op\s*<\s*\"", re.MULTILINE)
OP_LIST = re.compile(r"using \w+Ops =(.*?);", re.DOTALL)


def included(path):
    return set(re.findall(r"^#include <([^>]+)>", path.read_text(), re.MULTILINE)) if path.exists() else set()


def spelled(path):
    return path.relative_to(INCLUDE).as_posix()


def add_includes(path, missing):
    """Adds lines where they stand in the order of the alphabet among the others."""
    text = path.read_text() if path.exists() else ""
    lines = text.splitlines()
    block = [i for i, line in enumerate(lines) if line.startswith("#include <")]
    others = [lines[i] for i in block]
    sorted_block = sorted([*others, *(f"#include <{name}>" for name in missing)])
    if block:
        lines[block[0] : block[-1] + 1] = sorted_block
    else:
        lines += sorted_block
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write

    faults, families, ops = [], 0, 0

    def require(path, names, what):
        missing = sorted(names - included(path))
        if missing and write:
            add_includes(path, missing)
        elif missing:
            for name in missing:
                faults.append(f"{path.relative_to(ROOT)}: does not include {name}, {what}; tools/check_lists.py --write adds it")

    for folder in sorted(path for path in OPS.iterdir() if (path / "list.hpp").exists()):
        families += 1
        require(ROOT / f"src/ops/{folder.name}.cpp", {spelled(p) for p in folder.glob("*.ipp")}, "so its bodies are compiled nowhere")
        kernels = KERNELS / folder.name
        if kernels.exists():
            headers = {spelled(p) for p in kernels.glob("*.hpp") if p.name != "list.hpp"}
            require(kernels / "list.hpp", headers, "so its kernels are compiled nowhere")

        headers = sorted(folder.glob("*.hpp"))
        listed = set()
        for header in headers:
            for body in OP_LIST.findall(header.read_text()):
                listed |= set(re.findall(r"\w+", body))
        for header in headers:
            defined = OP_STRUCT.findall(header.read_text())
            ops += len(defined)
            for op in defined:
                if op not in listed:
                    faults.append(f"{header.relative_to(ROOT)}: op {op} is in no list: add it to one here or in "
                                  f"{(folder / 'list.hpp').relative_to(ROOT)}, or no session knows it")
            if defined:
                require(folder / "list.hpp", {spelled(header)}, "so its ops are in no table")

    for fault in faults:
        print(fault)
    print(f"lists: {families} families, {ops} ops, {len(faults)} omissions")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
