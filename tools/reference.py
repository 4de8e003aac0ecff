#!/usr/bin/env python3
"""Builds the reference of the public headers with Doxygen, and counts what Doxygen finds wrong in their comments.

Usage: tools/reference.py      (then open build/reference/index.html)

The reference has the headers of include/dflow/public_headers.txt, but for the bodies in src/, and all headers that they include.
Names in a namespace `detail` are left out. Doxygen reads copies of the headers: a header's first comment, "Public: ...", and
the paragraphs `//` that stand by themselves become the text of the header's page, and a function that
follows another one without an empty line has the comment of that one; and a function that a snippet, an example or a test calls
gets the call as its example.

Prints a line per comment that is wrong (a command, name or tag that Doxygen cannot resolve) and "count: ...". Exits 1 if a
comment is wrong or Doxygen fails.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import public_headers

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
# Lines that show how a function is called, the best first.
USES = ["docs/snippets/*.cpp", "docs/snippets/tutorial/*", "examples/*.cpp", "tests/train/*.cpp", "tests/ops/**/*.cpp", "tests/data/*.cpp"]
NO_EXAMPLE = re.compile(r"^(return|for|if|while|//|\}|[A-Z_]+\()|code_of|require\(|CHECK|throw|std::exp|static_assert")
# What Doxygen 1.9 says of templates that it does not understand.
KNOWN = re.compile(r"Internal inconsistency: scope for class std::|Detected potential recursive class relation")
# A function outside of classes, as clang-format lays it out.
FUNCTION = re.compile(r"^(?:\[\[nodiscard\]\] )?(?:inline |constexpr )*(?:const )?[A-Za-z_][\w:<>,&* ]* [&*]?(\w+)\(")


def headers():
    """The paths below include/ of the public headers and of all that they include, sorted."""
    listed, problems = public_headers.read_list(ROOT / public_headers.LIST)
    texts, rest = {}, [f"dflow/{name}" for name in listed if not name.startswith("src")]
    while rest:
        name = rest.pop()
        if name in texts:
            continue
        text = (INCLUDE / name).read_text()
        if "#pragma message" in text:  # has moved
            continue
        texts[name] = text
        rest += re.findall(r"^#include <(dflow/[^>]+\.hpp)>", text, re.MULTILINE)
    return dict(sorted(texts.items()))


def uses():
    """{function: (path, line)}: a statement that calls it, if possible one whose first call it is."""
    first, inner = {}, {}
    for pattern in USES:
        for path in sorted(ROOT.glob(pattern)):
            for line in path.read_text().splitlines():
                line = re.sub(r";\s*//.*", ";", line.strip())
                if not line.endswith(";") or line.count("(") != line.count(")") or line.count("{") != line.count("}"):
                    continue
                if NO_EXAMPLE.search(line):
                    continue
                names = re.findall(r"(?<![\w.>])(?:df::)?(?:\w+::)*(\w+)(?:<[^()]*?>)?\(", line)
                for place, name in enumerate(names):
                    (inner if place > 0 else first).setdefault(name, (path.relative_to(ROOT).as_posix(), line))
    return inner | first


def declaration_at(lines, i):
    """The lines of the declaration at namespace scope that begins in line i, as clang-format lays it out; [] if none does."""
    if not re.match(r"[A-Za-z\[]", lines[i]) or lines[i].startswith(("namespace ", "#", "using ")):
        return []
    depth = 0
    for end in range(i, len(lines)):
        depth += lines[end].count("{") - lines[end].count("}")
        if depth == 0 and lines[end].endswith((";", "}")):
            return lines[i : end + 1]
    return []


def implied_comment(declaration, text):
    """What a class without a comment is by its name or its base: options of a function or class, or an op."""
    for line in declaration:
        options = re.match(r"struct (\w+)Options ", line)
        if options:
            name = options[1]
            function = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            calls = re.findall(rf"(?<![\w.])([a-z]\w*)\([^;{{}}]*\b{name}Options\b", text)
            users = [name] * bool(re.search(rf"^(class|struct) (\[\[\w+\]\] )*{name}\b", text, re.MULTILINE)) or [one for one in calls if one == function]
            users = users or [one for one in calls if not re.match(r"any_|make|\w+_recipe$|ln$|known$", one)]
            return [f"/// Options of `{users[0]}`."] if users else []
        op = re.match(r'struct \w+ (?:final )?: (?:public )?\w+<(?:\w+, )?"(\w+)"', line)
        if op:
            return [f"/// The op `{op[1]}`. The page `docs/ops.md` has its element types and kernels."]
    return []


def for_doxygen(text, examples):
    """The text as Doxygen wants it, and for each of its lines the number of the line of the header."""
    out, numbers = [], []
    lines = text.split("\n")

    def put(added, number):
        out.extend(added)
        numbers.extend([number] * len(added))

    # The comment that a function without one has from the function or the paragraph before it.
    shared, comment = [], []
    is_detail, end_of_declaration = False, 0
    for i, line in enumerate(lines):
        is_detail = (is_detail or line == "namespace detail {") and line != "}  // namespace detail"
        if i == 1 and line == "":
            line = "/// \\file"  # or the header has no page
        # Where a paragraph begins that belongs to the file.
        if lines[i] == "":
            if i == 0 or not lines[i - 1].startswith("//"):
                shared = []
            end = i + 1
            while end < len(lines) and lines[end].startswith("//"):
                end += 1
            paragraph = lines[i + 1 : end]
            is_plain = paragraph and all(re.match(r"//( |$)", one) for one in paragraph) and end < len(lines) and lines[end] == ""
            if is_plain or (paragraph and paragraph[0].startswith("/// Public: ")):
                line = "/// \\file"
                for j in range(i + 1, end):
                    lines[j] = lines[j].replace("/// Public: ", "/// ") if lines[j].startswith("///") else "/" + lines[j]
                shared = lines[i + 1 : end] if is_plain else []
                comment = []
        elif line.startswith("///") and i >= end_of_declaration:
            comment = comment + [line] if lines[i - 1].startswith("///") else [line]
        declaration = declaration_at(lines, i) if i >= end_of_declaration and not is_detail else []
        if declaration:
            end_of_declaration = i + len(declaration)
            call = next((match for match in map(FUNCTION.match, declaration) if match), None)
            own = comment if lines[i - 1].startswith("///") else []
            if not own:
                own = shared if call else implied_comment(declaration, text)
                put(own, i + 1)
            if call and call[1] in examples and own:
                path, code = examples[call[1]]
                put(["///", f"/// Example, from {path}:", "/// ```cpp", f"/// {code}", "/// ```"], i + 1)
            shared = own if call else []
        put([line], i + 1)
    return "\n".join(out), numbers


def main():
    output = ROOT / "build/reference"
    shutil.rmtree(output, ignore_errors=True)
    copies = output / "headers"
    examples, lines_of, with_example = uses(), {}, 0
    for name, text in headers().items():
        path = copies / name
        path.parent.mkdir(parents=True, exist_ok=True)
        adapted, lines_of[name] = for_doxygen(text, examples)
        with_example += adapted.count("/// Example, from ")
        path.write_text(adapted)
    warnings = output / "warnings.txt"
    folder = ROOT / "docs/reference"
    inputs = " ".join(f'"{copies / name}"' for name in lines_of)
    settings = (folder / "Doxyfile").read_text() + f"""
