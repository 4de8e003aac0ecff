#!/usr/bin/env python3
"""A program of at most 40 lines runs in many processes by at most 10 lines more, and the model's lines are the same."""

import difflib
import unittest
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def program(name):
    return (EXAMPLES / name).read_text(encoding="utf-8").splitlines()


def model(lines):
    """From the first placeholder to the last line before an empty one."""
    begin = next(i for i, line in enumerate(lines) if "df::placeholder" in line)
    return lines[begin : lines.index("", begin)]


class ClusterForm(unittest.TestCase):
    def setUp(self):
        self.alone, self.cluster = program("09_digits_alone.cpp"), program("10_digits_cluster.cpp")

    def test_one_process_takes_forty_lines(self):
        self.assertLessEqual(len(self.alone), 40)

    def test_many_processes_take_ten_more(self):
        added = [line for line in difflib.ndiff(self.alone, self.cluster) if line.startswith("+ ")]
        self.assertLessEqual(len(added), 10, "\n".join(added))
        self.assertLessEqual(len(self.cluster) - len(self.alone), 10)

    def test_the_model_is_the_same(self):
        self.assertEqual(model(self.alone), model(self.cluster))
        self.assertGreaterEqual(len(model(self.alone)), 6)


if __name__ == "__main__":
    unittest.main()
