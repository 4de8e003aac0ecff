#!/usr/bin/env python3
"""Measures what dflow costs a program that uses it, and prints the table of the README.

    compile    CPU time and memory to compile a hello file with <dflow/dflow.hpp>, -O0 and -O2
    library    bytes of libdflow.a, and of its sections that are loaded
    binary     bytes of a stripped static program with a table of ten ops, and with all ops
    memory     peak resident memory of a tiny model and of an MLP in training
    start      process start to the end of the first step

Usage: tools/measure_costs.py [--build DIR] [--compiler CXX] [--only ROW,ROW...] [--repeats N] [--write]
The library is taken from DIR (default build/release, made by `cmake --preset release && cmake --build --preset release`);
without it only `compile` is measured. Times are the best of N runs (default 3). --write puts the table between the marks
`costs: begin` and `costs: end` of README.md; rows that were not measured are left out.
"""

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

HELLO = """
#include <dflow/dflow.hpp>
#include <cstdio>
namespace df = dflow;
int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto y = df::relu(df::matmul(x, df::constant<float>(graph, {{2, 1}, {1, 2}})));
  df::Session session(graph);
  std::printf("%g\\n", static_cast<double>(session.run({{x, df::Tensor<float>({1, 2}, {3, 4})}}, y).scalar()));
}
"""

# An inference-only table, and the same program with all ops.
TABLE = """
#include <dflow/dflow.hpp>
#include <cstdio>
namespace df = dflow;
int main() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto w = df::constant<float>(graph, {{2, 2}, {1, 2, 3, 4}});
  auto b = df::constant<float>(graph, {{2}, {1, -1}});
  auto y = df::softmax(df::relu(df::bias_add(df::matmul(x, w), b)));
#if defined(FEW_OPS)
  constexpr auto table = df::ops<df::Placeholder, df::Const, df::Identity, df::MatMul, df::BiasAdd, df::Add, df::Mul,
                                 df::Relu, df::Reshape, df::Softmax>;
  df::Session session(graph, {.ops = table});
#else
  df::Session session(graph);
#endif
  std::printf("%g\\n", static_cast<double>(session.run({{x, df::Tensor<float>({1, 2}, {3, 4})}}, y)(0, 0)));
}
"""

TRAINING = """
#include <dflow/dflow.hpp>
#include <cstdio>
namespace df = dflow;
int main() {
  constexpr std::int64_t batch = BATCH, inputs = INPUTS, hidden = HIDDEN, classes = 10;
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, inputs});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto logits = df::dense(df::dense(x, hidden, {.activation = df::Activation::relu}), classes);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(1e-3f).minimize(loss);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(x, labels), df::fetches(loss, train));
  const auto images = df::Tensor<float>::full({batch, inputs}, 0.5f);
  const auto numbers = df::Tensor<std::int32_t>::full({batch}, 1);
  float value = 0;
  for (int i = 0; i < STEPS; ++i) value = step(images, numbers).scalar();
  std::printf("%g\\n", static_cast<double>(value));
}
"""
TINY = {"BATCH": 8, "INPUTS": 16, "HIDDEN": 16}
MLP = {"BATCH": 128, "INPUTS": 784, "HIDDEN": 512}


def run(command, **options):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **options)


