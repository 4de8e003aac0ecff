#!/usr/bin/env python3
"""Checks that what belongs to a family of ops is in the family's lists, so that nothing of an op can be forgotten.

Usage: tools/check_lists.py [--write] [ROOT]

A family is a folder of include/dflow/ops/. Of each:
- there is a list.hpp; the unit src/units/ops/FAMILY.hpp includes every .ipp of the folder, kernels/cpu/FAMILY/list.hpp every
  kernel header of its folder, and list.hpp every header with an op; --write writes these includes;
- every list of ops (`using ...Ops = TypeList<...>` or `concat_t<...>`), in list.hpp or beside the ops, leads to
  StandardOps of ops/standard_ops.hpp, and every op struct of the folder stands in one that does.
Ops of ops/internal/, which passes alone put in, are in no list.
A kernel of an op, `Kernel<Op, Cpu>` or `Kernel<Op, Cuda>`, lies in the folder of the op's family in kernels/cpu/ or kernels/cuda/.
kernels/cuda/all.hpp includes every header with kernels of a GPU, and src/kernels/cuda/device/cuda.cpp every .ipp beside.
Every .ipp of the library, but CUDA's, stands in exactly one unit of include/dflow/src/, or in another .ipp.
"""

import argparse
import re
import sys
from pathlib import Path

# A struct whose base is given the op's name: `struct Relu final : public StandardElementwiseOp<"Relu", ...`.
OP_STRUCT = re.compile(
    r"^(?:struct|class)\s+(\w+)(?:\s+final)?\s*:\s*(?:(?:public|virtual)\s+)*(?:\w+::)*\w+\s*<\s*\"", re.MULTILINE
)
# The head of a kernel: `struct Kernel<Relu, Cuda, T>`.
KERNEL = re.compile(r"^(?:struct|class)\s+Kernel<\s*(\w+)\s*,\s*(Cpu|Cuda)\b", re.MULTILINE)
# Ops that passes alone put in: in no table of ops.
INTERNAL = "internal"
OP_LIST = re.compile(r"using (\w+Ops) =(.*?);", re.DOTALL)
COMMENT = re.compile(r"//[^\n]*")


def included(path):
    return set(re.findall(r"^#include <([^>]+)>", path.read_text(), re.MULTILINE)) if path.exists() else set()


def lists_of(path):
    """The lists of ops that a header defines: the names that each consists of, by its own."""
    text = COMMENT.sub("", path.read_text()) if path.exists() else ""
    return {name: set(re.findall(r"\w+", body)) for name, body in OP_LIST.findall(text)}


def reached(lists, name):
    """All names that a list leads to, its own included."""
    names, rest = set(), {name}
    while rest:
        names |= rest
        rest = set().union(*(lists.get(one, set()) for one in rest)) - names
    return names


