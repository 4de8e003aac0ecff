#!/usr/bin/env python3
"""Checks that the C++ in README.md and docs/*.md is code of this tree, word for word.

A block of C++ in a page follows a line that says where it is from. A block of another language may follow such a line, too:

    <!-- snippet: docs/snippets/graph.cpp [tensors] -->   what stands between the two lines `// [tensors]` of that file
    <!-- quote: include/dflow/ops/nn/bias.hpp -->         lines that stand in that file, one after the other

Common indentation is taken off. The files in docs/snippets/ are programs that the build compiles and the tests run; the
project in docs/snippets/tutorial/ is built and run by tests/consumers/run tutorial.

Usage: tools/check_snippets.py [--write] [ROOT]
--write puts the present text of each snippet into the pages. Prints one line per violation as file:line: message and the
number of blocks; exits 1 if there is any violation.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

MARK = re.compile(r"^<!-- (snippet|quote): (\S+?)(?: \[(\w+)\])? -->$")
FENCE = "```"


def dedent(lines):
    return textwrap.dedent("\n".join(lines)).split("\n")


def snippet(path, name):
    """The lines between the two marker lines of `name`, or None unless there are exactly two."""
    lines = path.read_text(encoding="utf-8").splitlines()
    places = [i for i, line in enumerate(lines) if line.strip() == f"// [{name}]"]
    return dedent(lines[places[0] + 1 : places[1]]) if len(places) == 2 else None


def contains(path, block):
    """The block's lines stand in the file in one piece, whatever their common indentation."""
    lines = path.read_text(encoding="utf-8").splitlines()
    count = len(block)
    return any(dedent(lines[i : i + count]) == dedent(block) for i in range(len(lines) - count + 1))


def blocks(lines):
    """Yields (index of the opening fence, index of the closing fence) of each block that is C++ or says where it is from."""
    start = None
    for i, line in enumerate(lines):
        if start is None and line.startswith(FENCE):
            start = i
        elif start is not None and line.rstrip() == FENCE:
            if lines[start].strip() == FENCE + "cpp" or (start > 0 and MARK.match(lines[start - 1])):
                yield start, i
            start = None


def check_page(root, page, write, used):
    problems = []
    lines = page.read_text(encoding="utf-8").splitlines()
    replacements = []
    found = list(blocks(lines))
    for start, end in found:
        where = f"{page.relative_to(root)}:{start + 1}"
        mark = MARK.match(lines[start - 1]) if start > 0 else None
        if mark is None:
            problems.append(f"{where}: a block of C++ without a line <!-- snippet: FILE [NAME] --> or <!-- quote: FILE --> above it")
            continue
        kind, name = mark.group(1), mark.group(3)
        path = root / mark.group(2)
        if not path.is_file():
            problems.append(f"{where}: there is no {mark.group(2)}")
        elif kind == "quote":
            if not contains(path, lines[start + 1 : end]):
                problems.append(f"{where}: these lines do not stand in {mark.group(2)}")
        else:
            text = snippet(path, name)
            used.add((mark.group(2), name))
            if text is None:
                problems.append(f"{where}: {mark.group(2)} does not have two lines `// [{name}]`")
            elif text != lines[start + 1 : end]:
                if write:
                    replacements.append((start + 1, end, text))
                else:
                    problems.append(f"{where}: differs from [{name}] in {mark.group(2)}; tools/check_snippets.py --write copies it")
    for start, end, text in reversed(replacements):
        lines[start:end] = text
    if replacements:
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(found), problems


def main():
    parser = argparse.ArgumentParser(description="Checks that the C++ in the documentation is code of this tree.")
    parser.add_argument("--write", action="store_true", help="copy the snippets into the pages")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    root = options.root.resolve()
    count, problems, used = 0, [], set()
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        if page.is_file():
            number, found = check_page(root, page, options.write, used)
            count += number
            problems += found
    for source in sorted((root / "docs" / "snippets").rglob("*.[ch]pp")):
        relative = source.relative_to(root).as_posix()
        names = re.findall(r"^\s*// \[(\w+)\]$", source.read_text(encoding="utf-8"), re.MULTILINE)
        for name in sorted(set(names)):
            if (relative, name) not in used:
                problems.append(f"{relative}:1: no page shows [{name}]")
    for problem in problems:
        print(problem)
    print(f"{count} blocks of code, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
