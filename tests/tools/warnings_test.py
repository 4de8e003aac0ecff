#!/usr/bin/env python3
"""A program with ops of its own compiles without a warning, by each compiler that is installed."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
OLDEST = {"g++": 12, "clang++": 16, "clang++-16": 16}  # that dflow compiles with


def is_usable(compiler):
    if not shutil.which(compiler):
        return False
    version = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return int(version.split(".")[0]) >= OLDEST[compiler]


COMPILERS = [name for name in OLDEST if is_usable(name)]

# clang vectorises none of the loops of Swish, which call a function, though they ask for it.
OPS = """
#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/op/derivative.hpp>

namespace df = dflow;

struct Swish : df::ElementwiseOp<"Swish", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x / (T(1) + exp(-x));
  }
};
struct Gap : df::ElementwiseOp<"Gap", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return max(abs(a - b) - T(1), T(0));
  }
};

template <class O, class... Ts>
void use(df::TypeList<Ts...>) {
  (static_cast<void>(df::cpu::ElementwiseCodeOf<O, Ts>::get(df::CpuLevel::baseline)), ...);
  (static_cast<void>(df::cpu::ElementwiseCodeOf<df::Derivative<O, 0>, Ts>::get(df::CpuLevel::baseline)), ...);
}
int main() {
  use<Swish>(df::FloatTypes{});
  use<Gap>(df::FloatTypes{});
}
"""


class Warnings(unittest.TestCase):
    def compile(self, compiler, text, *flags):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "program.cpp")
            source.write_text(text)
            command = [compiler, "-std=c++20", *WARNINGS, *flags, "-c", source, "-o", Path(folder, "program.o")]
            run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""), f"{compiler} {flags}")

    def test_loops_of_own_ops(self):
        for compiler in COMPILERS:
            for level in ("-O2", "-O3"):
                for folder in (f"-I{INCLUDE}", f"-isystem{INCLUDE}"):
                    with self.subTest(compiler=compiler, level=level, folder=folder):
                        self.compile(compiler, OPS, level, folder)

    def test_all_headers(self):
        for compiler in COMPILERS:
            with self.subTest(compiler=compiler):
                self.compile(compiler, "#include <dflow/dflow.hpp>\n", "-fsyntax-only", f"-I{INCLUDE}")


if __name__ == "__main__":
    unittest.main()
