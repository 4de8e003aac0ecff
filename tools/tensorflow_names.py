#!/usr/bin/env python3
"""Writes docs/tensorflow.md: what became of each op and gradient of TensorFlow 0.8.

usage: tools/tensorflow_names.py [--check]

tools/tensorflow_0_8.json has TensorFlow's names by family. An entry says what takes the place of a name that the op
table does not have ("as": an op, or a builder with its parentheses, in back quotes), or why it needs none ("none").
The page docs/ops.md says which ops there are. With --check nothing is written; the exit status is 1 if the page is not
current, if an entry names what is not there, or if it stands for an op that is there under its own name.
"""

import argparse
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# These are differentiated as part of a loop or a branch that the library built.
FRAMES = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}


def op_table():
    """The ops of docs/ops.md, each with its column "gradient"."""
    with open(os.path.join(ROOT, "docs", "ops.md"), encoding="utf-8") as page:
        rows = [line.split(" | ") for line in page if line.startswith("| ")]
    return {row[0].removeprefix("| "): row[4] for row in rows if len(row) > 5}


def builders():
    """All names in the headers of ops that an opening parenthesis follows."""
    names = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "include", "dflow")):
        if os.sep + "kernels" in folder:
            continue
        for file in files:
            if file.endswith(".hpp"):
                with open(os.path.join(folder, file), encoding="utf-8") as header:
                    names.update(re.findall(r"\b([a-z]\w*)\(", header.read()))
    return names


def gradient_of(name, replacement, ops):
    """What the library has for a gradient that TensorFlow registers."""
    named = re.findall(r"`(\w+)`", replacement) if replacement else [name]
    if FRAMES & set(named):
        return "of whole loops and branches"
    if replacement and not named:
        return "yes"  # a builder: its ops have gradients
    return "yes" if any(ops.get(op) == "yes" for op in named) else "no"


def page(data, ops, known_builders, problems):
    lines, counts = [], {"there": 0, "as": 0, "none": 0, "missing": 0}
    with_gradient = set(data["gradients"])
    num_gradients = 0
    for family, names in data["families"].items():
        lines += [f"## {family[0].upper() + family[1:]}", "", "| TensorFlow | here | gradient |", "|---|---|---|"]
        for name, entry in names.items():
            replacement, reason = entry.get("as"), entry.get("none")
            if name in ops and entry:
                problems.append(f"{name} is there under its own name")
            for what in re.findall(r"`([^`]+)`", replacement or ""):
                if what.removesuffix("()") not in (known_builders if what.endswith("()") else ops):
                    problems.append(f"{name}: there is no {what}")
            kind = "there" if name in ops else "as" if replacement else "none" if reason else "missing"
            counts[kind] += 1
            here = {"there": "yes", "as": replacement, "none": f"not needed: {reason}", "missing": "**missing**"}[kind]
            gradient = ""
            if name in with_gradient:
                gradient = "not needed" if kind == "none" else gradient_of(name, replacement, ops)
                num_gradients += gradient != "no"
            lines.append(f"| {name} | {here} | {gradient} |")
        lines.append("")
    total = sum(counts.values())
    head = [
        "# The ops of TensorFlow 0.8",
        "",
        f"TensorFlow 0.8 registers {total} ops and {len(with_gradient)} gradients. dflow has {counts['there']} of the ops under their own "
        f"names, and {counts['as']} under",
        f"another name or as a builder over other ops. {counts['none']} are not needed, and {counts['missing']} are missing. dflow has "
        f"{num_gradients} of the gradients.",
        "",
        "`tools/tensorflow_names.py` writes this page from the table of ops ([ops.md](ops.md)). TensorFlow has no gradient where the column is",
        "empty. The page [departures.md](departures.md) says where an op of the same name does something else.",
        "",
    ]
    return "\n".join(head + lines).rstrip() + "\n", counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    with open(os.path.join(ROOT, "tools", "tensorflow_0_8.json"), encoding="utf-8") as file:
        data = json.load(file)
    problems = []
    text, counts = page(data, op_table(), builders(), problems)
    path = os.path.join(ROOT, "docs", "tensorflow.md")
    if args.check:
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                problems.append("docs/tensorflow.md is not current: run tools/tensorflow_names.py")
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for problem in problems:
        print(problem)
    print("names: " + ", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
