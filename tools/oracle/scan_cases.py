"""Running sums and products, and reductions of runs of rows."""

import numpy as np

from case_file import NUMPY, element, fixed
from element_types import COMPLEX, FLOATS, INTS, REALS, SIGNED

# (name, shape, axis)
LINES = [
    ("vector", (5,), 0),
    ("one element", (1,), 0),
    ("rows", (3, 4), 1),
    ("columns", (3, 4), 0),
    ("middle", (2, 3, 2), 1),
    ("negative axis", (2, 3, 2), -2),
    ("more columns than a block", (2, 67), 0),
    ("odd rows", (2, 37), 1),
    ("empty lines", (2, 0), 1),
    ("no lines", (0, 3), 1),
]
WAYS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
SEGMENTS = [
    ("rows", (5, 3), [0, 0, 1, 2, 2]),
    ("ids without rows", (4, 2), [1, 1, 4, 6]),
    ("one segment", (4, 3), [0, 0, 0, 0]),
    ("each its own", (3, 2), [0, 1, 2]),
    ("numbers", (6,), [0, 0, 0, 1, 3, 3]),
    ("rows of rank 2", (3, 2, 2), [0, 1, 1]),
    ("no rows", (0, 3), []),
    ("empty rows", (3, 0), [0, 0, 2]),
    ("rows longer than a block", (3, 67), [0, 0, 1]),
]


def add(f):
    _cumulative(f, "Cumsum", eighths)
    _cumulative(f, "Cumprod", near_one)
    _linear_scans(f)
    for op in ("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax"):
        _segments(f, op)
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        _sparse_segments(f, op)


def eighths(shape, phase=0):
    """Multiples of 1/8 of both signs."""
    count = int(np.prod(shape))
    order = (np.arange(count) * 5 + phase) % 23
    return (order - 11 + (order >= 11)).reshape(shape) / 8


def near_one(shape, phase=0):
    """Factors near 1, so that long products stay small."""
    count = int(np.prod(shape))
    return np.array([0.5, 2, -1, 1.5, 0.75, -1.25, 1])[(np.arange(count) + phase) % 7].reshape(shape)


def complex_of(real):
    return element(real + 0.25j * (1 - real), "complex128")


def small(shape, low, high):
    count = int(np.prod(shape))
    return element((low + (np.arange(count) * 5 + 2) % 7 % (high - low + 1)).reshape(shape), "int64")


def _cumulative(f, op, make):
    def row(name, x, axis, types, dtype="int32", ways=WAYS, **options):
        for exclusive, reverse in ways:
            way = ", exclusive" * exclusive + ", reverse" * reverse
            f.raw(op, name + way, {"x": x, "axis": fixed(axis, dtype)}, types,
                  attrs={"exclusive": exclusive, "reverse": reverse}, **options)

    for name, shape, axis in LINES:
        row(name, element(make(shape)), axis, FLOATS, gradient=True, tolerance_scale=4)
    for name, shape, axis in LINES[:5]:
        row(f"integers, {name}", small(shape, 0, 2), axis, INTS)
        row(f"negative integers, {name}", small(shape, -2, 1), axis, SIGNED)
        row(f"complex, {name}", complex_of(make(shape)), axis, COMPLEX, tolerance_scale=4, with_gradients=op == "Cumsum")
    row("axis of 64 bits", element(make((2, 3))), 1, FLOATS, "int64", ways=WAYS[:1], tolerance_scale=4)
    row("zeros", element([[2, 0, 3, 4], [0, 2, 0, 3], [0, 0, 0, 0], [1.5, 2, 4, 0]]), 1, FLOATS, gradient=True)
    row("a thousand and one", element(1 + (np.arange(1001) % 5 - 2) / 4096 if op == "Cumprod" else np.arange(1001) % 5 / 4),
        0, FLOATS, ways=WAYS[:1], tolerance_scale=200)
    row("not a number stays", element([1, np.nan, 2, np.inf, -np.inf]), 0, FLOATS)
    one = fixed(np.ones((2, 3)), "float32")
    f.error(op, "axis too large", [one, fixed(2)], "run")
    f.error(op, "axis too small", [one, fixed(-3)], "run")
    f.error(op, "axis of rank 1", [one, fixed([0])], "build")
    f.error(op, "rank 0", [fixed(1.0, "float32"), fixed(0)], "build")


