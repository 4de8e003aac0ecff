#!/usr/bin/env python3
"""tools/check_layers.py names each include that leaves its floor, folder or door, each folder of the wrong size,
and each user of a header that is not public."""

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

    # Floors, doors and what exists.

    def test_a_file_that_includes_a_floor_above_its_own(self):
        high = {"include/dflow/net/transport/a.hpp": include("train/train.hpp"), "include/dflow/train/train.hpp": ""}
        train = {f"include/dflow/train/{name}": "" for name in ("a.hpp", "b.hpp", "c.hpp")}
        self.assert_one({**high, **train}, "include/dflow/net/transport/a.hpp:1: ",
                        "net/ (floor 11) must not include train/ (floor 14)")  # fmt: skip

    def test_a_folder_that_must_not_be_included_although_it_lies_below(self):
        files = {f"include/dflow/{floor}/{name}": "" for floor in ("train", "runtime") for name in ("b.hpp", "c.hpp", "d.hpp")}
        files |= {"include/dflow/train/a.hpp": include("runtime/step.hpp"), "include/dflow/runtime/step.hpp": ""}
        self.assert_one(files, "include/dflow/train/a.hpp:1: train/ must not include runtime/")

    def test_a_file_on_no_floor(self):
        files = {f"include/dflow/attic/{name}": "" for name in ("a.hpp", "b.hpp", "c.hpp", "d.hpp")}
        self.assertIn("include/dflow/attic/a.hpp:1: folder attic/ is no floor", self.problems(files)[0])

    def test_a_library_that_is_included_beside_its_door(self):
        self.assert_one({"include/dflow/net/client/d.ipp": "#include <asio.hpp>\n"},
                        "include/dflow/net/client/d.ipp:1: asio.hpp may be included by ")  # fmt: skip
        self.assertEqual(self.problems({"include/dflow/net/transport/sockets/d.ipp": "#include <asio.hpp>\n"}), [])

    def test_a_type_of_devices_that_is_included_beside_its_door(self):
        cuda = {f"include/dflow/kernels/cuda/{name}": "" for name in ("a.hpp", "b.hpp", "c.hpp", "cuda.hpp")}
        self.assert_one({**cuda, "include/dflow/net/client/d.ipp": include("kernels/cuda/cuda.hpp")},
                        "dflow/kernels/cuda/cuda.hpp may be included by ")  # fmt: skip

    def test_the_umbrella_inside(self):
        umbrella = {"include/dflow/dflow.hpp": ""}
        self.assert_one({**umbrella, "include/dflow/net/client/d.ipp": include("dflow.hpp")}, "dflow.hpp is never included inside")

    def test_an_include_in_quotes_and_one_of_nothing(self):
        self.assert_one({"include/dflow/net/client/d.ipp": '#include "dflow/net/client/a.hpp"\n'}, "must be written <dflow/...>")
        self.assert_one({"include/dflow/net/client/d.ipp": include("net/client/lost.hpp")}, "dflow/net/client/lost.hpp does not exist")

    def test_headers_that_include_each_other(self):
        self.assert_one({"include/dflow/net/client/a.hpp": include("net/client/b.hpp"),
                         "include/dflow/net/client/b.hpp": include("net/client/a.hpp")},
                        "include cycle dflow/net/client/a.hpp -> dflow/net/client/b.hpp -> dflow/net/client/a.hpp")  # fmt: skip

    def test_a_floor_that_spells_the_name_of_an_op(self):
        ops = {f"include/dflow/ops/math/{name}": "" for name in ("a.hpp", "b.hpp", "c.hpp")}
        ops["include/dflow/ops/math/neg.hpp"] = 'struct Neg : StandardOp<"Neg"> {};\n'
        passes = {f"include/dflow/passes/{name}": "" for name in ("a.hpp", "b.hpp", "c.hpp")}
        self.assert_one({**ops, **passes, "include/dflow/passes/d.ipp": 'bool is_neg(N n) { return n.op == "Neg"; }\n'},
                        "include/dflow/passes/d.ipp:1: knows op Neg by its name")  # fmt: skip

    def test_files_and_folders_that_are_too_large(self):
        self.assert_one({"include/dflow/net/client/a.hpp": "//\n" * 401}, "a.hpp:401: 401 lines, the limit is 400")
        self.assert_one({"include/dflow/net/client/d.ipp": "//\n" * 801}, "d.ipp:801: 801 lines, the limit is 800")
        many = {f"include/dflow/net/client/e{i}.hpp": "" for i in range(37)}
        self.assert_one(many, "include/dflow/net/client:1: 41 files, the limit is 40")

    # Folders inside a floor.

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

    def test_a_floor_with_folders_and_without_an_order(self):
        folder = {f"include/dflow/session/deep/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp", "d.ipp")}
        problems = self.problems(folder)
        self.assertEqual(len(problems), 4, problems)
        self.assertIn("include/dflow/session/deep/a.ipp:1: the folders of session/ have no order", problems[0])

    def test_files_that_stand_above_the_folders_beside_them(self):
        files = {f"include/dflow/passes/fusion/{name}": "" for name in ("a.hpp", "b.ipp", "c.ipp", "d.ipp")}
        files["include/dflow/passes/optimize.hpp"] = include("passes/fusion/a.hpp")
        files["include/dflow/passes/prune.hpp"] = ""
        self.assertEqual(self.problems(files), [])
        self.assert_one({**files, "include/dflow/passes/fusion/b.ipp": include("passes/optimize.hpp")},
                        "in passes/, fusion/ must not include optimize.*")
        self.assert_one({**files, "include/dflow/passes/prune.hpp": include("passes/fusion/a.hpp")},
                        "in passes/, its own files must not include fusion/")

    def test_a_header_that_stands_below_its_body(self):
        files = {f"include/dflow/runtime/plan/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp", "plan.hpp")}
        files["include/dflow/runtime/call_kernel.hpp"] = ""
        files["include/dflow/runtime/call_kernel.ipp"] = include("runtime/plan/plan.hpp")
        files["include/dflow/runtime/plan/a.ipp"] = include("runtime/call_kernel.hpp")
        self.assertEqual(self.problems(files), [])
        self.assert_one({**files, "include/dflow/runtime/call_kernel.hpp": include("runtime/plan/plan.hpp")},
                        "in runtime/, call_kernel.hpp must not include plan/")

    def test_folders_of_one_set_know_each_other(self):
        files = {f"include/dflow/ops/{folder}/{name}": "" for folder in ("array", "reduction", "math") for name in ("a.ipp", "b.ipp", "c.ipp")}
        files |= {"include/dflow/ops/array/d.ipp": include("ops/reduction/d.ipp"), "include/dflow/ops/math/d.ipp": "",
                  "include/dflow/ops/reduction/d.ipp": include("ops/array/a.ipp")}
        self.assertEqual(self.problems(files), [])
        self.assert_one({**files, "include/dflow/ops/math/d.ipp": include("ops/array/a.ipp")}, "math/ must not include array/")

    def test_families_of_a_device_do_not_know_each_other(self):
        files = {f"include/dflow/kernels/cuda/{folder}/{name}": "" for folder in ("nn", "math") for name in ("a.ipp", "b.ipp", "c.ipp", "d.hpp")}
        self.assertEqual(self.problems(files), [])
        self.assert_one({**files, "include/dflow/kernels/cuda/nn/a.ipp": include("kernels/cuda/math/d.hpp")},
                        "in kernels/cuda/, nn/ must not include math/")

    def test_a_folder_with_too_few_files(self):
        self.assert_one({"include/dflow/net/inspect/a.hpp": ""}, "include/dflow/net/inspect:1: 1 files, a folder has 4")

    def test_files_of_folders_in_a_folder_count(self):
        deep = {f"include/dflow/train/input/deep/{name}": "" for name in ("a.ipp", "b.ipp", "c.ipp", "d.ipp")}
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
