#!/usr/bin/env python3
"""tools/check_layers.py says where folders of a floor know one another both ways, which folders are too small, and who includes
a header that is not public."""

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
    "include/dflow/public_headers.txt": "# A task of a cluster.\nnet/task.hpp\n",
    "include/dflow/net/task.hpp": "#pragma once\n\n/// Public: a task of a cluster.\n",
    "examples/01_task.cpp": "#include <dflow/net/task.hpp>\n",
    "docs/task.md": "A task is in `<dflow/net/task.hpp>`. Each part has a header, `<dflow/src/ops/FAMILY.hpp>`.\n",
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
        moved = {"include/dflow/public_headers.txt": "net/task.hpp\nnet/transport/old.hpp\nnet/gone/old.hpp\nbase/old.hpp\n",
                 "include/dflow/net/transport/old.hpp": include("net/task.hpp") + '#pragma message("it has moved")\n',
                 "include/dflow/net/gone/old.hpp": include("net/task.hpp") + '#pragma message("it has moved")\n',
                 "include/dflow/base/old.hpp": include("net/task.hpp") + '#pragma message("to a higher floor")\n'}
        self.assertEqual(self.problems(moved), [])
        self.assert_one({**moved, "include/dflow/net/client/d.ipp": include("net/gone/old.hpp")},
                        "include/dflow/net/client/d.ipp:1: dflow/net/gone/old.hpp has moved")

    def test_a_list_of_public_headers_that_is_missing_or_names_a_header_twice_or_none(self):
        self.assert_one({"include/dflow/public_headers.txt": "net/task.hpp\nnet/task.hpp\n"}, "public_headers.txt:2: net/task.hpp stands in line 1, too")
        self.assert_one({"include/dflow/public_headers.txt": "net/task.hpp\nnet/lost.hpp\n"}, "public_headers.txt:2: net/lost.hpp does not exist")

    def test_a_public_header_that_does_not_say_what_it_is_for(self):
        for text in ("#pragma once\n", "#pragma once\n\n/// Public:\n", "#pragma once\n\n#include <set>\n\n/// Public: a task.\n"):
            self.assert_one({"include/dflow/net/task.hpp": text}, "include/dflow/net/task.hpp:1: ", "says what it is for")

    def test_an_internal_header_that_says_it_is_public(self):
        self.assert_one({"include/dflow/net/client/a.hpp": "#pragma once\n\n/// Public: clients.\n"},
                        "include/dflow/net/client/a.hpp:1: ", "public_headers.txt does not name it")

    def test_a_program_that_includes_an_internal_header(self):
        for name in ("examples/01_task.cpp", "docs/snippets/task.cpp", "tests/consumers/way/main.cpp", "tests/support/proof_device.hpp"):
            self.assert_one({name: include("net/task.hpp") + include("net/client/a.hpp")},
                            f"{name}:2: <dflow/net/client/a.hpp> is no public header")
        self.assertEqual(self.problems({"tests/net/task_test.cpp": include("net/client/a.hpp")}), [])

    def test_a_program_that_names_something_in_detail(self):
        self.assert_one({"examples/01_task.cpp": "auto a = df::detail::task();  // or detail::b\n"}, "examples/01_task.cpp:1: ", "`detail`")

    def test_a_page_that_names_an_internal_header(self):
        self.assert_one({"README.md": "Include `<dflow/net/client/a.hpp>`.\n"}, "README.md:1: <dflow/net/client/a.hpp> is no public header")

    def test_a_moved_header_that_is_not_listed_or_forwards_to_an_internal_one(self):
        old = include("net/client/a.hpp") + '#pragma message("moved: include <dflow/net/client/a.hpp>")\n'
        self.assert_one({"include/dflow/net/old.hpp": include("net/task.hpp") + '#pragma message("moved")\n'},
                        "include/dflow/net/old.hpp:1: ", "public_headers.txt does not name it")
        self.assert_one({"include/dflow/net/old.hpp": old, "include/dflow/public_headers.txt": "net/task.hpp\nnet/old.hpp\n"},
                        "include/dflow/net/old.hpp:1: forwards to net/client/a.hpp")


if __name__ == "__main__":
    unittest.main()
