"""Matrix products and sums of many tensors."""

import numpy as np

from case_file import element, fixed
from element_types import COMPLEX, FLOATS, INTS, REALS, SIGNED


def eighths(*shape, phase=0):
    count = int(np.prod(shape))
    return element((((np.arange(count) * 7 + phase * 5) % 25 - 12) / 8).reshape(shape))


def small(*shape, phase=0, wide="float64"):
    """Integers 0 to 2: sums of 17 products of them stay below 128, the limit of int8."""
    count = int(np.prod(shape))
    return element(((np.arange(count) * 7 + phase * 5) % 11 % 3).reshape(shape), wide)


def signed(*shape, phase=0):
    count = int(np.prod(shape))
    return element(((np.arange(count) * 7 + phase * 5) % 5 - 2).reshape(shape), "int64")


def complex_eighths(*shape, phase=0):
    real, imaginary = eighths(*shape, phase=phase).array, eighths(*shape, phase=phase + 3).array
    return element(real + 1j * imaginary, "complex128")


PRODUCTS = [
    ("square", 3, 3, 3),
    ("wide", 2, 3, 5),
    ("tall", 5, 2, 3),
    ("one by one", 1, 1, 1),
    ("inner product", 1, 7, 1),
    ("outer product", 4, 1, 3),
    ("row by matrix", 1, 4, 3),
    ("matrix by column", 3, 4, 1),
    ("odd sizes", 5, 17, 9),
    ("past a block", 13, 11, 19),
    ("no rows", 0, 3, 2),
    ("no columns", 2, 3, 0),
    ("nothing to sum", 2, 0, 3),
]


def add(f):
    _matmul(f)
    _batch_matmul(f)
    _add_n(f)


def _matmul(f):
    def product(name, make, m, k, n, types, transpose_a=False, transpose_b=False, **options):
        attrs = {key: True for key, on in (("transpose_a", transpose_a), ("transpose_b", transpose_b)) if on}
        a = make(*((k, m) if transpose_a else (m, k)))
        b = make(*((n, k) if transpose_b else (k, n)), phase=1)
        f.raw("MatMul", name, {"a": a, "b": b}, types, attrs=attrs, **options)

    for name, m, k, n in PRODUCTS:
        for transpose_a, transpose_b, suffix in [
            (False, False, ""),
            (True, False, ", a transposed"),
            (False, True, ", b transposed"),
            (True, True, ", both transposed"),
        ]:
            product(name + suffix, eighths, m, k, n, FLOATS, transpose_a, transpose_b, gradient=True, tolerance_scale=2)
    integers = lambda *shape, phase=0: small(*shape, phase=phase, wide="int64")
    for name, m, k, n in PRODUCTS[1:10:2] + PRODUCTS[-3:]:
        product(f"integers, {name}", integers, m, k, n, INTS)
        product(f"negative integers, {name}", signed, m, k, n, SIGNED, transpose_b=True)
        product(f"complex, {name}", complex_eighths, m, k, n, COMPLEX, transpose_a=True)
    f.raw(
        "MatMul",
        "wide integers",
        {"a": element([[2**31 - 1, -5]], "int64"), "b": element([[2**20], [2**40]], "int64")},
        ["int64"],
    )
    f.raw(
        "MatMul",
        "infinity and not a number",
        {"a": element([[np.inf, 1], [np.nan, 1], [1, 2]]), "b": element([[1, 2], [3, 4]])},
        FLOATS,
    )
    f.raw("MatMul", "infinity times zero", {"a": element([[np.inf, 1]]), "b": element([[0.0], [1]])}, FLOATS)
    f.raw(
        "MatMul",
        "float64 extremes",
        {"a": element([[1e200, 1e-200]]), "b": element([[1e100], [1e-100]])},
        ["float64"],
    )
    one = lambda *shape: fixed(np.ones(shape), "float32")
    f.error("MatMul", "inner dimensions differ", [one(2, 3), one(4, 2)], "build")
    f.error(
        "MatMul",
        "inner dimensions differ once transposed",
        [one(2, 3), one(3, 2)],
        "build",
        attrs={"transpose_a": True},
    )
    f.error("MatMul", "a of rank 1", [one(3), one(3, 2)], "build")
    f.error("MatMul", "b of rank 3", [one(2, 3), one(1, 3, 2)], "build")
    f.error("MatMul", "rank 0", [one(), one()], "build")
    f.error("MatMul", "different element types", [one(2, 2), fixed(np.ones((2, 2)), "float64")], "build")
    f.error("MatMul", "bool", [fixed(np.ones((2, 2)), "bool")] * 2, "build")


