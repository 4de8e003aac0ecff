#!/usr/bin/env python3
"""Checks that kernels compiled for a processor variant define nothing that the whole program could end up with.

A weak symbol (an inline function or a template) exists once in a program: the linker takes any of its copies. If an
object compiled with -march=x86-64-v4 holds one without the variant in its name, the copy with AVX-512 instructions may
be the one that every other file calls, also on a processor without them.

Usage: tools/check_variants.py BUILD_DIR
"""

import re
import subprocess
import sys
from pathlib import Path

VARIANTS = ("v3", "v4")
SHARED_KINDS = set("WVu")


def shared_symbols(path):
    """The demangled weak and unique symbols that an object defines."""
    output = subprocess.run(["nm", "-C", "--defined-only", str(path)], capture_output=True, text=True, check=True)
    for line in output.stdout.splitlines():
        match = re.match(r"^[0-9a-f]*\s+(\w) (.*)$", line)
        if match and match.group(1) in SHARED_KINDS:
            yield match.group(2)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = Path(sys.argv[1])
    objects = failures = 0
    for variant in VARIANTS:
        # The tag as a word, or after an underscore as in a renamed namespace Eigen_v3.
        tag = re.compile(rf"(?<![A-Za-z0-9]){variant}(?![A-Za-z0-9])")
        for path in sorted(build.rglob(f"dflow_kernels_{variant}.dir/**/*.o")):
            objects += 1
            untagged = [symbol for symbol in shared_symbols(path) if not tag.search(symbol)]
            failures += len(untagged)
            for symbol in untagged:
                print(f"{path.relative_to(build)}: weak symbol without {variant}: {symbol[:300]}")
    print(f"variants: {objects} objects checked, {failures} shared symbols without their variant")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
