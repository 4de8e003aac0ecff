#!/usr/bin/env python3
"""Checks the rules that keep the folders of include/dflow/ floors.

- a file includes its own floor and lower ones only; the umbrella dflow.hpp is never included inside;
- inside a floor a file includes its own folder and those before it in FOLDER_ORDER, so the floor's folders are a DAG;
- train/ speaks graph and session only;
- each heavy header has one door, and so has the CPU: what is not the CPU's own knows no type of devices;
- what an op is (op/) knows none, and no floor knows an op by its name: nothing outside of ops/ and the kernels spells one as a string;
- includes form no cycle, and what is included exists;
- no file includes a forwarding header, which only says where a public header has gone;
- public headers are those of one list, and who writes as a user includes no others (tools/public_headers.py);
- headers stay within 400 lines, every other file within 800, folders of the library within 40 files, and a folder has 4 files.

Usage: tools/check_layers.py [ROOT]
Prints one line per violation as file:line: message; exits 1 if there is any.
"""

import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import public_headers

FLOORS = {
    "base": 0, "core": 1, "io": 2, "state": 3, "graph": 4, "op": 5, "ops": 5, "image": 5, "autodiff": 6, "kernels": 7, "runtime": 8,
    "passes": 9, "session": 10, "net": 11, "data": 12, "trace": 13, "train": 14, "interop": 15,
    "models": 15, "src": 16,
}  # fmt: skip

# Folders that a folder must not include although they lie below it.
FORBIDDEN = {"train": {"kernels", "runtime", "net"}, "op": {"ops"}, "interop": {"kernels", "runtime", "net"},
             "models": {"kernels", "runtime", "net", "train"}}

# A folder's folders, the lowest first: a file includes its own folder and those that stand before it. Those in one tuple do
# not know each other, those in one set do. "." are the files that lie in the folder itself. A folder that is not named counts
# as the folder that it lies in. Files may be named like folders: "all.*" for a header and its body, which then stand above the
# rest, or "call_kernel.hpp" for a header below what its body includes.
FOLDER_ORDER = {
    "base": [".", "text", "files", "threads"],
    "core": ["memory", "."],
    "io": ["json", ("compression", "proto"), "checkpoint/parts", "records", ".", ("summary", "checkpoint/own"), "checkpoint/tensorflow", "checkpoint"],
    "state": [".", ("tables", "readers")],
    # Gradients of arrays are reductions, and those of reductions arrays.
    "ops": [
        ("sparse_output.*", "internal"), "math", {"array", "reduction"}, "control", "state", "random", "nn", "data_flow",
        ("checkpoint", "collective", "image", "io", "linalg", "parsing", "send_recv", "sparse", "strings", "summary"),
        ("operators.*", "standard_ops.*", "expr.*"), "ops.*",
    ],
    "kernels": ["contract", "shared", ("collectives", "state"), ("cpu", "cuda")],
    "kernels/cpu": [
        ("cpu.*", "elementwise/code.hpp"), "loops", "routines", ".", "elementwise", "array", "math",
        ("checkpoint", "control", "data_flow", "image", "io", "linalg", "nn", "parsing", "random", "reduction", "send_recv",
         "sparse", "state", "strings", "summary"),
        "all.*", "standard_kernels.*",
        "image/codec",
    ],
    "kernels/cuda": [
        "grid", "bodies", "driver", "memory", "chains", ".", "elementwise", "routines",
        ("array", "control", "data_flow", "internal", "linalg", "math", "nn", "random", "reduction", "send_recv", "state"),
        "all.*", "standard_kernels.*",
    ],
    "runtime": [("call_kernel.hpp", "frames/frames_kernel.hpp", "inter_op.hpp"), "plan", ".", ("frames", "cuda")],
    "passes": [".", "fusion", "optimize.*", "compile_step.*"],
    "net": ["transport", "transport/sockets", "protocol", "inspect", "tasks", "master", ".", ("client", "simulation")],
    "data": [".", "steps", "dataset.*", "from.*", "files.*", "data.*"],
    "trace": [".", "events"],
    "train": [
        ".", "variables", ("partitioned_variable.*", "batch_normalization.*", "layer_normalization.*"), "layers.*",
        ("convolution_layers.*", "input"), "saving",
        ("fitting", "recurrent", "replicas"), "train.*",
    ],
    "src": ["bodies", "units", ".", "ops", "all"],
}  # fmt: skip