def timed(command):
    """(seconds, seconds of CPU time, peak resident bytes) of a command that must succeed."""
    start = time.perf_counter()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed ({process.returncode}):\n{errors.decode()[-2000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def best(command, repeats):
    runs = [timed(command) for _ in range(repeats)]
    return tuple(min(values) for values in zip(*runs))


def megabytes(count):
    return f"{count / 1e6:.1f} MB"


def link_flags(build):
    """What pkg-config would say, from the .pc file that the build made."""
    pc = build / "dflow.pc"
    flags = ["-pthread"]
    if pc.is_file():
        for line in pc.read_text().splitlines():
            if line.startswith("Libs"):
                flags += [word for word in line.split() if word.startswith("-l") and word != "-ldflow"]
    return list(dict.fromkeys(flags))


class Costs:
    def __init__(self, options, folder):
        self.compiler = options.compiler
        self.build = options.build
        self.repeats = options.repeats
        self.folder = folder
        self.rows = []

    def row(self, what, value):
        self.rows.append((what, value))
        print(f"{what}: {value}", file=sys.stderr)

    def source(self, name, text):
        path = self.folder / f"{name}.cpp"
        path.write_text(text)
        return path

    def program(self, name, text, flags=()):
        """Compiles and links a program with the library, linked statically but for the system's own libraries."""
        source, target = self.source(name, text), self.folder / name
        command = [self.compiler, "-std=c++20", "-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections", f"-I{ROOT}/include"]
        run([*command, *flags, source, "-o", target, self.build / "libdflow.a", "-Wl,--gc-sections", "-static-libstdc++",
             "-static-libgcc", *link_flags(self.build)])
        return target

    def compile(self):
        source = self.source("hello", HELLO)
        for level in ("-O0", "-O2"):
            command = [self.compiler, "-std=c++20", level, f"-I{ROOT}/include", "-c", source, "-o", self.folder / "hello.o"]
            _, seconds, memory = best(command, self.repeats)
            self.row(f"compile a hello file with `<dflow/dflow.hpp>`, {level}", f"{seconds:.2f} s of CPU time, {megabytes(memory)}")

    def library(self):
        archive = self.build / "libdflow.a"
        stripped = self.folder / "libdflow.a"
        shutil.copy(archive, stripped)
        run(["strip", "--strip-debug", stripped])
        self.row("library, all ops, without debug information", megabytes(stripped.stat().st_size))

    def binary(self):
        for name, flags in (("a table of 10 ops", ["-DFEW_OPS"]), ("all ops", [])):
            target = self.program("few" if flags else "all", TABLE, flags)
            run(["strip", target])
            self.row(f"stripped program, library linked statically, {name}", megabytes(target.stat().st_size))

    def training(self, name, sizes, steps):
        return self.program(name, TRAINING, [f"-D{k}={v}" for k, v in {**sizes, "STEPS": steps}.items()])

    def memory(self):
        for name, sizes in (("tiny model", TINY), ("MLP 784-512-10, batch 128", MLP)):
            _, _, memory = best([self.training("memory", sizes, 50)], self.repeats)
            self.row(f"peak resident memory, {name} in training", megabytes(memory))

    def start(self):
        target = self.training("start", TINY, 1)
        seconds, _, _ = best([target], max(self.repeats, 10))
        self.row("process start to the end of the first training step, tiny model", f"{seconds * 1e3:.1f} ms")


def processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def table(costs):
    version = run([costs.compiler, "-dumpfullversion", "-dumpversion"]).stdout.strip()
    lines = ["| what | cost |", "|---|---|", *(f"| {what} | {value} |" for what, value in costs.rows), "",
             f"Measured with {Path(costs.compiler).name} {version} on {processor()}, {os.cpu_count()} threads; times are the best "
             f"of at least {costs.repeats} runs."]
    return "\n".join(lines)


def write(text):
    page = ROOT / "README.md"
    begin, end = "<!-- costs: begin -->\n", "<!-- costs: end -->"
    old = page.read_text(encoding="utf-8")
    head, rest = old.split(begin)
    page.write_text(head + begin + text + "\n" + end + rest.split(end)[1], encoding="utf-8")


def main():
    rows = ["compile", "library", "binary", "memory", "start"]
    parser = argparse.ArgumentParser(description="Measures what dflow costs a program that uses it.")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=rows)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    options = parser.parse_args()
    for name in options.only:
        if name not in rows:
            parser.error(f"no row {name}; there are {', '.join(rows)}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        costs = Costs(options, Path(folder))
        for name in options.only:
            if name != "compile" and not (options.build / "libdflow.a").is_file():
                print(f"{name}: left out, there is no {options.build / 'libdflow.a'}", file=sys.stderr)
                continue
            getattr(costs, name)()
        text = table(costs)
    print(text)
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
