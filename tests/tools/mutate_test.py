#!/usr/bin/env python3
"""tools/mutate.py knows what a slip is, leaves out what does not compile, and prints what a test does not notice."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/mutate.py"
sys.path.insert(0, str(SCRIPT.parent))
import mutate  # noqa: E402

CLAMP = """#pragma once

#include <type_traits>

/// The nearest number of [low, high].
inline int clamp(int x, int low, int high) {
  static_assert(1 + 1 == 2);
  const int none = std::integral_constant<int, 1 - 1>::value;
  if (x < low) return low;
  if (x > high) return high;
  return x;
}
"""
TEST = """#include <demo/clamp.hpp>

int main() { return clamp(3, 0, 9) == 3 && clamp(-5, 0, 9) == 0 && clamp(10, 0, 9) == 9 ? 0 : 1; }
"""


class Mutate(unittest.TestCase):
    def slips(self, *lines):
        """The slips of the last line: what is shown, and what stands in the line's place."""
        text = "\n".join(lines)
        return {slip.shown: mutate.with_slips(text, [(7, slip)]).split("\n")[-1].replace("::dflow_slip(7)", "SLIP")
                for slip in mutate.slips_of("f", text) if slip.line == len(lines)}

    def test_an_operator_changes_in_its_expression(self):
        self.assertEqual(self.slips("const bool is_in = a.size() < b[c, d] && e;"),
                         {"a.size() < b[c, d] -> a.size() <= b[c, d]":
                          "const bool is_in = (SLIP ? (a.size() <= b[c, d]) : (a.size() < b[c, d])) && e;"})
        self.assertEqual(self.slips("f(g(x - y));"), {"x - y -> x + y": "f(g((SLIP ? (x + y) : (x - y))));"})
        self.assertEqual(self.slips("return -x == y;"),
                         {"-x == y -> -x != y": "return (SLIP ? (-x != y) : (-x == y));",
                          "-x == y -> x == y": "return (SLIP ? (x == y) : (-x == y));"})
        self.assertEqual(self.slips("const bool is_not = !is;"),
                         {"!is -> !!is": "const bool is_not = (SLIP ? (!!is) : (!is));"})

    def test_an_expression_of_several_lines_is_left_alone(self):
        self.assertEqual(self.slips("const int x = a", "              + b - c;"), {})
        self.assertEqual(self.slips("g(a,", "  b - c);"), {"b - c -> b + c": "  (SLIP ? (b + c) : (b - c)));"})
        self.assertEqual(mutate.slips_of("f", "x = a - b\n    * c;"), [])

    def test_numbers_counts_and_sums(self):
        self.assertEqual(self.slips("x = 16 * y;"), {"16 * y -> 17 * y": "x = (SLIP ? (17) : (16)) * y;"})
        self.assertEqual(self.slips("++count_;"), {"++count_ -> --count_": "(SLIP ? (--count_) : (++count_));"})
        self.assertEqual(self.slips("a += b;"), {"a += b -> a -= b": "(SLIP ? (a -= b) : (a += b));"})

    def test_arguments_change_places_where_they_are_expressions(self):
        self.assertEqual(self.slips("f(a, b->c());"),
                         {"a, b->c() -> b->c(), a": "f((SLIP ? (b->c()) : (a)), (SLIP ? (a) : (b->c())));"})
        for line in ("void f(int a, const T& b);", "f(a, a);", "f([] { g(); }, a);", 'f("text", a);'):
            self.assertEqual(self.slips(line), {})

    def test_checks_and_cancellations_are_dropped(self):
        self.assertIn("  if ( !SLIP && (a)) return b;", self.slips("  if (a) return b;").values())
        self.assertIn("if (x y = f(); !SLIP && (!y.ok())) return y;", self.slips("if (x y = f(); !y.ok()) return y;").values())
        self.assertEqual(self.slips("if (a) {", "  b();"), {})
        self.assertEqual(len(mutate.slips_of("f", "if (a) {\n  return;")), 1)
        self.assertEqual(self.slips("if (const auto* a = b()) return *a;"), {})
        self.assertEqual(self.slips("  clock->cancel(timer);"),
                         {"dropped: clock->cancel(timer);": "  { if (!SLIP) clock->cancel(timer); }"})

    def test_comments_literals_and_declarations_have_no_slips(self):
        for line in ("/// a < b", "#if A + B", "template <int n = 1>", 'f("a < b");', "x = 'a';  // -1", "case 3:", "constexpr int x = 1;",
                     "x = 1'000;", "x = 0.5f;"):
            self.assertEqual(self.slips(line), {})

    def test_lines_keep_their_numbers(self):
        slip = mutate.slips_of("f", "one\nx = a + b;")[0]
        self.assertEqual(mutate.with_slips("one\nx = a + b;", [(3, slip)]).split("\n", 2)[1], "#line 1")
        self.assertEqual(mutate.blamed("/tree/f:2:5: error: no\n/tree/g:3: note", [slip]), [slip])
        self.assertEqual(mutate.blamed("/tree/f:1:5: error: no", [slip]), [])

    @unittest.skipUnless(shutil.which("git") and shutil.which("c++"), "needs git and a compiler")
    def test_what_a_test_does_not_notice_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            for name, text in {"include/demo/clamp.hpp": CLAMP, "test.cpp": TEST, "include/dflow/.keep": "",
                               "tools/mutate.py": SCRIPT.read_text()}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            git = ["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@example.org"]
            for command in (["init", "--quiet"], ["add", "--force", "."], ["commit", "--quiet", "-m", "All"]):
                subprocess.run([*git, *command], check=True)
            ran = subprocess.run([sys.executable, root / "tools/mutate.py", "--tree", Path(folder) / "tree",
                                  "--build", "c++ -std=c++20 -Iinclude -o test test.cpp", "--test", "./test",
                                  "include/demo/clamp.hpp"], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
            *survivors, last = ran.stdout.splitlines()
            self.assertIn("of 2 slips were noticed", last)  # lines 9 and 10
            for line in survivors:  # at the limits themselves both sides are right
                self.assertRegex(line, r"^include/demo/clamp.hpp:(9|10): slip \d: x [<>] \w+ -> x [<>]= \w+$")
            self.assertEqual((root / "include/demo/clamp.hpp").read_text(), CLAMP)


if __name__ == "__main__":
    unittest.main()
