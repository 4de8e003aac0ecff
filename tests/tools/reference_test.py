#!/usr/bin/env python3
"""tools/reference.py: what Doxygen reads of a header, and where the examples of functions come from."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402

HEADER = """#pragma once

/// Public: sums.

#include <cstddef>

namespace dflow {

// All sums here are exact.

/// The sum of a and b.
template <class T>
T sum(T a, T b);
/// Another sum.
int other(int a);

namespace detail {
/// The sum of nobody.
int hidden(int a);
}  // namespace detail

}  // namespace dflow
"""


class Reference(unittest.TestCase):
    def test_first_comment_and_paragraphs_belong_to_the_file(self):
        text, numbers = reference.for_doxygen(HEADER, {})
        lines = text.split("\n")
        self.assertEqual(lines[1:3], ["/// \\file", "/// sums."])
        self.assertEqual(lines[7:9], ["/// \\file", "/// All sums here are exact."])
        self.assertEqual(numbers, list(range(1, len(lines) + 1)))

    def test_an_example_stands_behind_the_comment(self):
        text, numbers = reference.for_doxygen(HEADER, {"sum": ("a.cpp", "auto c = sum(a, b);"), "hidden": ("a.cpp", "hidden(1);")})
        block = "/// The sum of a and b.\n///\n/// Example, from a.cpp:\n/// ```cpp\n/// auto c = sum(a, b);\n/// ```\ntemplate <class T>\n"
        self.assertIn(block, text)
        self.assertEqual(text.count("Example"), 1)
        line = text.split("\n").index("int other(int a);")
        self.assertEqual(numbers[line], HEADER.split("\n").index("int other(int a);") + 1)

    def test_functions_without_an_empty_line_between_them_share_a_comment(self):
        header = "#pragma once\n\n// Sums of all kinds.\n\nint a(int x);\nint b(int x);\n\nint c(int x);\n/// Of d.\nint d(int x);\nint e(int x) {\n  return x;\n}\n"
        lines = reference.for_doxygen(header, {})[0].split("\n")
        before = {line: lines[i - 1] for i, line in enumerate(lines)}
        self.assertEqual(before["int a(int x);"], "/// Sums of all kinds.")
        self.assertEqual(before["int b(int x);"], "/// Sums of all kinds.")
        self.assertEqual(before["int c(int x);"], "")
        self.assertEqual(before["int e(int x) {"], "/// Of d.")

    def test_options_and_ops_say_what_they_belong_to(self):
        header = "#pragma once\n\nstruct DenseOptions {\n  int a;\n};\nOut dense(In x, const DenseOptions& options = {});\n\nstruct Abs : StandardOp<\"Abs\", T> {\n};\n"
        text = reference.for_doxygen(header, {})[0]
        self.assertIn("/// Options of `dense`.\nstruct DenseOptions {", text)
        self.assertIn("/// The op `Abs`.", text)

    def test_headers_are_the_public_ones_and_what_they_include(self):
        names = reference.headers()
        self.assertIn("dflow/session/session.hpp", names)
        self.assertIn("dflow/ops/nn/conv2d.hpp", names)
        self.assertNotIn("dflow/src.hpp", names)

    def test_builders_have_examples_of_the_pages(self):
        examples = reference.uses()
        self.assertTrue(examples["dense"][0].startswith("docs/snippets/"))
        self.assertGreater(len(set(examples) & {"matmul", "conv2d", "reduce_sum", "one_hot", "concat", "gradients"}), 5)


if __name__ == "__main__":
    unittest.main()
