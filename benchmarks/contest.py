#!/usr/bin/env python3
"""Measures dflow beside other libraries, in turn, each in a process of its own, and prints the ratios.

usage: benchmarks/contest.py dispatch|training|input|kernels|ops|gpu|cluster [--threads N] [--rows REGEX] [--pairs N] [--turn MS]
         [--build DIR] [--tensorflow PYTHON] [--jax PYTHON] [--torch PYTHON]

DIR is a build with -DDFLOW_BENCHMARKS=ON (default build/release). PYTHON is an interpreter that can import the library,
such as that of a virtual environment; a peer whose interpreter is not given, or lacks the library, sits out. Debian's oneTBB
(libtbb-dev) takes part in `dispatch` where the build found it. `gpu` is built where nvcc is found, and needs a GPU. In
`cluster` each side starts its tasks as processes, on all cores; there N is the threads of each task.

With more than one thread dflow with one thread takes part too, which shows how it scales.

Turns go round: peers, dflow, peers, dflow, ...; a ratio is the median over the rounds of peer / dflow, so above 1 dflow is
faster. "best" is the ratio to the peer that was fastest; must and aim are the project's targets for that ratio.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# Row, what one iteration is divided by and the unit of the quotient, then must and aim as a ratio to the best peer.
# Where a target is an absolute figure the line below the table gives it.
SUITES = {
    "dispatch": [
        ("chain 10000", 1e4, "ns/node", 6, 12),
        ("chain 100000", 1e5, "ns/node", 3.5, 8),
        ("fan-out 10000", 1e4, "ns/node", 7, 16),
        ("fan-out 100000", 1e5, "ns/node", 5, 12),
        ("random 10000", 1e4, "ns/node", 10, 20),
        ("random 100000", 1e5, "ns/node", 6, 15),
        *((f"{kind} {size}{beside}", size, "ns/node", 2, 4) for kind in ("chain", "fan-out", "random")
          for size in (10000, 100000) for beside in (", one asynchronous", ", one received")),
        # Each result takes the place of the one before: nothing is allocated on either side.
        ("scalar additions 10000", 1e4, "ns/op", 5, 8),
        ("step of one addition", 1e3, "us", None, None),
        ("loop of 10000 iterations", 1e4, "ns/iteration", 6, 20),
        ("kernels of 10000 iterations", 1e4, "ns/iteration", None, None),
        ("10000 calls of a function", 1e4, "ns/call", None, None),
        ("first run 10000", 1e6, "ms", 25, 60),
        ("first run 100000", 1e6, "ms", 25, 60),
    ],
    "training": [
        ("tiny sgd", 1e6, "ms", 6, 15),
        ("mlp sgd", 1e6, "ms", 1.1, (1.2, 1.5)),
        ("mlp adam", 1e6, "ms", (1.2, 1.3), (1.35, 1.7)),
        ("lenet sgd", 1e6, "ms", (1.05, 1.15), (1.2, 1.45)),
        # 256 units, 32 steps of a batch of 32.
        ("lstm sgd", 1e6, "ms", 0.9, (1.2, 1.4)),
    ],
    # Of 20,000 records of 784 bytes in one file, shuffled in a buffer of 2,000.
    "input": [
        ("batches of 64 records", 1e3, "us", 1, 2),
        ("mlp sgd from records", 1e6, "ms", 1, 1.2),
    ],
    "kernels": [
        ("exp 100000", 1e3, "us", 1, 1),
        ("tanh 100000", 1e3, "us", 1, 1),
        ("sigmoid 100000", 1e3, "us", 1, 1),
        # Both sides channels last, where the targets hold; beside it PyTorch in the layout that it prefers.
        ("max pool 2x2 [32,56,56,64]", 1e3, "us", 2.5, None),
        ("max pool 2x2 [32,56,56,64], peer channels first", 1e3, "us", None, None),
        ("batch norm [32,56,56,64]", 1e3, "us", 1.2, None),
        ("batch norm [32,56,56,64], peer channels first", 1e3, "us", None, None),
        # PyTorch has no fused op; TensorFlow's is the peer that counts.
        ("softmax cross entropy, both ways [512,32000]", 1e3, "us", None, None),
        ("softmax cross entropy, both ways [512,32000], by a step", 1e3, "us", 1.5, None),
        ("row sums [4096,1024]", 1e3, "us", 0.95, None),
        ("column sums [4096,1024]", 1e3, "us", 0.95, None),
        ("row argmax [4096,1024]", 1e3, "us", 0.95, None),
        ("column argmax [4096,1024]", 1e3, "us", 0.95, None),
        ("transpose [4096,4096]", 1e3, "us", 2.5, 5),
        ("NHWC to NCHW [32,56,56,64]", 1e3, "us", 1.2, 1.6),
        ("gather 4096 of [250000,64]", 1e3, "us", 1.1, 1.4),
        ("scatter add 4096 to [250000,64]", 1e3, "us", 2, 3),
        ("addition 1000000", 1e3, "us", 0.95, None),
        ("addition 10000000", 1e3, "us", 0.95, None),
        ("square of a difference 1000000", 1e3, "us", 0.95, None),
        ("square of a difference 10000000", 1e3, "us", 0.95, None),
        # Each side allocates what it computes: pages that are new to the process cost more than the arithmetic.
        *((f"{op} {size}, by a step", 1e3, "us", None, None) for size in (1000000, 10000000)
          for op in ("addition", "square of a difference")),
    ],
    # Each row of benchmarks/contest_ops.cpp.
    "ops": [],
    # On one GPU, in float; every row of either side ends when the GPU is done.
    "gpu": [
        ("tiny sgd", 1e6, "ms", 5, None),
        ("mlp sgd", 1e6, "ms", 1, 1.3),
        ("mlp adam", 1e6, "ms", 1, 1.3),
        ("lenet sgd", 1e6, "ms", 1, 1.3),
        ("product [4096,4096]", 1e3, "us", 0.97, None),
        ("convolution 3x3 [32,56,56,64] to 64", 1e3, "us", 0.97, None),
        *((row, 1e3, "us", None, None)
          for row in ("max pool 2x2 [32,56,56,64]", "batch norm [32,56,56,64]", "softmax [512,32000]", "row sums [4096,1024]",
                      "column sums [4096,1024]", "transpose [4096,4096]", "gather 4096 of [250000,64]",
                      "scatter add 4096 to [250000,64]", "addition 10000000", "tanh 10000000")),
    ],
    "cluster": [
        ("round trip 4 B, stream alone", 1e3, "us", None, None),
        ("round trip 4 B", 1e3, "us", 1 / 1.2, 1),
        ("1 MB", 1e6, "ms", 0.85, 0.95),
        ("100 MB", 1e6, "ms", 0.85, 0.95),
        *((f"{row}, Unix socket", divisor, unit, None, None)
          for row, divisor, unit in (("round trip 4 B", 1e3, "us"), ("1 MB", 1e6, "ms"), ("100 MB", 1e6, "ms"))),
        ("all-reduce of 2, 1 MB", 1e6, "ms", 1, None),
        ("all-reduce of 2, 100 MB", 1e6, "ms", 1, None),
        ("all-reduce of 3, 1 MB", 1e6, "ms", None, None),
        ("all-reduce of 3, 100 MB", 1e6, "ms", None, None),
        ("null step, scalar, 1 x 1", 1e6, "ms", 3, 6),
        ("null step, scalar, 4 x 4", 1e6, "ms", 3, 8),
        ("null step, scalar, 8 x 8", 1e6, "ms", 3, 8),
        ("null step, dense, 1 x 1", 1e6, "ms", 1.1, 1.5),
        ("null step, dense, 4 x 4", 1e6, "ms", 1.1, 1.5),
        ("null step, dense, 8 x 8", 1e6, "ms", 1.1, 1.5),
        ("null step, sparse, 1 x 1", 1e6, "ms", 3, 6),
        ("null step, sparse, 4 x 4", 1e6, "ms", 3, 6),
        ("null step, sparse, 8 x 8", 1e6, "ms", 3, 6),
        *((f"null step, {kind}, 16 x {workers}", 1e6, "ms", None, None) for kind in ("scalar", "sparse")
          for workers in (1, 10, 25, 50, 100)),
        ("null step, dense, 16 x 1", 1e6, "ms", None, None),
        ("null step, dense, 16 x 10", 1e6, "ms", None, None),
    ],
}
NOTES = {
    "dispatch": "step of one addition: must 0.3 us, aim 0.1 us. The peers' steps go through Python; a step of 10,000 nodes "
                "hides that.",
    "training": "PyTorch runs eagerly, its Adam without fused=True; JAX and TensorFlow hold the batch in their programs, dflow is "
                "fed each step.",
    "gpu": "PyTorch runs eagerly, channels last, and copies its batch to the GPU in each step, as dflow is fed it. Neither uses TF32.",
    "input": "bench_contest_input THREADS waits tells how much of its time training waits for input.",
    "kernels": "aim of the rows without one: the memory's bandwidth, see bench_kernels_memory. Both sides write into given memory "
               "but in rows \"by a step\", where TensorFlow and dflow run a step of their sessions, PyTorch an expression. "
               "PyTorch's max pool writes positions too.",
    "ops": "both sides run steps of their sessions on variables, and allocate what they compute. At 1,000 elements TensorFlow's step "
           "is mostly its session's, through Python.",
    "cluster": "null step, ps x workers, all on this machine: with 16 x 100 must 30 ms, aim 8.8 ms, in the scalar row. "
               "PyTorch's all-reduce is gloo's, in place; dflow's is a step of a session that runs it in all tasks.",
}
PEERS = {"dispatch": ["tensorflow"], "training": ["tensorflow", "tensorflow xla", "jax", "torch"], "kernels": ["tensorflow", "torch"],
         "input": ["tensorflow"],
         "ops": ["tensorflow"],
         "gpu": ["torch"],
         "cluster": ["tensorflow", "torch"]}


# Sides that are dflow too, and no peers.
ONE_THREAD, OVER_TCP = "one thread", "dflow over TCP"


class Side:
    """A process that answers the commands of benchmarks/contestant.hpp."""

    def __init__(self, name, command, cores):
        def pin():
            os.sched_setaffinity(0, cores)
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=pin)
        self.rows = self.ask("rows").rstrip("\n").split("\t")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended at: {command}")
        return answer

    def run(self, row, milliseconds):
        return float(self.ask(f"run {milliseconds} {row}"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sides_of(arguments):
    """dflow first."""
    all_cores = sorted(os.sched_getaffinity(0))
    cores = set(all_cores if arguments.suite == "cluster" else all_cores[:arguments.threads])
    threads = str(arguments.threads)
    build = pathlib.Path(arguments.build) / "benchmarks"
    if not (build / f"bench_contest_{arguments.suite}").exists():
        sys.exit(f"{build} holds no bench_contest_{arguments.suite}: build with -DDFLOW_BENCHMARKS=ON, or name the build by --build")
    sides = [Side("dflow", [str(build / f"bench_contest_{arguments.suite}"), threads], cores)]
    if arguments.threads > 1 and arguments.suite != "cluster":
        sides.append(Side(ONE_THREAD, [str(build / f"bench_contest_{arguments.suite}"), "1"], {all_cores[0]}))
    if arguments.suite == "cluster":
        sides.append(Side(OVER_TCP, [str(build / "bench_contest_cluster"), threads, "tcp"], cores))
    for peer in PEERS[arguments.suite]:
        library, *options = peer.split()
        interpreter = getattr(arguments, library)
        if not interpreter:
            print(f"{peer}: sits out, give --{library} PYTHON")
            continue
        command = [interpreter, str(HERE / "peers" / f"{library}_peer.py"), arguments.suite, threads, *options]
        try:
            sides.append(Side(peer, command, cores))
        except (OSError, RuntimeError):
            print(f"{peer}: sits out, {interpreter} did not start it")
    for suite, name in (("dispatch", "tbb"), ("cluster", "sockets")):
        program = build / f"bench_peer_{name}"
        if arguments.suite == suite and program.exists():
            sides.append(Side(name, [str(program), threads], cores))
    return sides


def by_threads(target, threads):
    """A target, or that of one thread and that of more."""
    return target[min(threads, len(target)) - 1] if isinstance(target, tuple) else target


def measure(sides, row, arguments):
    """Nanoseconds of each side in each round."""
    taking_part = [side for side in sides if row in side.rows]
    for side in taking_part:
        side.run(row, 1)
    rounds = [{side.name: side.run(row, arguments.turn) for side in reversed(taking_part)}
              for _ in range(arguments.pairs)]
    for side in taking_part:
        side.ask(f"drop {row}")
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", default="")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--turn", type=float, default=100, help="milliseconds")
    parser.add_argument("--build", default="build/release")
    for library in ("tensorflow", "jax", "torch"):
        parser.add_argument(f"--{library}")
    arguments = parser.parse_args()

    sides = sides_of(arguments)
    print(f"{arguments.suite}, threads: {arguments.threads}, rounds: {arguments.pairs} of {arguments.turn:g} ms")
    missed = 0
    rows = SUITES[arguments.suite] or [(row, 1e3, "us", 0.8 if row.endswith(" 1000000") else None, None) for row in sides[0].rows]
    for row, divisor, unit, must, aim in rows:
        if not re.search(arguments.rows, row):
            continue
        rounds = measure(sides, row, arguments)
        median = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
        line = f"{row:46s} dflow {median['dflow'] / divisor:10.3f} {unit:8s}"
        ratios = {name: statistics.median(r[name] / r["dflow"] for r in rounds) for name in rounds[0] if name != "dflow"}
        for name in ratios:
            line += f" {name} {median[name] / divisor:.3f} ({ratios[name]:.2f})"
        against = [ratio for name, ratio in ratios.items() if name not in (ONE_THREAD, OVER_TCP)]
        if against:
            best = min(against)
            line += f"  best {best:.2f}"
            if must is not None:
                held = by_threads(must, arguments.threads)
                missed += best < held
                line += f"  must {held:g}{'' if best >= held else ' MISSED'}"
            if aim is not None:
                goal = by_threads(aim, arguments.threads)
                line += f"  aim {goal:g}{'' if best >= goal else f' ({best / goal:.2f} of it)'}"
        print(line, flush=True)
    if NOTES[arguments.suite]:
        print(NOTES[arguments.suite])
    for side in sides:
        side.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