def misplaced_kernels(root, families):
    """One fault per kernel that lies in another folder than its op's family; an op is named once in the library."""
    for device in ("cpu", "cuda"):
        folder = root / "include/dflow/kernels" / device
        for path in sorted([*folder.rglob("*.hpp"), *folder.rglob("*.ipp")]):
            for op, _ in KERNEL.findall(COMMENT.sub("", path.read_text())):
                family = families.get(op)  # none: a parameter of a template, as that of all elementwise ops
                if family is not None and path.parent != folder / family:
                    yield (f"{path.relative_to(root)}: has the kernel of {op}, an op of family {family}: "
                           f"it belongs in kernels/{device}/{family}/")


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
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    include = args.root / "include"

    faults, ops, families = [], 0, {}

    def spelled(path):
        return path.relative_to(include).as_posix()

    def require(path, names, what):
        missing = sorted(names - included(path))
        if missing and args.write:
            add_includes(path, missing)
        elif missing:
            for name in missing:
                faults.append(f"{path.relative_to(args.root)}: does not include {name}, {what}; "
                              "tools/check_lists.py --write adds it")

    standard = include / "dflow/ops/standard_ops.hpp"
    folders = sorted(path for path in standard.parent.iterdir() if path.is_dir() and path.name != INTERNAL)
    headers = {folder: sorted(folder.glob("*.hpp")) for folder in folders}
    lists = {header: lists_of(header) for folder in folders for header in headers[folder]}
    bodies = {name: body for of_header in [*lists.values(), lists_of(standard)] for name, body in of_header.items()}
    in_table = reached(bodies, "StandardOps")

    for folder in folders:
        family = folder / "list.hpp"
        if not family.exists():
            faults.append(f"{family.relative_to(args.root)}: is missing: the list of the family's ops, which "
                          f"{standard.relative_to(args.root)} names in StandardOps")
            continue
        require(include / f"dflow/src/units/ops/{folder.name}.hpp", {spelled(p) for p in folder.glob("*.ipp")},
                "so its bodies are compiled nowhere")
        kernels = include / "dflow/kernels/cpu" / folder.name
        if kernels.exists():
            require(kernels / "list.hpp", {spelled(p) for p in kernels.glob("*.hpp") if p.name != "list.hpp"},
                    "so its kernels are compiled nowhere")
        listed = set().union(*(body for header in headers[folder] for body in lists[header].values()))
        for header in headers[folder]:
            for name in lists[header]:
                if name not in in_table:
                    where = standard if header == family and name.lower() == folder.name.replace("_", "") + "ops" else family
                    faults.append(f"{header.relative_to(args.root)}: list {name} leads to no table: add it to one in "
                                  f"{where.relative_to(args.root)}, or no session knows its ops")
            defined = OP_STRUCT.findall(COMMENT.sub("", header.read_text()))
            ops += len(defined)
            for op in defined:
                if op not in listed:
                    faults.append(f"{header.relative_to(args.root)}: op {op} is in no list: add it to one here or in "
                                  f"{family.relative_to(args.root)}, or no session knows it")
            if defined:
                require(family, {spelled(header)}, "so its ops are in no table")

    for header in standard.parent.glob("*/*.hpp"):
        families.update((op, header.parent.name) for op in OP_STRUCT.findall(COMMENT.sub("", header.read_text())))
    faults += misplaced_kernels(args.root, families)
    cuda = include / "dflow/kernels/cuda"
    if cuda.exists():
        with_kernels = {spelled(path) for path in cuda.rglob("*.hpp") if KERNEL.search(path.read_text())}
        require(cuda / "all.hpp", with_kernels, "so its kernels are in no table")
        alone = {cuda / "standard_kernels.ipp", cuda / "grid/emulated_grid.ipp"}
        bodies_of_cuda = {spelled(path) for path in cuda.rglob("*.ipp") if path not in alone}
        require(args.root / "src/kernels/cuda/device/cuda.cpp", bodies_of_cuda, "so its bodies are compiled nowhere")

    # A header of bodies/ is a part of a unit; what of it the unit of a family includes counts once.
    library = include / "dflow"
    units = {name: [] for name in map(spelled, library.rglob("*.ipp")) if "/cuda/" not in name and "/cuda_" not in name}
    inner = set().union(*(included(path) for path in library.rglob("*.ipp")))
    for unit in sorted([*library.glob("src/units/*/*.hpp"), *library.glob("src/bodies/*.hpp")]):
        if unit in {library / "src/bodies/cpu.hpp", library / "src/bodies/linalg.hpp"}:
            continue  # for programs with a table of their own, in the place of the units of routines and linear algebra
        for name in included(unit) & units.keys():
            units[name].append(spelled(unit))
    for name, places in sorted(units.items()):
        if not places and name not in inner:
            faults.append(f"include/{name}: is in no unit of include/dflow/src/units/, so it is compiled nowhere")
        elif len(places) > 1 and "/linalg/" not in name:
            faults.append(f"include/{name}: is compiled twice, in {' and '.join(places)}")

    for fault in faults:
        print(fault)
    print(f"lists: {len(folders)} families, {ops} ops, {len(faults)} omissions")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
