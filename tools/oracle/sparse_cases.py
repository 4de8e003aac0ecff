"""Sparse tensors: where their elements lie, dense tensors of them, and products."""

import numpy as np

from array_cases import KINDS
from case_file import NUMPY, element, fixed
from element_types import COMPLEX, FLOATS

ONE = ["float32"]  # of ops without type parameters

# (name, indices, dense shape, shape of the dense tensor beside)
PLACES = [
    ("vector", [[4], [0], [2]], [5], [5]),
    ("matrix", [[0, 1], [2, 3], [1, 0], [1, 0]], [3, 4], [3, 4]),
    ("rank 3", [[1, 2, 3], [0, 0, 0], [1, 0, 2]], [2, 3, 4], [2, 3, 4]),
    ("rows", [[0, 1], [2, 3], [1, 0]], [3, 4], [4]),
    ("columns", [[0, 1], [2, 3], [1, 0]], [3, 4], [3, 1]),
    ("one number", [[0, 1], [2, 3], [1, 0]], [3, 4], []),
    ("ones", [[0, 1, 1], [2, 3, 0]], [3, 4, 2], [1, 4, 1]),
    ("nothing", np.zeros((0, 2)), [3, 4], [3, 4]),
    ("nothing of nothing", np.zeros((0, 2)), [0, 4], [0, 4]),
    ("rank 0", np.zeros((1, 0)), [], []),
]


def add(f):
    _places(f)
    _dense(f)
    _products(f)


def long(values):
    return fixed(values, "int64")


def _places(f):
    for name, indices, shape, target in PLACES:
        at = np.array(indices, np.int64)
        beside = np.broadcast_to(np.arange(int(np.prod(target)), dtype=np.int64).reshape(target), shape)
        positions = beside[tuple(at.T)] if len(shape) else np.zeros(len(at), np.int64)
        f.case("SparsePositions", name, [long(at), long(shape), long(target)], [long(positions)], ONE,
               f"{NUMPY} broadcast_to")
        order = np.lexsort(at.T[::-1]) if len(shape) else np.arange(len(at))
        if target == shape:
            f.case("SparseOrder", name, [long(at), long(shape)], [long(order)], ONE, f"{NUMPY} lexsort")
            unique, slots = np.unique(at, axis=0, return_inverse=True) if at.size else (at, order)
            f.case("SparseUnique", name, [long(at), long(shape)], [long(unique), long(slots.reshape(-1))], ONE, f"{NUMPY} unique")
    at = [[0, 1], [2, 3]]
    f.case("SparsePositions", "the same shape", [long(at), long([3, 4]), long([3, 4])], [long([1, 11])], ONE,
           f"{NUMPY} ravel_multi_index", attrs={"exact": True})

    def error(name, indices, shape, target, when="run", match=None, **options):
        f.error("SparsePositions", name, [long(indices), long(shape), long(target)], when, match=match, **options)
        if target == shape:
            for op in ("SparseOrder", "SparseUnique"):
                f.error(op, name, [long(indices), long(shape)], when, match=match, **options)

    error("index too large", [[0, 1], [3, 0]], [3, 4], [3, 4], match="index 1, [3,0], is outside of the dense shape [3,4]")
    error("negative index", [[0, -1]], [3, 4], [3, 4], match="index 0, [0,-1]")
    error("index of nothing", [[0, 0]], [0, 4], [0, 4], match="index 0, [0,0]")
    error("negative extent", [[0, 1]], [3, -4], [3, -4], match="is -4")
    error("too many elements", [[0, 1]], [2**40, 2**40], [2**40, 2**40], match="more than 2^63-1")
    error("index of another rank", [[0, 1]], [3], [3], "build")
    error("indices of rank 1", [0, 1], [3], [3], "build")
    error("does not broadcast", [[0, 1]], [3, 4], [2, 4], match="[2,4] does not broadcast to a sparse one of shape [3,4]")
    error("more dimensions", [[0]], [3], [1, 3], "build")
    error("broadcasts where it must not", at, [3, 4], [1, 4], match="[1,4] beside a sparse one of shape [3,4]",
          attrs={"exact": True})