def _scanned(a, b, reverse, initial):
    """The definition of LinearScan along the last axis."""
    y = np.zeros(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    state = np.full(a.shape[:-1], initial, a.dtype)
    for j in reversed(range(a.shape[-1])) if reverse else range(a.shape[-1]):
        y[..., j] = state
        state = np.where(a[..., j] == 0, b[..., j], a[..., j] * state + b[..., j])
    return y


def _linear_scans(f):
    source = f"{NUMPY} loop of the definition"
    for name, shape, axis in LINES:
        a, b = near_one(shape), eighths(shape, 3)
        if len(shape) > 1 and a.size:
            a[(0,) * a.ndim] = 0
        for reverse in (False, True):
            for initial in (0, 1):
                def scan(x, z):
                    y = _scanned(np.moveaxis(x, axis, -1), np.moveaxis(z, axis, -1), reverse, initial)
                    return np.moveaxis(y, -1, axis)

                way = f"{name}{', reverse' * reverse}{', from 1' * initial}"
                attrs = {"reverse": reverse, "initial": initial}
                f.case("LinearScan", way, [element(a), element(b), fixed(axis)], [element(scan(a, b))], FLOATS, source,
                       attrs=attrs, gradient=True, tolerance_scale=8)
                z = [complex_of(a), complex_of(b)]
                f.case("LinearScan", f"complex, {way}", [*z, fixed(axis, "int64")],
                       [element(scan(z[0].array, z[1].array), "complex128")], COMPLEX, source, attrs=attrs,
                       tolerance_scale=8)
    f.case("LinearScan", "a factor of 0 after an infinity", [element([1, 0, 2]), element([np.inf, 3, 1]), fixed(0)],
           [element([0, np.inf, 3])], FLOATS, source)
    one = fixed(np.ones((2, 3)), "float32")
    f.error("LinearScan", "shapes differ", [one, fixed(np.ones((3, 2)), "float32"), fixed(0)], "build")
    f.error("LinearScan", "axis too large", [one, one, fixed(2)], "run")


def _segments(f, op):
    make = near_one if op == "SegmentProd" else eighths
    for name, shape, ids in SEGMENTS:
        for dtype in ("int32", "int64"):
            def row(kind, data, types, **options):
                f.raw(op, f"{kind}{name}, {dtype}", {"data": data, "segment_ids": fixed(ids, dtype)}, types, **options)

            row("", element(make(shape, 2)), FLOATS, gradient=True, tolerance_scale=4)
            if dtype == "int64":
                continue
            row("integers, ", small(shape, 0, 2), INTS)
            row("negative integers, ", small(shape, -3, 3), SIGNED)
            if op in ("SegmentSum", "SegmentMean", "SegmentProd"):
                row("complex, ", complex_of(make(shape, 2)), COMPLEX, tolerance_scale=8)
    ids = fixed([0, 0, 0, 2, 2])
    if op in ("SegmentMin", "SegmentMax"):
        f.raw(op, "ties", {"data": element([1, 2, 2, 3, 3]), "segment_ids": ids}, REALS)
        f.raw(op, "ties among floats", {"data": element([[1, 2], [2, 2], [2, 1], [3, 1], [3, 0]]), "segment_ids": ids}, FLOATS,
              with_gradients=True)
    if op == "SegmentProd":
        zeros = element([[0, 2], [3, 0], [0, 4], [0, 1], [5, 2]])
        f.raw(op, "zeros", {"data": zeros, "segment_ids": ids}, FLOATS, gradient=True)
    data = fixed(np.ones((3, 2)), "float32")
    f.error(op, "ids that decrease", [data, fixed([0, 2, 1])], "run", match="segment_ids[2] = 1")
    f.error(op, "negative id", [data, fixed([-1, 0, 1])], "run", match="segment_ids[0] = -1")
    f.error(op, "ids of another length", [data, fixed([0, 1])], "build")
    f.error(op, "ids of rank 2", [data, fixed([[0, 1, 2]])], "build")
    f.error(op, "rank 0", [fixed(1.0, "float32"), fixed([0])], "build")


def _sparse_segments(f, op):
    types = REALS if op == "SparseSegmentSum" else FLOATS
    grad_op = op + "Grad"
    cases = [
        ("rows", (4, 3), [3, 0, 0, 2], [0, 0, 1, 1]),
        ("a row many times", (3, 2), [1, 1, 1, 0], [0, 0, 0, 0]),
        ("ids without rows", (4, 2), [3, 1], [1, 3]),
        ("numbers", (4,), [2, 3, 1], [0, 0, 2]),
        ("nothing", (4, 2), [], []),
        ("rows longer than a block", (3, 67), [2, 0, 1], [0, 0, 1]),
    ]
    for name, shape, indices, ids in cases:
        for dtype in ("int32", "int64"):
            arguments = {"data": element(eighths(shape, 2)), "indices": fixed(indices, dtype), "segment_ids": fixed(ids)}
            f.raw(op, f"{name}, {dtype}", arguments, FLOATS, gradient=True, tolerance_scale=4)
            if types is REALS:
                f.raw(op, f"integers, {name}, {dtype}", {**arguments, "data": small(shape, 0, 3)}, INTS)
        segments = max(ids, default=-1) + 1
        grad, index, segment = eighths((segments, *shape[1:]), 4), np.array(indices, int), np.array(ids, int)
        counts = np.bincount(segment, minlength=segments)[segment]
        scale = {"SparseSegmentSum": np.ones(len(ids)), "SparseSegmentMean": 1 / np.maximum(counts, 1),
                 "SparseSegmentSqrtN": 1 / np.sqrt(np.maximum(counts, 1))}[op]
        result = np.zeros(shape)
        np.add.at(result, index, grad[segment] * scale.reshape([-1] + [1] * (len(shape) - 1)))
        for dtype in ("int32", "int64"):
            f.case(grad_op, f"{name}, {dtype}", [element(grad), fixed(indices, dtype), fixed(ids), fixed(shape[0])],
                   [element(result)], FLOATS, f"{NUMPY} add.at of the definition", gradient=True, tolerance_scale=4,
                   terms=4)
    grad = element([[1, 2], [3, 4], [5, 6]])
    f.case(grad_op, "more gradients than segments", [grad, fixed([1]), fixed([1]), fixed(2)],
           [element([[0, 0], [3, 4]])], FLOATS, "the definition", gradient=True)
    data = fixed(np.ones((3, 2)), "float32")
    f.error(op, "index too large", [data, fixed([0, 3]), fixed([0, 0])], "run", match="indices[1] = 3")
    f.error(op, "negative index", [data, fixed([-1, 0]), fixed([0, 0])], "run", match="indices[0] = -1")
    f.error(op, "ids that decrease", [data, fixed([0, 1]), fixed([1, 0])], "run", match="segment_ids[1] = 0")
    f.error(op, "another number of indices", [data, fixed([0]), fixed([0, 1])], "build")
    f.error(grad_op, "id too large", [data, fixed([0]), fixed([3]), fixed(2)], "run", match="segment_ids[0] = 3")
    f.error(grad_op, "index too large", [data, fixed([2]), fixed([0]), fixed(2)], "run", match="indices[0] = 2")
    f.error(grad_op, "negative number of rows", [data, fixed([0]), fixed([0]), fixed(-1)], "run")
