#!/usr/bin/env python3
"""Checks that each header of include/dflow/ compiles alone.

Usage: tools/check_headers.py [--header-only [--core]] [--jobs N] [--compiler CXX] [HEADER...]
--header-only also defines DFLOW_HEADER_ONLY, which compiles the bodies too, with the optional libraries that are installed, or with --core
without them.
Without bodies ccache spares those that have not changed since an earlier run.
"""

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
BUILD = ROOT / "build" / "headers"
OPTIONAL = {"DFLOW_HAS_ONEDNN=1": "dnnl.hpp", "DFLOW_HAS_ZLIB=1": "zlib.h", "DFLOW_HAS_JSON=1": "nlohmann/json.hpp",
            "DFLOW_HAS_OPENSSL=1": "openssl/ssl.h"}


def eigen_flags():
    """Where Eigen lies: pkg-config's word, or Debian's place."""
    try:
        output = subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True, check=True)
        return output.stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return ["-I/usr/include/eigen3"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="*", type=Path)
    parser.add_argument("--header-only", action="store_true")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    options = parser.parse_args()

    # -Werror=unused would fire on a lone header's static functions; -Wall -Wextra are the library's own level.
    command = [options.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    command += ["-isystem" + flag[2:] if flag.startswith("-I") else flag for flag in eigen_flags()]
    if options.header_only:
        command.append("-DDFLOW_HEADER_ONLY")
        if not options.core:
            command += [f"-D{name}" for name, header in OPTIONAL.items() if Path("/usr/include", header).exists()]
    headers = [path.resolve() for path in options.headers] or sorted((INCLUDE / "dflow").rglob("*.hpp"))

    # ccache keeps objects of files alone; without bodies they are next to empty.
    ccache = None if options.header_only else shutil.which("ccache")
    if ccache:
        command = [ccache, *command]
        environment = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1", **os.environ}
        BUILD.mkdir(parents=True, exist_ok=True)

    def compiles(header):
        name = header.relative_to(INCLUDE)
        source = f"#include <{name}>\n#include <{name}>\n"
        if not ccache:
            return header, subprocess.run(
                [*command, "-fsyntax-only", "-x", "c++", "-"], input=source, capture_output=True, text=True, check=False)
        file = BUILD / (str(name).replace("/", "_") + ".cpp")
        file.write_text(source)
        return header, subprocess.run(
            [*command, "-MD", "-c", file, "-o", file.with_suffix(".o")],
            cwd=BUILD, env=environment, capture_output=True, text=True, check=False)

    failures = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for header, result in pool.map(compiles, headers):
            if result.returncode != 0:
                failures += 1
                print(f"{header.relative_to(ROOT)}: does not compile alone")
                print("\n".join("    " + line for line in result.stderr.splitlines()[:12]))
    print(f"headers{' with bodies' if options.header_only else ''}: {len(headers)} checked, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if not shutil.which("g++") and "CXX" not in os.environ and "--compiler" not in sys.argv:
        sys.exit("check_headers: no g++; set CXX")
    sys.exit(main())