# Folders that know no op by its name.
NAMELESS = {"base", "core", "io", "graph", "op", "autodiff", "runtime", "passes", "session"}

# A library, or one type of devices: (what is included, which files may include it, relative to include/dflow/ or src/)
DOORS = [
    (re.compile(r"^(unsupported/)?Eigen/"), re.compile(r"^(kernels/cpu/linalg/|src/units/linalg/|interop/eigen\.hpp$)")),
    (re.compile(r"^(oneapi/)?dnnl"), re.compile(r"^kernels/cpu/")),
    (re.compile(r"^dflow/kernels/cpu/"), re.compile(r"^(kernels/cpu/|runtime/(cpu_device|default_kernels)\.|dflow\.hpp$|src/)")),
    (re.compile(r"^dflow/runtime/cpu_device\."), re.compile(r"^(runtime/(cpu_device|default_devices)\.|src/)")),
    (re.compile(r"^dflow/kernels/cuda/"), re.compile(r"^(kernels/cuda/|runtime/cuda)")),
    (re.compile(r"^(cuda|cub/|thrust/|cublas|cudnn|nvrtc|nccl|curand|nvtx)"), re.compile(r"^kernels/cuda/")),
    (re.compile(r"^(asio|openssl/)"), re.compile(r"^net/(asio\.hpp$|transport/sockets/)")),
    (re.compile(r"^cereal/(?!external/rapidjson/)"), re.compile(r"^graph/graph_def_archive\.ipp$")),
    (re.compile(r"^zlib\.h"), re.compile(r"^io/compression/zlib_stream\.ipp$")),
    (re.compile(r"^(rapidjson/|cereal/external/rapidjson/)"), re.compile(r"^io/json/reader\.ipp$")),
    (re.compile(r"^(jpeglib|jerror|png)\.h$"), re.compile(r"^kernels/cpu/image/codec/(jpeg|png)_codec\.ipp$")),
    (re.compile(r"^(CLI/|catch2/|benchmark/|nlohmann/)"), re.compile(r"^$")),
]

