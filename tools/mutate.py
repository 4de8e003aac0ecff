#!/usr/bin/env python3
r"""Makes slips in sources, one at a time, and prints the slips that a test command does not notice.

Usage: tools/mutate.py --build COMMAND --test COMMAND [--seed N] [--count N] [--limit SECONDS] [--tree FOLDER] FILE...

    tools/mutate.py --count 40 include/dflow/net/protocol \
        --build 'cmake --preset dev -DDFLOW_TEST_FLOORS=net && cmake --build build/dev --target dflow_test_net -- -k 0' \
        --test 'build/dev/tests/dflow_test_net'

A slip is a small mistake in one line: `<` for `<=`, `==` for `!=`, `+` for `-`, a number that is one too large, a lost sign, a
`!` too many, neighbouring arguments in each other's place, a check that does not return, a cancellation that is not made. Slips
are chosen by the seed, one a line. All of them are compiled into one program. The variable DFLOW_SLIP says which slip a run
makes: `a < b` becomes `(::dflow_slip(17) ? (a <= b) : (a < b))`. A slip that does not compile is left out.

The work is done in --tree (build/mutants), a worktree of the last commit, in which both commands run; files are named as in
the repository, and a folder stands for its .ipp files. The test must pass without a slip. A run that fails, or takes longer
than --limit, has noticed. The tree keeps the slips: `DFLOW_SLIP=17 COMMAND` there makes one again.

Exits 1 if a slip was not noticed, and 2 if the slips could not be tried.
"""

import argparse
import dataclasses
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HEADER = "include/dflow/slip.hpp"
HEADER_TEXT = """#pragma once
#include <cstdlib>
inline bool dflow_slip(int number) {
  static const int chosen = [] {
    const char* const text = std::getenv("DFLOW_SLIP");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number == chosen;
}
"""
# Each file's lines keep their numbers.
PREFIX = "#include <dflow/slip.hpp>\n#line 1\n"
COMPILE = "c++ -std=c++20 -w -fsyntax-only -Iinclude -I. -isystem /usr/include/eigen3 -x c++"