def _dense(f):
    for kind, make, types in KINDS:
        for name, indices, shape in [
            ("matrix", [[0, 1], [1, 0], [1, 3]], [2, 4]),
            ("rank 3", [[0, 0, 1], [1, 0, 0]], [2, 1, 2]),
            ("vector", [1, 4], [6]),
            ("vector of rows", [[0], [4]], [6]),
            ("one index", 2, [3]),
            ("nothing", np.zeros((0, 2)), [2, 3]),
            ("rank 0", np.zeros((1, 0)), []),
            ("no elements", np.zeros((0, 2)), [0, 3]),
        ]:
            count = np.array(indices).shape[0] if np.ndim(indices) else 1
            for dtype in ("int32", "int64"):
                f.raw("SparseToDense", f"{name}, {kind}, {dtype}",
                      {"sparse_indices": fixed(indices, dtype), "output_shape": fixed(shape, dtype),
                       "sparse_values": make(count) if np.ndim(indices) else make(), "default_value": make()}, types,
                      gradient=kind == "fractions" and name != "rank 0")
        several = {"sparse_indices": fixed([[1, 0], [0, 1], [1, 0]]), "output_shape": fixed([2, 3]), "default_value": make()}
        arguments = {**several, "sparse_values": make(3)}
        order = ("sparse_indices", "output_shape", "sparse_values", "default_value")
        f.raw("SparseToDense", f"the last of equal indices, {kind}", {k: arguments[k] for k in order}, types,
              attrs={"validate_indices": False})
        arguments = {**several, "sparse_indices": fixed([[0, 1], [1, 0], [1, 2]]), "sparse_values": make()}
        f.raw("SparseToDense", f"one value for all, {kind}", {k: arguments[k] for k in order}, types,
              gradient=kind == "fractions")
    f.raw("SparseToDense", "any order",
          {"sparse_indices": fixed([[1, 0], [0, 1]]), "output_shape": fixed([2, 3]), "sparse_values": element([1.5, 2]),
           "default_value": element(-1)}, FLOATS, attrs={"validate_indices": False}, gradient=True)

    def error(name, indices, shape, values, when="run", match=None, **options):
        f.error("SparseToDense", name, [fixed(indices), fixed(shape), fixed(values, "float32"), fixed(0, "float32")], when,
                match=match, **options)

    error("index too large", [[0, 1], [2, 0]], [2, 4], [1, 2], match="index 1, [2,0], is outside of the dense shape [2,4]")
    error("index too large, not validated", [[0, 4]], [2, 4], [1], match="index 0, [0,4]", attrs={"validate_indices": False})
    error("negative index", [[0, -1]], [2, 4], [1], match="index 0, [0,-1]")
    error("out of order", [[1, 0], [0, 1]], [2, 4], [1, 2], match="index 1, [0,1], of dense shape [2,4], is out of order")
    error("an index twice", [[0, 1], [0, 1]], [2, 4], [1, 2], match="index 1, [0,1], of dense shape [2,4], repeats")
    error("values of another number", [[0, 1]], [2, 4], [1, 2], "build")
    error("values of rank 2", [[0, 1]], [2, 4], [[1]], "build")
    error("indices of another rank", [[0, 1, 0]], [2, 4], [1], "build")
    error("indices of rank 3", [[[0, 1]]], [2, 4], [1], "build")
    error("vector of indices in a matrix", [0, 1], [2, 4], [1, 2], "build")
    error("negative extent", [[0, 1]], [2, -4], [1])


def _product(indices, values, shape, b, adjoint_a, adjoint_b):
    a = np.zeros(shape, values.dtype)
    np.add.at(a, tuple(np.array(indices, np.int64).reshape(-1, 2).T), values)
    return (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)


def _products(f):
    op = "SparseTensorDenseMatMul"
    cases = [
        ("matrices", [[0, 1], [1, 0], [1, 2]], [2, 3], 4),
        ("any order, some twice", [[2, 1], [0, 0], [2, 1], [1, 1], [0, 0]], [3, 2], 3),
        ("one column", [[0, 1], [3, 2]], [4, 3], 1),
        ("more columns than a block", [[0, 1], [1, 0], [0, 2]], [2, 3], 67),
        ("rows without values", [[3, 0]], [5, 2], 2),
        ("nothing", np.zeros((0, 2)), [2, 3], 4),
        ("no columns", [[0, 1]], [2, 3], 0),
        ("no rows", np.zeros((0, 2)), [0, 3], 2),
        ("no inner dimension", np.zeros((0, 2)), [2, 0], 2),
    ]
    for name, indices, shape, width in cases:
        for adjoint_a in (False, True):
            for adjoint_b in (False, True):
                inner = shape[0 if adjoint_a else 1]
                attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
                way = name + ", adjoint a" * adjoint_a + ", adjoint b" * adjoint_b
                dims = (width, inner) if adjoint_b else (inner, width)
                count = len(indices)

                def row(kind, values, b, types, wide="float64", **options):
                    y = _product(indices, values, shape, b, adjoint_a, adjoint_b)
                    f.case(op, f"{kind}{way}", [long(indices), element(values, wide), long(shape), element(b, wide)],
                           [element(y, wide)], types, f"{NUMPY} matmul", attrs=attrs, tolerance_scale=4, terms=16, **options)

                eighths = (np.arange(count) * 5 + 2) % 11 / 8 - 0.5
                dense = ((np.arange(np.prod(dims, dtype=int)) * 7 + 3) % 13 / 4 - 1.5).reshape(dims)
                row("", eighths, dense, FLOATS, gradient=True)
                whole = ((np.arange(dense.size) * 7 + 3) % 13 - 6).reshape(dims)
                row("integers, ", np.arange(count, dtype=np.int64) - 1, whole, ["int64", "int32"], "int64")
                row("complex, ", eighths + 0.25j * (1 - eighths), dense - 0.5j * (1 + dense), COMPLEX, "complex128")
    a, b = [long([[0, 1]]), fixed([1], "float32")], fixed(np.ones((3, 2)), "float32")
    for name, inputs, when, match in [
        ("index too large", [long([[0, 1], [2, 0]]), fixed([1, 1], "float32"), long([2, 3]), b], "run", "index 1, [2,0]"),
        ("negative index", [long([[0, -1]]), a[1], long([2, 3]), b], "run", "index 0, [0,-1]"),
        ("inner dimensions", [*a, long([2, 4]), b], "run", "inner dimensions 4 and 3"),
        ("negative extent", [*a, long([-2, 3]), b], "run", None),
        ("shape of rank 3", [*a, long([2, 3, 1]), b], "build", None),
        ("values of another number", [a[0], fixed([1, 2], "float32"), long([2, 3]), b], "build", None),
        ("index of rank 3", [long([[0, 1, 2]]), a[1], long([2, 3]), b], "build", None),
        ("b of rank 1", [*a, long([2, 3]), fixed([1, 2, 3], "float32")], "build", None),
    ]:
        f.error(op, name, inputs, when, match=match)
