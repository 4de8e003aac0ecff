#!/usr/bin/env python3
"""Measures what dflow costs a program that uses it, and prints the table of the README.

    compile       CPU time and memory to compile a hello file with <dflow/dflow.hpp>, -O0 and -O2
    library       bytes of libdflow.a
    binary        bytes of a stripped static program with a table of ten ops, and with all ops
    memory        peak resident memory of small models in training
    start         process start to the end of the first step
    build         time to build the library and all tests from nothing, without a compiler cache, on all cores
    cuda          the component for GPUs: a user's file that includes it, its bytes, a program that links it and its start

Usage: tools/measure_costs.py [--build DIR] [--compiler CXX] [--only ROW,ROW...] [--repeats N] [--write]
The library is taken from DIR (default build/release, made by `cmake --preset release && cmake --build --preset release`);
without it only `compile` is measured. `build` takes many minutes and is measured only where it is named.
Times are the best of N runs (default 3). --write puts the table between the marks `costs: begin` and `costs: end` of
README.md: rows that were measured replace those there, others stay.
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
  auto y = df::relu(df::matmul(x, df::constant(graph, df::Tensor<float>({2, 1}, {1, 2}))));
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
  auto w = df::constant(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4}));
  auto b = df::constant(graph, df::Tensor<float>({2}, {1, -1}));
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
using Images = df::Output<float>;
constexpr auto relu = df::Activation::relu;

[[maybe_unused]] Images tiny(const Images& x) { return df::dense(df::dense(x, 16, {.activation = relu}), 10); }

[[maybe_unused]] Images mlp(const Images& x) {
  return df::dense(df::dense(df::dense(x, 512, {.activation = relu}), 512, {.activation = relu}), 10);
}

Images conv(const Images& x, std::int64_t filters, std::int64_t window, std::int64_t stride) {
  return df::batch_normalization(df::conv2d(x, filters, window, {.use_bias = false, .stride = stride}));
}

[[maybe_unused]] Images resnet20(const Images& x) {
  auto y = df::relu(conv(x, 16, 3, 1));
  for (std::int64_t filters : {16, 32, 64}) {
    for (int block = 0; block < 3; ++block) {
      const std::int64_t stride = filters > 16 && block == 0 ? 2 : 1;
      auto z = conv(df::relu(conv(y, filters, 3, stride)), filters, 3, 1);
      y = df::relu(z + (stride == 2 ? conv(y, filters, 1, 2) : y));
    }
  }
  return df::dense(df::reduce_mean(y, {1, 2}), 10);
}

int main() {
  const df::Shape shape SHAPE;
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, shape);
  auto labels = df::placeholder<std::int32_t>(graph, {shape[0]});
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(MODEL(x), labels));
  auto train = df::train::GradientDescent(1e-3f).minimize(loss);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(x, labels), df::fetches(loss, train));
  const auto images = df::Tensor<float>::full(shape, 0.5f);
  const auto numbers = df::Tensor<std::int32_t>::full({shape[0]}, 1);
  float value = 0;
  for (int i = 0; i < STEPS; ++i) value = step(images, numbers).scalar();
  std::printf("%g\\n", static_cast<double>(value));
}
"""
MODELS = (
    ("tiny", "{8,16}", "tiny model 16-16-10", "20 / 8 MB"),
    ("mlp", "{128,784}", "MLP 784-512-512-10, batch 128", "40 / 20 MB"),
    ("resnet20", "{64,32,32,3}", "ResNet-20, batch 64", "250 / 180 MB"),
)


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

    def row(self, what, value, goal):
        """`goal`: what a release holds and what is aimed at."""
        self.rows.append((what, value, goal))
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

    def compile_hello(self, what, flags, goal, repeats):
        command = [self.compiler, "-std=c++20", *flags, f"-I{ROOT}/include", "-I/usr/include/eigen3", "-c",
                   self.source("hello", HELLO), "-o", self.folder / "hello.o"]
        _, seconds, memory = best(command, repeats)
        self.row(what, f"{seconds:.2f} s of CPU time, {megabytes(memory)}", goal)

    def compile(self):
        for level in ("-O0", "-O2"):
            self.compile_hello(f"compile a hello file with `<dflow/dflow.hpp>`, {level}", [level], "3 / 1.5 s", self.repeats)

        # As target_precompile_headers of CMake has it with g++; clang would be told of the file by -include-pch.
        precompiled = self.folder / "precompiled" / "dflow"
        precompiled.mkdir(parents=True, exist_ok=True)
        run([self.compiler, "-std=c++20", "-O2", f"-I{ROOT}/include", "-x", "c++-header", ROOT / "include/dflow/dflow.hpp",
             "-o", precompiled / "dflow.hpp.gch"])
        self.compile_hello("compile a hello file with `<dflow/dflow.hpp>` precompiled, -O2", ["-O2", f"-I{precompiled.parent}"], "", self.repeats)

    def library(self):
        archive = self.build / "libdflow.a"
        stripped = self.folder / "libdflow.a"
        shutil.copy(archive, stripped)
        run(["strip", "--strip-debug", stripped])
        self.row("library, all ops, without debug information", megabytes(stripped.stat().st_size), "")

    def binary(self):
        for name, flags, goal in (("a table of 10 ops", ["-DFEW_OPS"], "3 / 1 MB"), ("all ops", [], "10 / 8 MB")):
            target = self.program("few" if flags else "all", TABLE, flags)
            run(["strip", target])
            self.row(f"stripped program, library linked statically with `-Wl,--gc-sections`, {name}", megabytes(target.stat().st_size), goal)

    def training(self, model, shape, steps):
        return self.program(model, TRAINING, [f"-DMODEL={model}", f"-DSHAPE={shape}", f"-DSTEPS={steps}"])

    def memory(self):
        for model, shape, name, goal in MODELS:
            _, _, memory = best([self.training(model, shape, 50)], self.repeats)
            self.row(f"peak resident memory in training, {name}", megabytes(memory), goal)

    def start(self):
        target = self.training("tiny", "{8,16}", 1)
        seconds, _, _ = best([target], max(self.repeats, 10))
        self.row("process start to the end of the first training step, tiny model", f"{seconds * 1e3:.1f} ms", "20 / 5 ms")

    def cuda(self):
        """Without nvcc, which a program that links the component needs not."""
        include = "<dflow/dflow.hpp>\n#include <dflow/runtime/cuda/cuda_device.hpp>"
        seconds = []
        for name, text in (("hello", HELLO), ("hello_gpu", HELLO.replace("<dflow/dflow.hpp>", include))):
            command = [self.compiler, "-std=c++20", "-O0", f"-I{ROOT}/include", "-c", self.source(name, text), "-o",
                       self.folder / f"{name}.o"]
            seconds.append(best(command, self.repeats)[1])
        self.row("compile it with `<dflow/runtime/cuda/cuda_device.hpp>` too, -O0",
                 f"{seconds[1] / seconds[0]:.2f} times as long as without", "")
        archive, stripped = self.build / "libdflow_cuda.a", self.folder / "libdflow_cuda.a"
        shutil.copy(archive, stripped)
        run(["strip", "--strip-debug", stripped])
        cache = (self.build / "CMakeCache.txt").read_text()
        nvcc = next(line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_CUDA_COMPILER:"))
        architectures = next((line.split("=", 1)[1] for line in cache.splitlines()
                              if line.startswith("CMAKE_CUDA_ARCHITECTURES:")), "75, 80, 86, 89, 90, 100")
        self.row(f"component `cuda`, without debug information, machine code for {architectures}",
                 megabytes(stripped.stat().st_size), "")
        toolkit = Path(nvcc).resolve().parent.parent
        main = TRAINING.replace("<dflow/dflow.hpp>", "<dflow/dflow.hpp>\n#include <dflow/runtime/cuda/cuda_device.hpp>")
        main = main.replace("int main() {", """int main() {
  try {
    std::printf("%zu GPUs\\n", df::cuda_devices().size());
  } catch (const df::Error& error) {
    std::printf("%s\\n", error.what());
  }""")
        target = self.folder / "tiny_gpu"
        libraries = [] if "DFLOW_WITH_CUDNN:STRING=OFF" in cache else [
            Path(line.split("=", 1)[1]) for line in cache.splitlines() if line.startswith("CuDNN_LIBRARY:") and "NOTFOUND" not in line]
        cudnn = [word for library in libraries for word in (library, f"-Wl,-rpath,{library.parent}")]
        run([self.compiler, "-std=c++20", "-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections", f"-I{ROOT}/include",
             "-DMODEL=tiny", "-DSHAPE={8,16}", "-DSTEPS=1", self.source("tiny_gpu", main), "-o", target, archive,
             self.build / "libdflow.a", "-Wl,--gc-sections", "-static-libstdc++", "-static-libgcc", f"-L{toolkit}/lib64",
             f"-Wl,-rpath,{toolkit}/lib64", "-lcudart", "-lcublas", "-lcublasLt", "-lcufft", "-lcusolver", *cudnn,
             *link_flags(self.build)])
        run(["strip", target])
        self.row("stripped program with the component, all ops, CUDA's libraries shared", megabytes(target.stat().st_size), "")
        with_gpu, _, memory = best([target], max(self.repeats, 10))
        without, _, memory_without = best([self.training("tiny", "{8,16}", 1)], max(self.repeats, 10))
        self.row("the same on a machine without a GPU: process start to the end of the first training step",
                 f"{with_gpu * 1e3:.1f} ms, {megabytes(memory)}; without the component {without * 1e3:.1f} ms, "
                 f"{megabytes(memory_without)}", "")

    def build_all(self):
        environment = {**os.environ, "CCACHE_DISABLE": "1"}
        start = time.perf_counter()
        run(["cmake", "-S", ROOT, "-B", self.folder / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
             "-DCMAKE_CXX_FLAGS_DEBUG=-g1", "-DDFLOW_UNITY_SOURCES=8"], env=environment)  # as the preset dev has it
        run(["cmake", "--build", self.folder / "build"], env=environment)
        minutes = (time.perf_counter() - start) / 60
        self.row(f"build of the library and all tests, {os.cpu_count()} cores", f"{minutes:.1f} min", "15 / 8 min")


def processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


HEAD = "| what | cost | must / aim |\n|---|---|---|\n"


def table(costs, old):
    """The rows measured now, and those of the page that were not."""
    version = run([costs.compiler, "-dumpfullversion", "-dumpversion"]).stdout.strip()
    lines = {}
    for line in old.splitlines():
        if line.startswith("| ") and not HEAD.startswith(line):
            lines[line.split(" | ")[0]] = line
    for what, value, goal in costs.rows:
        lines[f"| {what}"] = f"| {what} | {value} | {goal} |"
    return (HEAD + "\n".join(lines.values()) +
            f"\n\nMeasured with {Path(costs.compiler).name} {version} on {processor()}, {os.cpu_count()} cores; times are the best "
            f"of at least {costs.repeats} runs.")


BEGIN, END = "<!-- costs: begin -->\n", "<!-- costs: end -->"
PAGE = ROOT / "README.md"


def old_table():
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def write(text):
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(head + BEGIN + text + "\n" + END + rest.split(END)[1], encoding="utf-8")


def main():
    rows = {"compile": Costs.compile, "library": Costs.library, "binary": Costs.binary,
            "memory": Costs.memory, "start": Costs.start, "cuda": Costs.cuda, "build": Costs.build_all}
    without_library = ("compile", "build")
    parser = argparse.ArgumentParser(description="Measures what dflow costs a program that uses it.")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=[row for row in rows if row != "build"])
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
            needed = options.build / ("libdflow_cuda.a" if name == "cuda" else "libdflow.a")
            if name not in without_library and not needed.is_file():
                print(f"{name}: left out, there is no {needed}", file=sys.stderr)
                continue
            rows[name](costs)
        text = table(costs, old_table() if options.write else "")
    print(text)
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
