#!/usr/bin/env python3
"""Checks that nvcc made a kernel of every body that a unit of the component cuda instantiates.

The host's half of a unit refers to each kernel by name whether or not there is device code for it; a kernel that is
missing shows only when it is launched. So for each unit the functions that the host calls (kernel_function<Body>) are
counted in the object file, and the entries in the PTX that stands there too, as text where nvcc was told --no-compress. Units
in the folder device/ instantiate none: they are what calls CUDA and its libraries.

Usage: tools/check_cuda_kernels.py BUILD
Prints "count: ..." and exits 1 if a unit has fewer entries than functions.
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def functions_of(object_file):
    """How many kernel_function<Body> the object defines."""
    symbols = subprocess.run(["nm", str(object_file)], check=True, capture_output=True, text=True).stdout
    return len({line.split()[-1] for line in symbols.splitlines() if re.search(r" [WVTtu] _ZN5dflow4cuda15kernel_function", line)})


def entries_of(object_file):
    """How many kernels the PTX in the object has."""
    return len(re.findall(rb"^\s*(?:\.visible )?\.entry", object_file.read_bytes(), re.M))


def main():
    build = Path(sys.argv[1])
    commands = json.loads((build / "compile_commands.json").read_text())
    units = [unit for unit in commands if unit["file"].endswith(".cu") and "/cuda/device/" not in unit["file"]]
    total, status = 0, 0
    for unit in units:
        output = Path(unit["directory"]) / re.search(r" -o (\S+)", unit["command"]).group(1)
        functions, entries = functions_of(output), entries_of(output)
        total += entries
        if functions == 0 or entries != functions:
            print(f"{unit['file']}: {functions} functions, {entries} kernels")
            status = 1
    print(f"count: {total} kernels for GPUs in {len(units)} units")
    return status if units else 1


if __name__ == "__main__":
    sys.exit(main())