MAX_HEADER_LINES = 400
MAX_FILE_LINES = 800
MAX_FOLDER_FILES = 40
# Those of the folders in it count, too.
MIN_FOLDER_FILES = 4
# Folders with fewer files, as they are today: this list only gets shorter.
SMALL_FOLDERS = {
    "include/dflow/interop", "include/dflow/kernels/collectives",
    "include/dflow/kernels/cpu/routines/state", "include/dflow/kernels/cpu/send_recv", "include/dflow/kernels/cpu/summary",
    "include/dflow/kernels/cuda/data_flow", "include/dflow/kernels/cuda/random", "include/dflow/kernels/cuda/send_recv",
    "include/dflow/ops/collective", "include/dflow/ops/send_recv", "include/dflow/runtime/cuda",
    "include/dflow/src/units/data", "include/dflow/src/units/image", "include/dflow/src/units/io", "include/dflow/src/units/tables",
    "include/dflow/src/units/trace", "src/runtime",
}  # fmt: skip
# A device as a third party writes it, in one file: headers that count as files.
WHOLE_FILES = {"tests/support/proof_device.hpp"}
SOURCE_SUFFIXES = {".hpp", ".ipp", ".cpp", ".cu", ".h", ".py", ".cmake", ".sh"}
GENERATED_FOLDERS = {"__pycache__", "build"}  # Conan builds the test package in its own folder
CODE_SUFFIXES = {".hpp", ".ipp", ".cpp", ".cu", ".h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes_of(path):
    """Yields (line number, quote, included name) of each include directive."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def library_files(root):
    """Yields (path, path relative to include/dflow or src) of the library's files."""
    for folder in (root / "include" / "dflow", root / "src"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in CODE_SUFFIXES:
                yield path, path.relative_to(folder).as_posix()


@cache
def is_forwarding(path):
    """True for a header that says where a public header has gone."""
    return path.suffix == ".hpp" and "#pragma message" in path.read_text(errors="replace")


def place_of(relative, base):
    """(rank, name) of a library file in the order of `base`, by the nearest name that has one; None without any."""
    ranks = {}
    for rank, group in enumerate(FOLDER_ORDER[base]):
        ranks.update((name, (rank, isinstance(group, set))) for name in ([group] if isinstance(group, str) else group))
    inside = relative.removeprefix(base + "/")
    folders = inside.split("/")[:-1]
    names = [inside, inside.rpartition(".")[0] + ".*"]
    names += ["/".join(folders[:end]) for end in range(len(folders), 0, -1)] or ["."]
    return next(((ranks[name], name) for name in names if name in ranks), None)


def check_order(where, relative, name):
    """Yields the messages about one include directive inside folders whose folders have an order."""
    for base in FOLDER_ORDER:
        if not relative.startswith(base + "/") or not name.startswith(f"dflow/{base}/"):
            continue
        source, target = place_of(relative, base), place_of(name.removeprefix("dflow/"), base)
        if source is None or target is None or source[1] == target[1]:
            continue
        (source_rank, is_one), (target_rank, _) = source[0], target[0]
        if target_rank < source_rank or (target_rank == source_rank and is_one):
            continue
        names = ["its own files" if place == "." else place if "." in place else f"{place}/" for _, place in (source, target)]
        yield f"{where}: in {base}/, {names[0]} must not include {names[1]}: FOLDER_ORDER"


def check_places(path, relative):
    """Yields a message for each order that has no place for a file."""
    for base in FOLDER_ORDER:
        if relative.startswith(base + "/") and place_of(relative, base) is None:
            yield f"{path}:1: its folder has no place in FOLDER_ORDER"
    floor = relative.split("/")[0]
    if relative.count("/") > 1 and floor not in FOLDER_ORDER:
        yield f"{path}:1: the folders of {floor}/ have no order in FOLDER_ORDER"


def floor_of(relative):
    """The floor folder of a library file; src/ops_math.cpp and src/ops/math.cpp both stand on ops."""
    parts = relative.split("/")
    if len(parts) > 1:
        return parts[0]
    stem = re.split(r"[_.]", parts[0])[0]
    return stem if stem in FLOORS else None


def check_include(where, relative, folder, quote, name):
    """Yields the messages about one include directive of one library file."""
    for heavy, door in DOORS:
        if heavy.match(name) and not door.match(relative):
            yield f"{where}: {name} may be included by {door.pattern.strip('^') or 'no file of the library'} only"
    if name == "dflow/dflow.hpp":
        yield f"{where}: the umbrella dflow.hpp is never included inside"
        return
    if quote == '"':
        yield f'{where}: "{name}" must be written <dflow/...>'
    if not name.startswith("dflow/") or folder is None:
        return
    target = name.split("/")[1]
    if target not in FLOORS:
        yield f"{where}: {name} lies on no floor"
    elif FLOORS[target] > FLOORS[folder]:
        yield f"{where}: {folder}/ (floor {FLOORS[folder]}) must not include {target}/ (floor {FLOORS[target]})"
    elif target in FORBIDDEN.get(folder, ()):
        yield f"{where}: {folder}/ must not include {target}/"


def check_library(root):
    """Floors, doors and missing files; returns the messages and the include graph."""
    problems, graph, lines = [], {}, {}
    include = root / "include"
    for path, relative in library_files(root):
        folder = floor_of(relative)
        is_umbrella = relative == "dflow.hpp" and path.is_relative_to(include)
        if folder is None and not is_umbrella:
            problems.append(f"{path.relative_to(root)}:1: belongs to no floor")
        elif folder is not None and folder not in FLOORS:
            problems.append(f"{path.relative_to(root)}:1: folder {folder}/ is no floor")
            continue
        node = "dflow/" + relative if path.is_relative_to(include) else None
        if node:
            graph[node] = []
            if not is_forwarding(path):
                problems += check_places(path.relative_to(root), relative)
        for number, quote, name in includes_of(path):
            where = f"{path.relative_to(root)}:{number}"
            if not is_forwarding(path):
                problems += check_include(where, relative, folder, quote, name)
                problems += check_order(where, relative, name) if node else []
            if name.startswith("dflow/"):
                if not (include / name).exists():
                    problems.append(f"{where}: {name} does not exist")
                elif is_forwarding(include / name):
                    problems.append(f"{where}: {name} has moved, as it says")
                elif node:
                    graph[node].append(name)
                    lines[node, name] = number
    return problems, graph, lines


def check_cycles(graph, lines):
    """One message per include cycle between headers."""
    edges, origin = {}, {}
    for source, targets in graph.items():
        edges.setdefault(source, set())
        for target in targets:
            # A body lies behind its header's end, where nothing is missing any more.
            if not source.endswith(".ipp") and not target.endswith(".ipp"):
                edges[source].add(target)
                origin[source, target] = f"include/{source}:{lines[source, target]}"
    problems, state = [], {}
    for start in sorted(edges):
        if start in state:
            continue
        stack = [(start, iter(sorted(edges.get(start, ()))))]
        state[start] = "open"
        while stack:
            node, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                state[node] = "done"
                stack.pop()
            elif state.get(target) == "open":
                path = [entry[0] for entry in stack]
                cycle = path[path.index(target):] + [target]
                problems.append(f"{origin[node, target]}: include cycle {' -> '.join(cycle)}")
            elif target not in state:
                state[target] = "open"
                stack.append((target, iter(sorted(edges.get(target, ())))))
    return problems


def check_names(root):
    """One message per name of an op that a floor below the ops spells."""
    struct = re.compile(r"Op\s*<\s*\"(\w+)\"")
    ops = {name for path in (root / "include/dflow/ops").rglob("*.hpp") for name in struct.findall(path.read_text())}
    problems = []
    for path, relative in library_files(root):
        if floor_of(relative) not in NAMELESS:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            code = line.split("//")[0]
            for name in re.findall(r'"(\w+)"', code):
                if name in ops:
                    problems.append(f"{path.relative_to(root)}:{number}: knows op {name} by its name")
    return problems


def check_small_folders(root):
    """One message per folder with too few files, and per exception that is none any more."""
    counts = Counter()
    for path, _ in library_files(root):
        if not is_forwarding(path):
            counts.update(folder.as_posix() for folder in path.relative_to(root).parents)
    problems = []
    for folder, count in sorted(counts.items()):
        is_exception = folder in SMALL_FOLDERS
        if count < MIN_FOLDER_FILES and not is_exception and folder.startswith(("include/dflow/", "src/")):
            problems.append(f"{folder}:1: {count} files, a folder has {MIN_FOLDER_FILES}")
        elif count >= MIN_FOLDER_FILES and is_exception:
            problems.append(f"{folder}:1: {count} files, and SMALL_FOLDERS still names it")
    return problems


def check_sizes(root):
    problems = []
    for folder in sorted({path.parent for path, _ in library_files(root)}):
        count = sum(path.suffix in CODE_SUFFIXES for path in folder.iterdir())
        if count > MAX_FOLDER_FILES:
            problems.append(f"{folder.relative_to(root)}:1: {count} files, the limit is {MAX_FOLDER_FILES}")
    problems += check_small_folders(root)
    for folder in ("include", "src", "tests", "examples", "benchmarks", "tools", "cmake", "scripts", "conan", "ports"):
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or path.suffix not in SOURCE_SUFFIXES:
                continue
            if GENERATED_FOLDERS.intersection(path.relative_to(root).parts):
                continue
            count = len(path.read_text(errors="replace").splitlines())
            is_whole = path.relative_to(root).as_posix() in WHOLE_FILES
            limit = MAX_HEADER_LINES if not is_whole and path.suffix in {".hpp", ".h"} else MAX_FILE_LINES
            if count > limit:
                problems.append(f"{path.relative_to(root)}:{limit + 1}: {count} lines, the limit is {limit}")
    return problems


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent).resolve()
    problems, graph, lines = check_library(root)
    problems += check_cycles(graph, lines)
    problems += check_names(root)
    problems += check_sizes(root)
    problems += public_headers.check(root)
    print("\n".join(problems + [f"layers: {len(graph)} headers and bodies, {len(problems)} violations"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
