#!/usr/bin/env python3
"""The page of all ops says of each its builder, and the devices with a kernel. DFLOW_OP_TABLE names the program."""

import os
import subprocess
import unittest
from pathlib import Path

PROGRAM = os.environ.get("DFLOW_OP_TABLE", "dflow_op_table")
INCLUDE = Path(__file__).resolve().parents[3] / "include"


class OpTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        page = subprocess.run([PROGRAM, INCLUDE], capture_output=True, text=True, check=True).stdout
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
        cls.titles, cls.rows = cells[0], {row[0]: dict(zip(cells[0], row)) for row in cells[1:]}

    def test_titles(self):
        self.assertEqual(self.titles, ["op", "builder", "element types", "attributes", "gradient", "CPU", "CUDA"])
        self.assertGreater(len(self.rows), 300)

    def test_builders(self):
        for op, builder in {
            "MatMul": "`matmul`, math/matmul.hpp",
            "OneHot": "`one_hot`, array/one_hot.hpp",
            "Max": "`reduce_max`, reduction/reduce.hpp",
            "StringJoin": "`string_join`, strings/string_join.hpp",
            "ReadFile": "`read_file`, io/files.hpp",
            "SelfAdjointEigV2": "`self_adjoint_eig`, `self_adjoint_eigenvalues`, linalg/decompose.hpp",
            "FFT2D": "`fft2d`, linalg/fourier.hpp",
            "TanhGrad": "math/unary_gradients.hpp",
            "FIFOQueue": "data_flow/queue.hpp",
        }.items():
            self.assertEqual(self.rows[op]["builder"], builder)

    def test_every_op_of_the_library_has_a_header(self):
        # The others are derived from elementwise ops: "ErfGradient0".
        without = [op for op, row in self.rows.items() if not row["builder"] and "Gradient" not in op]
        self.assertEqual(without, [])

    def test_devices(self):
        kernels = {op: (row["CPU"], row["CUDA"]) for op, row in self.rows.items()}
        self.assertEqual(kernels["Placeholder"], ("any", "any"))
        self.assertEqual(kernels["StringJoin"], ("yes", ""))
        self.assertEqual(kernels["ReadFile"], ("yes", ""))
        self.assertEqual(kernels["Relu"], ("yes", "yes"))
        self.assertEqual(kernels["MatMul"], ("yes", "yes"))
        self.assertEqual(kernels["_FusedMatMul"][1], "float")
        self.assertEqual([op for op, (cpu, _) in kernels.items() if not cpu], [])


if __name__ == "__main__":
    unittest.main()
