"""Writes tests/oracle/*.json, expected values of ops, computed by TensorFlow, NumPy and SciPy in wide types, and
tests/oracle/programs/*.json, of programs of several ops.

python3 -m venv venv && venv/bin/pip install -r tools/oracle/requirements.txt
venv/bin/python tools/oracle/generate.py [--out tests/oracle] [--counts] [family ...]
"""

import argparse
import collections
import importlib
import os
import pathlib

from case_file import CaseFile

FAMILIES = [
    "array",
    "array_moves",
    "array_index",
    "math_unary",
    "math_binary",
    "matmul",
    "linalg",
    "fourier",
    "reduce",
    "scan",
    "sparse",
    "complex",
    "conv",
    "depthwise_conv",
    "pool",
    "norm",
    "activation",
    "loss",
    "update",
    "check",
    "derived",
    "gradient",
    "data_flow",
    "image",
    "strings",
    "sequence",
    "vocabulary",
]

PROGRAMS = "programs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--out", default=str(root / "tests" / "oracle"), help="folder of the JSON files")
    parser.add_argument("--counts", action="store_true", help="print cases, checks and errors of each op")
    parser.add_argument("families", nargs="*", default=[], help="families to write, and programs, default all")
    arguments = parser.parse_args()
    for family in arguments.families or [*FAMILIES, PROGRAMS]:
        if family == PROGRAMS:
            importlib.import_module("control_flow_programs").write(pathlib.Path(arguments.out) / PROGRAMS)
            continue
        cases = CaseFile(family)
        importlib.import_module(family + "_cases").add(cases)
        path = cases.write(arguments.out)
        checks = sum(len(c["types"]) for c in cases.cases)
        ops = {c["op"] for c in cases.cases + cases.errors}
        print(
            f"{family}: {len(ops)} ops, {len(cases.cases)} cases, {checks} checks by element type, "
            f"{len(cases.errors)} errors, {os.path.getsize(path) / 1024:.0f} KiB"
        )
        if arguments.counts:
            _print_counts(cases)


def _print_counts(cases):
    count = collections.defaultdict(lambda: [0, 0, 0])
    for case in cases.cases:
        count[case["op"]][0] += 1
        count[case["op"]][1] += len(case["types"])
    for error in cases.errors:
        count[error["op"]][2] += 1
    for op, (number, checks, errors) in count.items():
        print(f"  {op}: {number} cases, {checks} checks, {errors} errors")


if __name__ == "__main__":
    main()
