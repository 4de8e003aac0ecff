#!/usr/bin/env python3
"""tools/check_layers.py says where folders of a floor know one another both ways, and which folders are too small."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools/check_layers.py"

# Folders of net/ in their order: a transport knows no protocol.
LIBRARY = {
    **{f"include/dflow/net/{folder}/{name}": "#pragma once\n"
       for folder in ("transport", "transport/sockets", "protocol", "client", "simulation")
       for name in ("a.hpp", "b.hpp", "c.hpp", "d.ipp")},
    "include/dflow/net/server.hpp": "#include <dflow/net/protocol/a.hpp>\n#include <dflow/net/transport/sockets/a.hpp>\n",
    "include/dflow/net/protocol/d.ipp": "#include <dflow/net/protocol/c.hpp>\n#include <dflow/net/transport/a.hpp>\n",
}  # fmt: skip


def include(name):
    return f"#include <dflow/{name}>\n"


class CheckLayers(unittest.TestCase):
    def problems(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**LIBRARY, **changes}.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        *problems, summary = run.stdout.splitlines()
        self.assertEqual(run.returncode, 1 if problems else 0, run.stderr)
        self.assertTrue(summary.startswith("layers: "), summary)
        return problems

    def assert_one(self, changes, *texts):
        problems = self.problems(changes)
        self.assertEqual(len(problems), 1, problems)
        for text in texts:
            self.assertIn(text, problems[0])

    def test_a_library_in_order_has_none(self):
        self.assertEqual(self.problems({}), [])

    def test_a_header_that_includes_a_folder_above_its_own(self):
        self.assert_one({"include/dflow/net/transport/a.hpp": include("net/protocol/b.hpp")},
                        "include/dflow/net/transport/a.hpp:1: ", "transport/ must not include protocol/")

    def test_a_body_that_includes_a_folder_above_its_own(self):
        self.assert_one({"include/dflow/net/protocol/d.ipp": include("net/protocol/a.hpp") + include("net/client/a.hpp")},
                        "include/dflow/net/protocol/d.ipp:2: ", "protocol/ must not include client/")

    def test_a_folder_that_includes_the_folder_in_it(self):
        self.assert_one({"include/dflow/net/transport/d.ipp": include("net/transport/sockets/a.hpp")},
                        "transport/ must not include transport/sockets/")

    def test_a_folder_that_includes_the_files_of_its_floor_above_it(self):
        self.assert_one({"include/dflow/net/protocol/d.ipp": include("net/server.hpp")}, "protocol/ must not include its own files")

    def test_two_folders_of_one_place_that_know_each_other(self):
        self.assert_one({"include/dflow/net/client/d.ipp": include("net/simulation/a.hpp")}, "client/ must not include simulation/")

    def test_a_folder_that_has_no_place(self):
        folder = {f"include/dflow/net/lost/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp")}
        problems = self.problems({**folder, "include/dflow/net/lost/d.ipp": include("net/server.hpp")})
        self.assertEqual(len(problems), 4, problems)
        self.assertIn("include/dflow/net/lost/a.ipp:1: its folder has no place", problems[0])

    def test_a_folder_without_a_place_of_its_own_stands_where_the_folder_around_it_does(self):
        folder = {f"include/dflow/net/protocol/parts/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp")}
        self.assertEqual(self.problems({**folder, "include/dflow/net/protocol/parts/d.ipp": include("net/transport/a.hpp")}), [])
        self.assert_one({**folder, "include/dflow/net/protocol/parts/d.ipp": include("net/client/a.hpp")},
                        "protocol/ must not include client/")

    def test_a_floor_without_an_order_is_left_alone(self):
        folder = {f"include/dflow/train/{folder}/{name}": "" for folder in ("one", "two") for name in ("a.ipp", "b.ipp", "c.ipp")}
        self.assertEqual(self.problems({**folder, "include/dflow/train/one/d.ipp": include("train/two/d.ipp"),
                                        "include/dflow/train/two/d.ipp": include("train/one/a.ipp")}), [])

    def test_a_folder_with_too_few_files(self):
        self.assert_one({"include/dflow/net/inspect/a.hpp": ""}, "include/dflow/net/inspect:1: 1 files, a folder has 4")

    def test_files_of_folders_in_a_folder_count(self):
        deep = {f"include/dflow/train/deep/er/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp", "d.ipp")}
        self.assertEqual(self.problems(deep), [])

    def test_an_exception_that_is_none_any_more(self):
        grown = {f"include/dflow/interop/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp")}
        self.assertEqual(self.problems(grown), [])
        self.assert_one({**grown, "include/dflow/interop/d.ipp": ""}, "include/dflow/interop:1: ", "SMALL_FOLDERS still names it")

    def test_a_forwarding_header_stands_anywhere_and_nothing_includes_it(self):
        moved = {"include/dflow/net/transport/old.hpp": include("net/client/a.hpp") + '#pragma message("it has moved")\n',
                 "include/dflow/net/gone/old.hpp": include("net/client/a.hpp") + '#pragma message("it has moved")\n',
                 "include/dflow/base/old.hpp": include("net/client/a.hpp") + '#pragma message("to a higher floor")\n'}
        self.assertEqual(self.problems(moved), [])
        self.assert_one({**moved, "include/dflow/net/client/d.ipp": include("net/gone/old.hpp")},
                        "include/dflow/net/client/d.ipp:1: dflow/net/gone/old.hpp has moved")


if __name__ == "__main__":
    unittest.main()