def _batch_matmul(f):
    def product(name, make, batch, m, k, n, types, adj_x=False, adj_y=False, **options):
        attrs = {key: True for key, on in (("adj_x", adj_x), ("adj_y", adj_y)) if on}
        x = make(*batch, *((k, m) if adj_x else (m, k)))
        y = make(*batch, *((n, k) if adj_y else (k, n)), phase=1)
        f.raw("BatchMatMul", name, {"x": x, "y": y}, types, attrs=attrs, **options)

    for adj_x, adj_y, suffix in [
        (False, False, ""),
        (True, False, ", x adjoint"),
        (False, True, ", y adjoint"),
        (True, True, ", both adjoint"),
    ]:
        for name, batch, m, k, n in [
            ("batch of 2", (2,), 2, 3, 4),
            ("batch of 2 by 3", (2, 3), 2, 1, 3),
            ("batch of 1", (1,), 3, 2, 2),
        ]:
            product(name + suffix, eighths, batch, m, k, n, FLOATS, adj_x, adj_y, gradient=True, tolerance_scale=2)
        product("complex" + suffix, complex_eighths, (2,), 2, 3, 2, COMPLEX, adj_x, adj_y)
        product("negative integers" + suffix, signed, (3,), 2, 3, 2, SIGNED, adj_x, adj_y)
        integers = lambda *shape, phase=0: small(*shape, phase=phase, wide="int64")
        product("integers" + suffix, integers, (3,), 2, 3, 2, INTS, adj_x, adj_y)
    for name, batch, m, k, n in [
        ("empty batch", (0,), 2, 3, 2),
        ("nothing to sum", (2,), 2, 0, 3),
        ("no rows", (2,), 0, 3, 2),
        ("odd sizes", (3,), 5, 17, 9),
        ("many small ones", (9,), 1, 2, 1),
        ("no batch dimension", (), 2, 3, 2),
        ("three batch dimensions", (2, 1, 2), 2, 3, 1),
    ]:
        product(name, eighths, batch, m, k, n, FLOATS, gradient=True, tolerance_scale=2)
    one = lambda *shape: fixed(np.ones(shape), "float32")
    f.error("BatchMatMul", "inner dimensions differ", [one(2, 2, 3), one(2, 4, 2)], "build")
    f.error("BatchMatMul", "batches differ", [one(2, 2, 3), one(3, 3, 2)], "build")
    f.error("BatchMatMul", "ranks differ", [one(2, 2, 3), one(2, 2, 3, 2)], "build")
    f.error("BatchMatMul", "rank 1", [one(3), one(3)], "build")
    f.error(
        "BatchMatMul",
        "inner dimensions differ once adjoint",
        [one(2, 2, 3), one(2, 3, 2)],
        "build",
        attrs={"adj_x": True},
    )


def _add_n(f):
    for name, count, shape in [
        ("three", 3, (2, 3)),
        ("one", 1, (2, 2)),
        ("two of rank 0", 2, ()),
        ("two empty", 2, (0, 3)),
        ("nine", 9, (2,)),
        ("odd vectors", 4, (37,)),
        ("rank 4", 2, (1, 2, 2, 3)),
    ]:
        f.raw("AddN", name, {"inputs": [eighths(*shape, phase=i) for i in range(count)]}, FLOATS, gradient=True)
        f.raw("AddN", f"numbers, {name}", {"inputs": [small(*shape, phase=i) for i in range(count)]}, REALS)
    f.raw("AddN", "negative integers", {"inputs": [signed(5, phase=i) for i in range(5)]}, SIGNED)
    f.raw("AddN", "complex", {"inputs": [complex_eighths(2, 2, phase=i) for i in range(3)]}, COMPLEX)
    f.raw(
        "AddN",
        "infinities",
        {"inputs": [element([np.inf, np.inf, np.nan, 1]), element([1, -np.inf, 1, -np.inf])]},
        FLOATS,
    )
    f.error("AddN", "different shapes", [fixed([1.0, 2.0], "float32"), fixed([1.0], "float32")], "build")
    f.error("AddN", "rank 0 does not broadcast", [fixed([1.0, 2.0], "float32"), fixed(1.0, "float32")], "build")
    f.error("AddN", "no inputs", [], "build")
    f.error("AddN", "different element types", [fixed([1.0], "float32"), fixed([1.0], "float64")], "build")
