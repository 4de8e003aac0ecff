#!/usr/bin/env python3
"""How long nvcc takes for a file and an architecture.

usage: nvcc_times.py BUILD    a build folder of ninja that has the component `cuda`

Prints for the slowest files the seconds that one took, by the number of architectures: machine code and PTX are made one
after the other, and the host's part, which is among them, once.
"""
import pathlib
import re
import sys


def architectures_of(build):
    """What the files are compiled for, by the flags of nvcc."""
    for line in (build / "build.ninja").read_text().splitlines():
        kinds = re.findall(r"--generate-code=arch=\S+?,code=\[?([^\]\s]+)", line)
        if kinds:
            return [code for kind in kinds for code in kind.split(",")]
    sys.exit(f"{build} compiles for no architecture")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    architectures = architectures_of(build)
    seconds = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith(".cu.o"):
            seconds[pathlib.Path(output).name.removesuffix(".o")] = (int(end) - int(start)) / 1000
    if not seconds:
        sys.exit(f"nothing was compiled by nvcc in {build}")
    print(f"{len(seconds)} files for {len(architectures)}: {' '.join(architectures)}")
    for name, took in sorted(seconds.items(), key=lambda item: -item[1])[:5]:
        print(f"{name:36} {took:6.1f} s, {took / len(architectures):5.1f} s each")


if __name__ == "__main__":
    main()