# Comments and literals, which are blanked. Numbers come first, for the quotes in 16'384.
LITERAL = re.compile(
    r"""\b\d[\w'.]*|//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\n]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
NO_CODE = re.compile(r"\s*(#|template\b|using\b|case\b|default:|static_assert\b|enum\b|namespace\b|friend\b)|.*\b(constexpr|"
                     r"consteval|requires|concept|operator|alignas)\b")
COMPARISON = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
BINARY = re.compile(r"(?<=\S) (<|<=|>|>=|==|!=|\+|-) (?=\S)")
NEGATION = re.compile(r"(?:(?<=[=,?:] )|(?<=return )|(?<=\())-(?=[A-Za-z_(])")
NOT = re.compile(r"(?<![\w)\]])!(?=[\w(])")
NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")
COUNT = re.compile(r"\s*(\+\+|--)([\w.>\[\]-]+);$")
SUM = re.compile(r"\s*([\w.>\[\]*-]+) (\+=|-=) (.+);$")
CALL = re.compile(r"(?<=\w)\(")
DECLARED = re.compile(r"\w[>&*]*\s+\w|[{\[=]|^\s*$")
LEAVES = re.compile(r"(return|continue|break|throw|throw_error|co_return)\b")
CANCELLATION = re.compile(
    r"\s*(?:[\w:\[\]]+(?:\(\))?(?:\.|->))*\w*(?:cancel|deregister|abort|close|clear|reset|erase|release|stop|give_up|disarm|"
    r"forget|drop)\w*\(.*\);$")


@dataclasses.dataclass(frozen=True)
class Slip:
    """Replaces columns [begin, end) of a line, counted from 1, by `text`, in which SLIP stands for whether it is made."""

    file: str
    line: int
    begin: int
    end: int
    text: str
    shown: str


def blanked(text):
    """The text with comments, strings and characters blanked, in the same places."""

    def blank(match):
        found = match.group()
        if found[0].isdigit():
            return found
        return re.sub(r"[^\n]", " ", found) if found[0] == "/" else '"' + re.sub(r"[^\n]", "x", found[1:-1]) + '"'

    return LITERAL.sub(blank, text)


def is_delimiter(line, k):
    c, before, after = line[k], line[k - 1 : k], line[k + 1 : k + 2]
    if c == ":":
        return ":" not in (before, after)
    if c == "=":
        return after != "=" and (before not in tuple("=!<>"))
    return c in ",;?" or (c in "&|" and c in (before, after))


def scan(line, at, step):
    """The first place from `at` on that ends the expression there, or None at the end of the line."""
    inner, outer = (")]}", "([{") if step < 0 else ("([{", ")]}")
    depth = 0
    while 0 <= at < len(line):
        if line[at] in inner:
            depth += 1
        elif line[at] in outer:
            if depth == 0:
                return at
            depth -= 1
        elif depth == 0 and is_delimiter(line, at):
            return at
        at += step
    return None


def expression(lines, i, at):
    """The columns of the expression around a place in line i, if it is on this line alone."""
    line = lines[i]
    begin, end = scan(line, at - 1, -1), scan(line, at, 1)
    before = next((text.rstrip() for text in reversed(lines[:i]) if text.strip()), ";")
    if end is None or (begin is None and not re.search(r"([({\[,;?:}=]|&&|\|\||return)$", before)):
        return None
    begin = 0 if begin is None else begin + 1
    begin += re.match(r"\s*(?:(?:return|co_return|else)\s+)?", line[begin:end]).end()
    return begin, begin + len(line[begin:end].rstrip())


def closing(line, at):
    """The place of the bracket that closes the one before `at`, or None."""
    while at is not None and (at := scan(line, at, 1)) is not None and line[at] not in ")]}":
        at += 1
    return at


def slips_of(file, text):
    """All slips of a file."""
    real, lines = text.split("\n"), blanked(text).split("\n")
    found = []

    def add(i, begin, end, new, shown):
        found.append(Slip(file, i + 1, begin, end, new, shown))

    def choose(i, span, begin, end, new, around=None):
        """The expression in a span with columns [begin, end) replaced; shown with what is around it."""
        if span is not None:
            old, mutant = both(i, span, begin, end, new)
            add(i, *span, f"(SLIP ? ({mutant}) : ({old}))", " -> ".join(both(i, around or span, begin, end, new)))

    def both(i, span, begin, end, new):
        line = real[i]
        return line[span[0] : span[1]], line[span[0] : begin] + new + line[end : span[1]]

    for i, line in enumerate(lines):
        if NO_CODE.match(line):
            continue
        for match in BINARY.finditer(line):
            sign = match[1]
            new = COMPARISON.get(sign) or ("-" if sign == "+" else "+")
            choose(i, expression(lines, i, match.start(1)), *match.span(1), new)
        for match in NEGATION.finditer(line):
            choose(i, expression(lines, i, match.start()), *match.span(), "")
        for match in NOT.finditer(line):
            choose(i, expression(lines, i, match.start()), *match.span(), "!!")
        for match in NUMBER.finditer(line):
            around = expression(lines, i, match.start())
            choose(i, match.span(), *match.span(), str(int(match[0]) + 1), around)
        if match := COUNT.match(line):
            choose(i, (match.start(1), match.end(2)), *match.span(1), "--" if match[1] == "++" else "++")
        if match := SUM.match(line):
            choose(i, (match.start(1), match.end(3)), *match.span(2), "-=" if match[2] == "+=" else "+=")
        for match in CALL.finditer(line):
            begins, at = [match.end()], match.end()
            while (at := scan(line, at, 1)) is not None and line[at] == ",":
                at += 1
                begins.append(at)
            if at is None or line[at] != ")":
                continue
            begins.append(at + 1)
            arguments = [(b, e - 1) for b, e in zip(begins, begins[1:])]
            for (b1, e1), (b2, e2) in zip(arguments, arguments[1:]):
                one, two = real[i][b1:e1].strip(), real[i][b2:e2].strip()
                if one != two and '"' not in one + two and not DECLARED.search(one) and not DECLARED.search(two):
                    add(i, b1, e2, f"(SLIP ? ({two}) : ({one})), (SLIP ? ({one}) : ({two}))", f"{one}, {two} -> {two}, {one}")
        if match := re.match(r"\s*(?:\} else )?if \(", line):
            begin, end = match.end(), closing(line, match.end())
            rest = line[end + 1 :].strip() if end is not None else "none"
            leaves = LEAVES.match(lines[i + 1].strip()) if rest in ("", "{") and i + 1 < len(lines) else rest.endswith(";")
            condition = line[begin:end]
            begin += condition.rfind(";") + 1
            if leaves and not re.search(r"[^=!<>]=[^=]", line[begin:end]):
                old = real[i][begin:end].strip()
                add(i, begin, end, f" !SLIP && ({old})", f"dropped: {real[i].strip()}")
        if CANCELLATION.match(line):
            old = real[i].strip()
            add(i, len(line) - len(line.lstrip()), len(line), f"{{ if (!SLIP) {old} }}", f"dropped: {old}")
    return found


def with_slips(text, numbered):
    """The text of a file with slips of different lines: pairs of a number and a slip."""
    lines = text.split("\n")
    for number, slip in numbered:
        line = lines[slip.line - 1]
        made = slip.text.replace("SLIP", f"::dflow_slip({number})")
        lines[slip.line - 1] = line[: slip.begin] + made + line[slip.end :]
    return PREFIX + "\n".join(lines) if numbered else text


def run(command, folder, limit=None, **variables):
    """The exit status and the output of a command; a status of -1 when it took too long."""
    with subprocess.Popen(["bash", "-c", command], cwd=folder, env={**os.environ, **variables}, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            output = process.communicate(timeout=limit)[0]
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return -1, ""


def blamed(output, slips):
    """The slips that a compiler complains about: in lines with errors, else in any line that it names."""
    for pattern in (r"^(\S+?):(\d+):\d+: (?:fatal )?error", r"(\S+?):(\d+):\d+:"):
        named = {(os.path.normpath(file), int(line)) for file, line in re.findall(pattern, output, re.MULTILINE)}
        bad = [slip for slip in slips
               if any(line == slip.line and f"/{file}".endswith(f"/{slip.file}") for file, line in named)]
        if bad:
            return bad
    return []


def fail(text):
    print(f"mutate: {text}", file=sys.stderr)
    sys.exit(2)


class Tree:
    """A worktree with slips in it."""

    def __init__(self, root, folder, files):
        self.folder = folder
        if folder.exists() and not (folder / HEADER).exists():
            fail(f"{folder} is there, and is no tree of slips")
        if not folder.exists():
            subprocess.run(["git", "-C", root, "worktree", "prune"], check=True)
            subprocess.run(["git", "-C", root, "worktree", "add", "--quiet", "--force", "--detach", folder], check=True)
        revision = subprocess.check_output(["git", "-C", root, "rev-parse", "HEAD"], text=True).strip()
        (folder / HEADER).write_text(HEADER_TEXT)
        subprocess.run(["git", "-C", folder, "checkout", "--quiet", "--force", "--detach", revision], check=True)
        names = []
        for file in files:
            below = sorted((folder / file).rglob("*.ipp")) if (folder / file).is_dir() else [folder / file]
            names += [str(path.relative_to(folder)) for path in below]
        self.texts = {name: (folder / name).read_text() for name in names}

    def write(self, numbered):
        """Puts exactly these slips in; files that do not change keep their times."""
        for name, text in self.texts.items():
            new = with_slips(text, [(number, slip) for number, slip in numbered if slip.file == name])
            if (self.folder / name).read_text() != new:
                (self.folder / name).write_text(new)

    def compiling(self, name, slips):
        """Those of a file's slips with which it compiles. Precondition: it does without any."""
        path = self.folder / name
        try:
            while slips:
                path.write_text(with_slips(self.texts[name], [(0, slip) for slip in slips]))
                status, output = run(f"{COMPILE} {shlex.quote(name)}", self.folder)
                if status == 0:
                    break
                if bad := blamed(output, slips):
                    slips = [slip for slip in slips if slip not in bad]
                elif len(slips) == 1:
                    slips = []
                else:
                    half = len(slips) // 2
                    first, second = self.compiling(name, slips[:half]), self.compiling(name, slips[half:])
                    slips = first if len(first) + len(second) == len(slips) else first + second
        finally:
            path.write_text(self.texts[name])
        return slips

    def choose(self, seed, count):
        """At most so many slips, one a line. The files compile with them, as far as they do without an include before them."""
        everything = [slip for name, text in self.texts.items() for slip in slips_of(name, text)]
        random.Random(seed).shuffle(everything)
        candidates = {}
        for slip in everything:
            candidates.setdefault((slip.file, slip.line), slip)
        waiting, chosen = list(candidates.values()), []
        alone = {name for name in self.texts if run(f"{COMPILE} {shlex.quote(name)}", self.folder)[0] == 0}
        while waiting and len(chosen) < count:
            more, waiting = waiting[: count - len(chosen)], waiting[count - len(chosen) :]
            for name in self.texts:
                ours = [slip for slip in more if slip.file == name]
                chosen += self.compiling(name, ours) if ours and name in alone else ours
        return list(enumerate(chosen, 1))

    def build(self, command, numbered):
        """Builds with as many of the slips as compile, and returns them."""
        while numbered:
            self.write(numbered)
            status, output = run(command, self.folder)
            if status == 0:
                return numbered
            bad = blamed(output, [slip for _, slip in numbered])
            if not bad:
                fail(f"the build fails:\n{output[-4000:]}")
            numbered = [(number, slip) for number, slip in numbered if slip not in bad]
        return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--build", required=True, help="builds the tests; runs in the tree")
    parser.add_argument("--test", required=True, help="fails if it notices a slip; runs in the tree")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50, help="slips to try")
    parser.add_argument("--limit", type=float, help="seconds for a test; otherwise 10, and three times those of a run without slip")
    parser.add_argument("--tree", type=Path, help="where the copy is; otherwise build/mutants")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    tree = Tree(root, (options.tree or root / "build/mutants").resolve(), options.files)
    numbered = tree.build(options.build, tree.choose(options.seed, options.count))
    if not numbered:
        fail("there is no slip to try")
    began = time.monotonic()
    status, output = run(options.test, tree.folder, DFLOW_SLIP="0")
    if status != 0:
        fail(f"the test fails without a slip:\n{output[-4000:]}")
    limit = options.limit or 10 + 3 * (time.monotonic() - began)
    survivors = 0
    for number, slip in numbered:
        if run(options.test, tree.folder, limit, DFLOW_SLIP=str(number))[0] == 0:
            survivors += 1
            print(f"{slip.file}:{slip.line}: slip {number}: {slip.shown}", flush=True)
    print(f"{len(numbered) - survivors} of {len(numbered)} slips were noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
