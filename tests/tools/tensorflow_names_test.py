#!/usr/bin/env python3
"""tools/tensorflow_names.py says what became of a name, and finds entries that name what is not there."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import tensorflow_names  # noqa: E402

OPS = {"Add": "yes", "Switch": "no", "Shape": "stops"}


class NamesTest(unittest.TestCase):
    def page(self, names, gradients=()):
        problems = []
        data = {"families": {"math": names}, "gradients": list(gradients)}
        text, counts = tensorflow_names.page(data, OPS, {"cross"}, problems)
        return text, counts, problems

    def test_each_name_has_one_fate(self):
        names = {"Add": {}, "Plus": {"as": "`Add`"}, "Cross": {"as": "`cross()`"}, "Ref": {"none": "no need"}, "Lost": {}}
        text, counts, problems = self.page(names, ["Add", "Plus", "Cross", "Ref", "Lost"])
        self.assertEqual(problems, [])
        self.assertEqual(counts, {"there": 1, "as": 2, "none": 1, "missing": 1})
        rows = ("| Add | yes | yes |", "| Plus | `Add` | yes |", "| Cross | `cross()` | yes |")
        rows += ("| Ref | not needed: no need | not needed |", "| Lost | **missing** | no |")
        for row in rows:
            self.assertIn(row, text)
        self.assertIn("dflow has 4 of the gradients", text)

    def test_raw_control_flow_is_differentiated_as_a_whole(self):
        text, _, _ = self.page({"RefSwitch": {"as": "`Switch`"}, "Shape": {}}, ["RefSwitch"])
        self.assertIn("| RefSwitch | `Switch` | of whole loops and branches |", text)
        self.assertIn("| Shape | yes |  |", text)

    def test_entries_that_name_what_is_not_there_are_problems(self):
        _, _, problems = self.page({"A": {"as": "`Gone`"}, "B": {"as": "`gone()`"}, "Add": {"as": "`Shape`"}})
        self.assertEqual(len(problems), 3)


if __name__ == "__main__":
    unittest.main()
