#!/usr/bin/env python3
"""Counts the lines of code of the examples, beside those of the same programs with Keras and with PyTorch.

Usage: tools/count_lines.py [--check | --write] [ROOT]

Prints a table of examples/*.cpp and of examples/beside/{keras,pytorch}/*.py of the same name. What is counted is code that a
user has to think of: no empty lines, comments and docstrings, no #include, import, using, namespace and #pragma lines, and
none that hold only brackets. A header beside the examples that an example includes counts as part of it. String literals
that go over several lines count with each of them; a line is one however long it is, and all are laid out for 120 columns.

--check compares the last three cells of the rows of docs/gallery.md with that and names each that differs; --write puts
them right. Exits 1 if --check found any, or if the page lacks a row of an example.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from pathlib import Path

PEERS = ("keras", "pytorch")
PAGE = "docs/gallery.md"
# A string or character literal, which is kept, or a comment.
CPP_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
CPP_CEREMONY = re.compile(r"#\s*include\b|#\s*pragma once\b|using\b|namespace\b")
OWN_HEADER = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ONLY_BRACKETS = re.compile(r"[\s(){}\[\];,]*")
# `| [name](../examples/name.cpp) | ... | 1 | 2 | 3 |`
ROW = re.compile(r"^\| \[\w+\]\(\.\./examples/(\w+)\.cpp\) \|.*\|([^|]*)\|([^|]*)\|([^|]*)\|$")


def cpp_lines(text):
    """The lines of C++ that count."""

    def without_comment(match):
        found = match.group()
        return "\n" * found.count("\n") if found.startswith("/") else found

    lines = (line.strip() for line in CPP_TOKEN.sub(without_comment, text).splitlines())
    return [line for line in lines if not ONLY_BRACKETS.fullmatch(line) and not CPP_CEREMONY.match(line)]


def python_lines(text):
    """The lines of Python that count."""
    numbers = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
                              tokenize.ENDMARKER):  # fmt: skip
            numbers.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if is_docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
            numbers.difference_update(range(node.lineno, node.end_lineno + 1))
    lines = text.splitlines()
    return [lines[i - 1] for i in sorted(numbers) if not ONLY_BRACKETS.fullmatch(lines[i - 1])]


def count(path):
    """Lines of a program and of the headers beside it that it includes; None if there is no such program."""
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return len(python_lines(text))
    headers = (path.parent / name for name in OWN_HEADER.findall(text))
    return len(cpp_lines(text)) + sum(count(header) or 0 for header in headers)


def table(root):
    """Name of each example -> lines with dflow, Keras and PyTorch."""
    examples = root / "examples"
    return {
        path.stem: (count(path), *(count(examples / "beside" / peer / f"{path.stem}.py") for peer in PEERS))
        for path in sorted(examples.glob("[0-9][0-9]_*.cpp"))
    }


def cells(counts):
    return ["" if number is None else str(number) for number in counts]


def compare(page, counts, write):
    """Returns what differs in the page's rows; with `write` none of it stays but rows that are missing."""
    problems, missing = [], set(counts)
    lines = page.read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        row = ROW.match(line)
        if row is None:
            continue
        where, name = f"{PAGE}:{i + 1}", row.group(1)
        missing.discard(name)
        if name not in counts:
            problems.append(f"{where}: there is no examples/{name}.cpp")
        elif [cell.strip() for cell in row.groups()[1:]] != cells(counts[name]):
            if write:
                lines[i] = line[: row.start(2)] + " | ".join(["", *cells(counts[name])])[2:] + " |"
            else:
                problems.append(f"{where}: {name} has {' | '.join(cells(counts[name]))}; tools/count_lines.py --write says so")
    if write:
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return problems + [f"{PAGE}:1: has no row of {name}" for name in sorted(missing)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    counts = table(args.root)
    if args.check or args.write:
        problems = compare(args.root / PAGE, counts, args.write)
        for problem in problems:
            print(problem)
        print(f"lines: {len(counts)} examples, {len(problems)} problems")
        return 1 if problems else 0
    print("| example | dflow | Keras | PyTorch |\n|---|---|---|---|")
    for name, numbers in counts.items():
        print(f"| {name} | {' | '.join(cells(numbers))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
