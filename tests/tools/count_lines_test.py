#!/usr/bin/env python3
"""tools/count_lines.py counts code and nothing else, and docs/gallery.md says what it counts."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/count_lines.py"

CPP = """// A comment.
#include <cstdio>

#include "own.hpp"

namespace df = dflow;
using Row = int;

namespace {
/* of
   two lines */
const char* const url = "https://example.org /* not a comment */";  // a comment behind code
constexpr int many = 1'000;
}  // namespace

int main() {
  std::puts(
      url
  );
}
"""
HEADER = "#pragma once\n\nint f();\n"
PYTHON = '''"""A docstring
of two lines."""

import sys
from pathlib import (
    Path,
)

# A comment.
TEXT = """two
lines # that count"""


def f():
    """A docstring."""
    return [
        Path(TEXT),  # a comment behind code
    ]
'''
PAGE = "| example | result | dflow | Keras | PyTorch |\n|---|---|---|---|---|\n| [a](../examples/01_a.cpp) | good | 6 | 5 | |\n"


class CountLines(unittest.TestCase):
    def run_on(self, *arguments, page=PAGE):
        with tempfile.TemporaryDirectory() as root:
            files = {"examples/01_a.cpp": CPP, "examples/own.hpp": HEADER, "examples/beside/keras/01_a.py": PYTHON,
                     "docs/gallery.md": page}  # fmt: skip
            for name, text in files.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, SCRIPT, *arguments, root], capture_output=True, text=True)
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout, (Path(root) / "docs/gallery.md").read_text()

    def test_code_counts_and_nothing_else(self):
        # url, many, main, puts, its argument, and f of the header; TEXT twice, def, return, Path.
        self.assertEqual(self.run_on()[1].splitlines()[2:], ["| 01_a | 6 | 5 |  |"])

    def test_a_page_that_is_right_passes(self):
        self.assertEqual(self.run_on("--check")[:2], (0, "lines: 1 examples, 0 problems\n"))

    def test_a_figure_that_differs_is_named_and_put_right(self):
        wrong = PAGE.replace("| 6 |", "| 7 |")
        status, output, _ = self.run_on("--check", page=wrong)
        self.assertEqual(status, 1)
        self.assertIn("docs/gallery.md:3: 01_a has 6 | 5 | ;", output)
        status, _, written = self.run_on("--write", page=wrong)
        self.assertEqual(status, 0)
        self.assertEqual(self.run_on("--check", page=written)[0], 0)
        self.assertIn("| good | 6 | 5 |", written)

    def test_rows_that_are_missing_or_of_nothing_are_named(self):
        status, output, _ = self.run_on("--check", page=PAGE.replace("01_a", "02_b"))
        self.assertEqual(status, 1)
        self.assertIn("there is no examples/02_b.cpp", output)
        self.assertIn("has no row of 01_a", output)

    def test_the_gallery_says_what_is_counted(self):
        run = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