OUTPUT_DIRECTORY = "{output}"
STRIP_FROM_PATH = "{copies}"
STRIP_FROM_INC_PATH = "{copies}"
INCLUDE_PATH = "{copies}"
WARN_LOGFILE = "{warnings}"
INPUT = "{folder / 'pages.dox'}" {inputs}
"""
    result = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True)
    if result.returncode != 0 or re.search(r"\berror:", result.stderr):
        print(result.stdout + result.stderr)
        return 1

    members, undocumented, wrong = set(), set(), set()
    for line in warnings.read_text().splitlines():
        match = re.match(rf"{re.escape(str(copies))}/([^:]+):(\d+): (.*)", line)
        if not match:
            if re.match(r"(/|<|warning:|error:)", line) and not KNOWN.search(line):
                wrong.add(line)
            continue
        name, number, text = match[1], int(match[2]), match[3]
        original = lines_of[name][min(number, len(lines_of[name])) - 1]
        if text.endswith("is not documented."):
            # Once for a member of a template that many classes inherit.
            (members if re.search(r"\) of (class|struct|union) ", text) else undocumented).add((name, original))
        elif not KNOWN.search(text):
            wrong.add(f"include/{name}:{original}: {text}")
    for line in sorted(wrong):
        print(line)
    print(f"count: {len(lines_of)} headers, {with_example} examples, {len(wrong)} wrong comments; without a comment: "
          f"{len(undocumented)} functions, types and constants, {len(members)} members")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
