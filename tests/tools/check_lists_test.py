#!/usr/bin/env python3
"""tools/check_lists.py names each omission in a small library that has it, and none in one that is whole."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools/check_lists.py"

LIBRARY = {
    "include/dflow/ops/standard_ops.hpp": "#include <dflow/ops/math/list.hpp>\nusing StandardOps = concat_t<MathOps>;\n",
    "include/dflow/ops/math/list.hpp":
        "#include <dflow/ops/math/unary.hpp>\nusing ShiftOps = TypeList<Shift>;\n"
        "using MathOps = concat_t<UnaryOps, ShiftOps>;\n",
    "include/dflow/ops/math/unary.hpp":
        'struct Neg : StandardElementwiseOp<"Neg", FloatTypes> {};\n'
        'struct Shift final : public StandardOp<"Shift", FloatTypes> {};\n'
        'struct Sum\n    : Reduction<"Sum", FloatTypes> {};\n'
        "using UnaryOps = TypeList<Neg, Sum>;\n",
    "include/dflow/ops/math/unary.ipp": "",
    "include/dflow/src/units/ops/math.hpp": "#include <dflow/ops/math/unary.ipp>\n",
}  # fmt: skip


class CheckLists(unittest.TestCase):
    def omissions(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**LIBRARY, **changes}.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        *faults, summary = run.stdout.splitlines()
        self.assertEqual(run.returncode, 1 if faults else 0, run.stderr)
        self.assertTrue(summary.startswith("lists: "), summary)
        return faults

    def assert_one(self, changes, text):
        faults = self.omissions(changes)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(text, faults[0])

    def unary(self, more):
        return {"include/dflow/ops/math/unary.hpp": LIBRARY["include/dflow/ops/math/unary.hpp"] + more}

    def test_a_whole_library_has_none(self):
        self.assertEqual(self.omissions({}), [])

    def test_an_op_in_no_list(self):
        for spelling in ("struct Lost : ", "struct Lost final : ", "struct Lost : public ",
                         "struct Lost final : public dflow::", "class Lost : public "):
            self.assert_one(self.unary(f'{spelling}StandardElementwiseOp<"Lost", FloatTypes> {{}};\n'), "op Lost is in no list")

    def test_an_op_that_only_a_comment_lists(self):
        self.assert_one(self.unary('struct Lost : StandardOp<"Lost"> {};\n// using LostOps = TypeList<Lost>;\n'), "op Lost")

    def test_a_list_that_leads_to_no_table(self):
        self.assert_one(self.unary('struct Softshrink : StandardElementwiseOp<"Softshrink", FloatTypes> {};\n'
                                   "using ShrinkOps = TypeList<Softshrink>;\n"), "list ShrinkOps leads to no table")  # fmt: skip

    def test_a_family_that_standard_ops_leaves_out(self):
        self.assert_one({"include/dflow/ops/audio/list.hpp": "using AudioOps = TypeList<>;\n"}, "standard_ops.hpp")

    def test_a_family_without_a_list(self):
        self.assert_one({"include/dflow/ops/audio/mel.hpp": 'struct Mel : StandardOp<"Mel", FloatTypes> {};\n'},
                        "include/dflow/ops/audio/list.hpp: is missing")  # fmt: skip

    def test_bodies_and_headers_that_are_not_included(self):
        faults = self.omissions({"include/dflow/ops/math/more.ipp": ""})
        self.assertIn("src/units/ops/math.hpp: does not include dflow/ops/math/more.ipp", faults[0])
        self.assert_one({"include/dflow/ops/math/more.hpp": 'struct Neg : StandardOp<"Neg"> {};\n'},
                        "list.hpp: does not include dflow/ops/math/more.hpp")  # fmt: skip

    def test_a_body_in_no_unit_or_in_two(self):
        self.assert_one({"include/dflow/core/shape.ipp": ""}, "include/dflow/core/shape.ipp: is in no unit")
        body = "#include <dflow/core/shape.ipp>\n"
        self.assertEqual([], self.omissions({"include/dflow/core/shape.ipp": "", "include/dflow/src/units/core/a.hpp": body}))
        self.assert_one({"include/dflow/core/shape.ipp": "", "include/dflow/src/units/core/a.hpp": body,
                         "include/dflow/src/units/core/b.hpp": body}, "shape.ipp: is compiled twice")
        self.assertEqual([], self.omissions({"include/dflow/core/shape.ipp": body, "include/dflow/core/part.ipp": "",
                                             "include/dflow/src/units/core/a.hpp": body + "#include <dflow/core/part.ipp>\n"}))

    def test_an_op_that_passes_put_in_is_in_no_list(self):
        self.assertEqual([], self.omissions({"include/dflow/ops/internal/chain.hpp": 'struct Chain : StandardOp<"_Chain"> {};\n'}))

    def test_a_kernel_outside_of_its_ops_family(self):
        for device, spelling in (("cpu", "struct Kernel<Neg, Cpu, T>"), ("cuda", "struct Kernel<Neg, Cuda>"),
                                 ("cuda", "class Kernel<Neg, Cuda, float>")):
            kernel = f"template <class T>\n{spelling} {{}};\n"
            lists = {f"include/dflow/kernels/cpu/{family}/list.hpp": f"#include <dflow/kernels/cpu/{family}/neg.hpp>\n"
                     for family in ("math", "nn")} if device == "cpu" else {}
            table = "".join(f"#include <dflow/kernels/cuda/{family}/neg.hpp>\n" for family in ("math", "nn"))
            lists |= {"include/dflow/kernels/cuda/all.hpp": table, "src/kernels/cuda/device/cuda.cpp": ""}
            self.assertEqual([], self.omissions({**lists, f"include/dflow/kernels/{device}/math/neg.hpp": kernel}))
            self.assert_one({**lists, f"include/dflow/kernels/{device}/nn/neg.hpp": kernel},
                            f"include/dflow/kernels/{device}/nn/neg.hpp: has the kernel of Neg, an op of family math: "
                            f"it belongs in kernels/{device}/math/")

    def test_a_kernel_of_all_elementwise_ops_lies_in_no_family(self):
        kernel = "template <ElementwiseOpType O, class T>\nstruct Kernel<O, Cuda, T> {};\n"
        self.assertEqual([], self.omissions({
            "include/dflow/kernels/cuda/elementwise/kernel.hpp": kernel,
            "include/dflow/kernels/cuda/all.hpp": "#include <dflow/kernels/cuda/elementwise/kernel.hpp>\n"}))

    def test_kernels_and_bodies_of_a_gpu_that_are_not_included(self):
        header = {"include/dflow/kernels/cuda/math/neg.hpp": "template <>\nstruct Kernel<Neg, Cuda> {};\n"}
        self.assert_one(header, "cuda/all.hpp: does not include dflow/kernels/cuda/math/neg.hpp, so its kernels are in no table")
        self.assert_one({"include/dflow/kernels/cuda/math/neg.ipp": ""},
                        "cuda/device/cuda.cpp: does not include dflow/kernels/cuda/math/neg.ipp")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
