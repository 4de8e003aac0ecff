"""The list of public headers, include/dflow/public_headers.txt, and who keeps to it.

- each line of the list names one header below include/dflow/, which exists; lines that begin with # are titles;
- a header on the list says what it is for in its first comment line, behind `#pragma once`: "/// Public: ..."; no other header
  says that;
- a header that has moved is on the list, and forwards to one that is on it;
- USERS, which are written as a user of the library writes, include no other header of dflow and name nothing in `detail`;
- pages name no other header in <dflow/...>.
tools/check_layers.py calls `check`.
"""

import re

LIST = "include/dflow/public_headers.txt"
# Patterns of files below the root.
USERS = ["examples/**/*.[ch]pp", "docs/snippets/**/*.[ch]pp", "tests/consumers/**/*.[ch]pp", "conan/**/*.cpp", "tests/support/proof_*.hpp"]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/*.md", "examples/*.md"]
PURPOSE = re.compile(r"\A#pragma once\n\n/// Public: \S")
SAYS_PUBLIC = re.compile(r"^/// Public: ", re.MULTILINE)
NAMED = re.compile(r"<dflow/([a-z0-9_/]+\.hpp)>")
DETAIL = re.compile(r"\bdetail::")


def read_list(path):
    """{header: line number} and the messages about lines that stand twice."""
    headers, problems = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if name in headers:
            problems.append(f"{LIST}:{number}: {name} stands in line {headers[name]}, too")
        headers.setdefault(name, number)
    return headers, problems


def check_headers(root, headers):
    """One message per line of the list without a header that says so, and per header that says so and is not on it."""
    include = root / "include/dflow"
    problems = []
    for name, number in headers.items():
        path = include / name
        text = path.read_text(errors="replace") if path.is_file() else None
        if text is None:
            problems.append(f"{LIST}:{number}: {name} does not exist")
        elif "#pragma message" in text:
            problems += [f"include/dflow/{name}:1: forwards to {target}, which is not in {LIST}"
                         for target in NAMED.findall(re.sub(r"(?m)^\s*(//|#pragma).*$", "", text)) if target not in headers]
        elif not PURPOSE.match(text):
            problems.append(f'include/dflow/{name}:1: a public header begins with "#pragma once", a blank line and '
                            '"/// Public: ...", which says what it is for')
    for path in sorted(include.rglob("*.hpp")):
        name = path.relative_to(include).as_posix()
        text = path.read_text(errors="replace")
        if name not in headers and (SAYS_PUBLIC.search(text) or "#pragma message" in text):
            problems.append(f"include/dflow/{name}:1: says that it is public or has moved, and {LIST} does not name it")
    return problems


def lines_of(root, patterns):
    """Yields (file:line, text) of the files that match."""
    for path in sorted({path for pattern in patterns for path in root.glob(pattern)}):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            yield f"{path.relative_to(root)}:{number}", line


def check(root):
    """The messages about the list and about those who must keep to it."""
    path = root / LIST
    if not path.is_file():
        return [f"{LIST}:1: does not exist"]
    headers, problems = read_list(path)
    problems += check_headers(root, headers)
    for where, line in lines_of(root, USERS + PAGES):
        problems += [f"{where}: <dflow/{name}> is no public header: {LIST}" for name in NAMED.findall(line) if name not in headers]
    for where, line in lines_of(root, USERS):
        if DETAIL.search(line.split("//")[0]):
            problems.append(f"{where}: names something in `detail`, which is internal")
    return problems
