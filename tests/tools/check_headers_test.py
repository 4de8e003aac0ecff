#!/usr/bin/env python3
"""tools/check_headers.py puts headers into one unit only where that hides nothing that one of them lacks."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from check_headers import Includes, precompiled, rows  # noqa: E402


class Rows(unittest.TestCase):
    def rows(self, texts):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                (Path(folder) / name).write_text("#pragma once\n\n" + text)
            names = sorted(name for name in texts if name.endswith(".hpp"))
            return sorted(rows(names, Includes(Path(folder))))

    def test_a_header_stands_behind_what_it_includes_first(self):
        texts = {"a.hpp": "int a();\n", "b.hpp": "/// b\n#include <a.hpp>\n#include <vector>\n\nint b();\n",
                 "c.hpp": "#include <b.hpp>\nint c();\n"}
        self.assertEqual(self.rows(texts), [["a.hpp", "b.hpp", "c.hpp"]])

    def test_through_a_header_that_is_not_asked_for(self):
        texts = {"a.hpp": "", "b.ipp": "#include <a.hpp>\n", "c.hpp": "#include <b.ipp>\n"}
        self.assertEqual(self.rows(texts), [["a.hpp", "c.hpp"]])

    def test_headers_that_include_none_of_each_other_are_apart(self):
        self.assertEqual(self.rows({"a.hpp": "", "b.hpp": "#include <vector>\n"}), [["a.hpp"], ["b.hpp"]])

    def test_what_is_included_after_a_line_of_its_own_does_not_count(self):
        self.assertEqual(self.rows({"a.hpp": "", "b.hpp": "int b(A);\n#include <a.hpp>\n"}), [["a.hpp"], ["b.hpp"]])
        self.assertEqual(self.rows({"a.hpp": "", "b.hpp": "#define B A\n#include <a.hpp>\n"}), [["a.hpp"], ["b.hpp"]])

    def test_what_is_included_in_some_builds_does_not_count(self):
        texts = {"a.hpp": "", "b.hpp": "#if defined(B)\n#include <a.hpp>\n#endif\nint b();\n"}
        self.assertEqual(self.rows(texts), [["a.hpp"], ["b.hpp"]])
        texts["b.hpp"] = "#if defined(B)\n#define C\n#endif\n#include <a.hpp>\n"
        self.assertEqual(self.rows(texts), [["a.hpp"], ["b.hpp"]])

    def test_bodies_that_include_each_other_keep_their_headers_apart(self):
        texts = {"a.hpp": "int a();\n#if defined(BODIES)\n#include <a.ipp>\n#endif\n", "a.ipp": "#include <b.hpp>\n",
                 "b.hpp": "#include <a.hpp>\nint b();\n"}
        self.assertEqual(self.rows(texts), [["a.hpp"], ["b.hpp"]])

    def behind(self, texts):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                (Path(folder) / name).write_text("#pragma once\n\n" + text)
            return precompiled(sorted(texts), Includes(Path(folder)))

    def test_many_headers_stand_behind_the_dearest_that_all_of_them_include_first(self):
        texts = {"a.hpp": "int a();\n", "b.hpp": "#include <a.hpp>\nint b();\n"}
        users = {f"user_{i}.hpp": "#include <b.hpp>\nint user();\n" for i in range(9)}
        lacking = {"lacking.hpp": "int lacks(B);\n#include <b.hpp>\n", "other.hpp": ""}
        behind = self.behind({**texts, **users, **lacking})
        self.assertEqual({behind[name] for name in users}, {"b.hpp"})
        self.assertEqual({behind[name] for name in ("a.hpp", *lacking)}, {None})

    def test_a_header_never_stands_behind_one_that_includes_it(self):
        users = {f"user_{i}.hpp": "#include <b.hpp>\nint user();\n" for i in range(9)}
        behind = self.behind({"b.hpp": "#include <c.hpp>\nint b();\n", "c.hpp": "#include <b.hpp>\nint c();\n", **users})
        self.assertIsNone(behind["c.hpp"])
        self.assertIsNone(behind["b.hpp"])


if __name__ == "__main__":
    unittest.main()
