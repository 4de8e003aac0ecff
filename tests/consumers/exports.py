#!/usr/bin/env python3
"""Checks that a shared library of dflow exports what public headers declare and nothing else.

Usage: tests/consumers/exports.py LIBRARY [ROOT]
Each symbol of `nm -D` must be of namespace dflow, and its function, variable or outermost class must stand in a public header or in
one that a public header includes (include/dflow/public_headers.txt). The members of a class go with it, also where a public header
only declares the class. Prints one line per symbol that is not so; exits 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

# Bodies, and headers that the library itself does not include (cmake/DflowExports.cmake).
LEFT_OUT = re.compile(r"^(src[/.]|interop/|net/asio\.hpp)|cuda")
IS_DFLOW = re.compile(r"^_Z(T.|GV|T[hvc][^_]*_(?:[^_]*_)?)?Z?N[KRO]*5dflow")
# Not of C++, from the linker or the compiler's start files.
FROM_LINKER = {"_init", "_fini", "__bss_start", "_edata", "_end"}
INCLUDE = re.compile(r"^\s*#\s*include\s*<(dflow/[^>]+)>", re.MULTILINE)


def public_words(include):
    """The identifiers in public headers and all that they include."""
    lines = (include / "dflow/public_headers.txt").read_text().splitlines()
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    waiting = [f"dflow/{name}" for name in names if not LEFT_OUT.search(name)]
    seen, words = set(), set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            text = (include / name).read_text()
            words.update(re.findall(r"\w+", re.sub(r"//.*", "", text)))
            waiting += INCLUDE.findall(text)
    return words


def names_of(symbol):
    """The names that decide on a demangled symbol: {'detail', 'Lists'} of `dflow::detail::Lists<float>::size() const`."""
    symbol = re.sub(r"operator\s*(\(\)|->\*?|<=>|<<=?|>>=?|<=?|>=?|\[\]|[-+*/%^&|~!=,]+|\w[^(]*)", "operator", symbol)
    symbol = re.sub(r"\[abi:\w+\]", "", symbol)
    plain, depth = "", 0
    for character in symbol:
        depth += (character in "<({") - (character in ">)}")
        plain += character if depth == 0 and character not in ">)}" else " " if depth == 1 and character == "(" else ""
    # Behind the first path come names of local variables: `dflow::f(int)::n`.
    path = next((path for path in plain.split() if path.startswith("dflow::")), "")
    names = re.findall(r"\w+", path)[1:]
    outermost = next((i for i, name in enumerate(names) if name[0].isupper()), len(names))  # namespaces are in lower case
    return set(names[: outermost + 1]) - {"operator"}


def main():
    library = sys.argv[1]
    root = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parents[2]
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-1].split("@")[0] for line in listed.splitlines() if line.split()[-2] != "A"]
    demangled = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout.splitlines()
    words = public_words(root / "include")
    problems = []
    for symbol, text in zip(symbols, demangled):
        if symbol in FROM_LINKER:
            continue
        unknown = sorted(names_of(text) - words)
        if not IS_DFLOW.match(symbol):
            problems.append(f"not of dflow: {text}")
        elif unknown:
            problems.append(f"in no public header ({', '.join(unknown)}): {text}")
    print("\n".join(problems + [f"exports: {len(symbols)} symbols, {len(problems)} that no public header declares"]))
    if not any(symbol.startswith("_ZN5dflow7SessionC") for symbol in symbols):
        print("exports: the library does not export Session")
        return 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
