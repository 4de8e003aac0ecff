"""Ops that builders of other ops and gradients make: slopes of elementwise ops, broadcasting and its reverse, stacking,
sums of segments, products of all but one."""

import numpy as np
from scipy import special

from case_file import NUMPY, SCIPY, TENSORFLOW, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, STRING, spread

SHAPES = [
    ("rank 0", ()),
    ("vector", (5,)),
    ("matrix", (3, 4)),
    ("rank 4", (2, 1, 3, 2)),
    ("empty", (0, 3)),
    ("more than a packet", (37,)),
    ("more than a packet, rows", (3, 19)),
]


def add(f):
    _slopes(f)
    _conj(f)
    _softmax_gradients(f)
    _broadcast(f)
    _stacking(f)
    _permutations(f)
    _segments(f)
    _exclusive_products(f)


def eighths(shape, phase=0):
    """Multiples of 1/8 of both signs."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 5 + phase) % 23 - 11 + ((np.arange(count) * 5 + phase) % 23 >= 11)).reshape(shape) / 8


def points(low, high, shape):
    count = int(np.prod(shape))
    return spread(low, high, 29)[(np.arange(count) * 7 + 3) % 29].reshape(shape)


def complex_of(real):
    return element(real + 0.25j * (1 - real), "complex128")


# op: raw op, interval of y, the definition.
SLOPES = {
    "TanhGrad": ("TanhGrad", (-0.875, 0.9375), lambda y, dy: dy * (1 - y * y)),
    "SigmoidGrad": ("SigmoidGrad", (0.0625, 0.9375), lambda y, dy: dy * y * (1 - y)),
    "InvGrad": ("InvGrad", (-3, 2.75), lambda y, dy: -dy * y * y),
    "SqrtGrad": ("SqrtGrad", (0.25, 6), lambda y, dy: dy * 0.5 / y),
    "RsqrtGrad": ("RsqrtGrad", (0.125, 3), lambda y, dy: -0.5 * dy * y**3),
}


def _slopes(f):
    for op, (raw_op, (low, high), definition) in SLOPES.items():
        for name, shape in SHAPES:
            y, dy = points(low, high, shape), eighths(shape, 4)
            f.raw(op, name, {"y": element(y), "dy": element(dy)}, FLOATS, raw_op=raw_op, gradient=True,
                  tolerance_scale=2)
            computed = np.reshape(f.cases[-1]["outputs"][0]["values"], shape).astype(float)
            if not np.allclose(computed, definition(y, dy), rtol=1e-14, atol=0):
                raise ValueError(f"{op} '{name}': {TENSORFLOW} disagrees with the definition")
        y, dy = complex_of(points(0.25, 2, (3, 4))), complex_of(eighths((3, 4), 2))
        # TensorFlow's kernels of InvGrad, SqrtGrad and RsqrtGrad take the conjugate of y; dflow's gradients do it outside.
        f.case(op, "complex", [y, dy], [element(definition(y.array, dy.array), "complex128")], COMPLEX, NUMPY,
               tolerance_scale=4)
        f.error(op, "different shapes", [fixed(np.ones((2, 3)), "float32"), fixed(np.ones(3), "float32")], "build")
    for name, shape in SHAPES:
        x, dy = points(0.5, 6, shape), eighths(shape, 4)
        f.case("DigammaGrad", name, [element(x), element(dy)], [element(dy * special.polygamma(1, x))], FLOATS,
               f"{SCIPY} special.polygamma(1, x)", tolerance_scale=2)


def _conj(f):
    for name, shape in SHAPES:
        f.raw("Conj", name, {"input": complex_of(eighths(shape, 1))}, COMPLEX)
    f.raw("Conj", "infinities and zeros",
          {"input": element([complex(np.inf, -np.inf), complex(0.0, -0.0), complex(-2, np.nan)], "complex128")},
          COMPLEX)


def _softmax_gradients(f):
    rows = [("one row", (4,)), ("rows", (3, 5)), ("rank 3", (2, 3, 4)), ("empty", (0, 3)), ("one class", (3, 1)),
            ("wide", (2, 37))]
    for name, shape in rows:
        x, dy = eighths(shape, 3), eighths(shape, 9)
        # Probabilities of few bits: what they sum to does not matter to the formula.
        y = points(0.03125, 0.5, shape)
        f.case("SoftmaxGrad", name, [element(y), element(dy)],
               [element((dy - np.sum(dy * y, -1, keepdims=True)) * y)], FLOATS, NUMPY, gradient=True, tolerance_scale=4)
        y = -np.abs(x) - 0.125
        f.case("LogSoftmaxGrad", name, [element(y), element(dy)],
               [element(dy - np.exp(y) * np.sum(dy, -1, keepdims=True))], FLOATS, NUMPY, gradient=True,
               tolerance_scale=8)


def _broadcast(f):
    pairs = [("row to matrix", (3,), (2, 3)), ("column to matrix", (2, 1), (2, 3)), ("rank 0 to matrix", (), (2, 3)),
             ("the same", (2, 3), (2, 3)), ("middle", (2, 1, 3), (2, 4, 3)), ("first and last", (1, 3, 1), (2, 3, 2)),
             ("new dimensions", (2, 1), (3, 1, 2, 2)), ("rank 0 to rank 0", (), ()), ("to nothing", (1, 3), (0, 3)),
             ("one to a packet and more", (1,), (37,)), ("long rows", (19,), (3, 19)),
             ("interleaved", (1, 2, 1, 3), (2, 2, 2, 3))]
    for name, low, high in pairs:
        for kind, make, types in [("fractions", lambda shape: element(eighths(shape, 2)), FLOATS),
                                  ("integers", lambda shape: element(np.abs(eighths(shape, 2)) * 8 % 5, "int64"), INTS),
                                  ("complex", lambda shape: complex_of(eighths(shape, 2)), COMPLEX)]:
            x = make(low)
            f.raw("BroadcastTo", f"{name}, {kind}", {"input": x, "shape": fixed(high)}, types,
                  gradient=kind == "fractions")
            y = make(high)
            leading = tuple(range(len(high) - len(low)))
            kept = tuple(i for i, n in enumerate(low, len(leading)) if n == 1 and high[i] != 1)
            total = np.sum(y.array, axis=leading + kept, keepdims=True)
            f.case("SumToShape", f"{name}, {kind}", [y, fixed(low)],
                   [element(np.reshape(total, low), y.dtype)], types, NUMPY, gradient=kind == "fractions",
                   tolerance_scale=4)
    x = fixed(np.ones((2, 3)), "float32")
    f.error("BroadcastTo", "a dimension that is not 1", [x, fixed([4, 3])], "run")
    f.error("BroadcastTo", "fewer dimensions", [x, fixed([3])], "run")
    f.error("BroadcastTo", "shape of rank 2", [x, fixed([[2, 3]])], "build")
    f.error("SumToShape", "a shape that does not broadcast", [x, fixed([2])], "run")
    f.error("SumToShape", "more dimensions", [x, fixed([1, 2, 3])], "run")


def _stacking(f):
    kinds = [("fractions", lambda s, p: element(eighths(s, p)), FLOATS),
             ("integers", lambda s, p: element(np.abs(eighths(s, p)) * 8 % 7, "int64"), INTS),
             ("complex", lambda s, p: complex_of(eighths(s, p)), COMPLEX),
             ("truths", lambda s, p: element(eighths(s, p) > 0, "bool"), BOOL),
             ("strings", lambda s, p: element([f"s{i % 7}" for i in range(int(np.prod(s)))], "string") if len(s) == 1
              else element(np.array([f"s{i % 7}" for i in range(int(np.prod(s)))], dtype=object).reshape(s), "string"),
              STRING)]
    for name, shape, count, axis in [("vectors", (3,), 2, 0), ("vectors as columns", (3,), 2, 1),
                                     ("matrices last", (2, 3), 3, 2),
                                     ("rank 0", (), 4, 0), ("negative axis", (2, 3), 2, -1), ("middle", (2, 3), 2, 1),
                                     ("one value", (2, 2), 1, 0), ("empty", (0, 2), 3, 1), ("long", (19,), 3, 0)]:
        for kind, make, types in kinds:
            attrs = {"axis": axis}
            f.raw("Pack", f"{name}, {kind}", {"values": [make(shape, 3 * i) for i in range(count)]}, types, attrs=attrs,
                  gradient=kind == "fractions")
            packed = list(shape)
            packed.insert(axis if axis >= 0 else len(shape) + 1 + axis, count)
            f.raw("Unpack", f"{name}, {kind}", {"value": make(tuple(packed), 1)}, types,
                  attrs={"num": count, "axis": axis}, gradient=kind == "fractions")
    one = lambda *shape: fixed(np.ones(shape), "float32")
    f.error("Pack", "different shapes", [one(2, 3), one(3, 2)], "build", attrs={"axis": 0})
    f.error("Pack", "axis out of range", [one(2), one(2)], "build", attrs={"axis": 2})
    f.error("Unpack", "another number", [one(3, 2)], "build", attrs={"num": 2, "axis": 0})
    f.error("Unpack", "axis out of range", [one(3, 2)], "build", attrs={"num": 2, "axis": 2})
    f.error("Unpack", "value of rank 0", [one()], "build", attrs={"num": 1, "axis": 0})


def _permutations(f):
    for dtype in ("int32", "int64"):
        for name, x in [("of five", [3, 4, 0, 2, 1]), ("identity", [0, 1, 2]), ("of one", [0]), ("empty", np.zeros(0))]:
            f.raw("InvertPermutation", f"{name}, {dtype}", {"x": fixed(x, dtype)}, [dtype], output_roles=["fixed"])
    f.error("InvertPermutation", "twice the same", [fixed([0, 0])], "run")
    f.error("InvertPermutation", "out of range", [fixed([0, 2])], "run")
    f.error("InvertPermutation", "negative", [fixed([0, -1])], "run")
    f.error("InvertPermutation", "rank 2", [fixed([[0, 1]])], "build")
    for name, axis, shapes in [("rows", 0, [[2, 3], [1, 3], [4, 3]]), ("columns", 1, [[2, 3], [2, 1]]),
                               ("empty among them", 0, [[0, 2], [3, 2]])]:
        f.raw("ConcatOffset", name, {"concat_dim": fixed(axis), "shape": [fixed(s) for s in shapes]}, ["int32"],
              attrs={"count": len(shapes)}, raw_attrs={}, output_roles=["fixed"] * len(shapes))
    for name, shape, axes in [("one axis", [2, 3, 4], [1]), ("two axes", [2, 3, 4], [0, 2]),
                              ("negative axis", [2, 3, 4], [-1]),
                              ("no axes", [2, 3], []), ("rank 0", [], [])]:
        kept = [1 if i in [a % len(shape) for a in axes] else n for i, n in enumerate(shape)]
        f.case("ReducedShape", name, [fixed(shape), fixed(axes)], [fixed(kept)], ["int32"],
               "the definition: the named extents are 1")


def _segments(f):
    cases = [("rows", (5, 3), [2, 0, 2, 1, 0], 3), ("a segment without rows", (3, 2), [0, 3, 0], 5),
             ("numbers", (6,), [1, 1, 0, 2, 1, 0], 3), ("rows of rank 2", (3, 2, 2), [1, 0, 1], 2),
             ("no rows", (0, 3), [], 2), ("no segments", (0, 3), [], 0), ("wide rows", (4, 37), [1, 1, 0, 1], 2)]
    for name, shape, ids, count in cases:
        for kind, make, types in [("fractions", lambda s: element(eighths(s, 2)), FLOATS),
                                  ("integers", lambda s: element(np.abs(eighths(s, 2)) * 8 % 5, "int64"), INTS),
                                  ("complex", lambda s: complex_of(eighths(s, 2)), COMPLEX)]:
            for dtype in ("int32", "int64"):
                arguments = {"data": make(shape), "segment_ids": fixed(ids, dtype), "num_segments": fixed(count)}
                f.raw("UnsortedSegmentSum", f"{name}, {kind}, {dtype}", arguments, types, gradient=kind == "fractions",
                      tolerance_scale=4)
    data = fixed(np.ones((3, 2)), "float32")
    f.error("UnsortedSegmentSum", "id too large", [data, fixed([0, 2, 1]), fixed(2)], "run")
    f.error("UnsortedSegmentSum", "ids of another length", [data, fixed([0, 1]), fixed(2)], "build")
    f.error("UnsortedSegmentSum", "negative number of segments", [data, fixed([0, 1, 0]), fixed(-1)], "run")
    f.error("UnsortedSegmentSum", "number of rank 1", [data, fixed([0, 1, 0]), fixed([2])], "build")


def _all_but(x, left_out):
    product = np.ones((), x.dtype)
    for i, value in enumerate(x):
        if i not in left_out:
            product = product * value
    return product


def _exclusive_products(f):
    """By the definition, element by element over the flattened axes."""
    values = {"no zero": [0.5, 2, -1, 1.5], "one zero": [0.5, 0, -1, 1.5], "two zeros": [0, 2, 0, 1.5], "one": [3]}
    for name, row in values.items():
        x = np.array([row, row[::-1]])
        dy = eighths(x.shape, 6)
        alone = np.array([[_all_but(r, {i}) for i in range(len(r))] for r in x])
        f.case("ExclusiveProd", f"rows, {name}", [element(x), fixed([1])], [element(alone)], FLOATS, NUMPY,
               gradient=True, tolerance_scale=4)
        twice = np.array([[sum(d[i] * _all_but(r, {i, j}) for i in range(len(r)) if i != j) for j in range(len(r))]
                          for r, d in zip(x, dy)], dtype=float)
        f.case("ExclusiveProdGrad", f"rows, {name}", [element(x), fixed([1]), element(dy)], [element(twice)], FLOATS,
               NUMPY, tolerance_scale=8)
        f.case("ExclusiveProd", f"columns, {name}", [element(x.T), fixed([0])], [element(alone.T)], FLOATS, NUMPY,
               gradient=True, tolerance_scale=4)
        flat = x.ravel()
        everything = np.array([_all_but(flat, {i}) for i in range(flat.size)]).reshape(x.shape)
        f.case("ExclusiveProd", f"all, {name}", [element(x), fixed([0, 1])], [element(everything)], FLOATS, NUMPY,
               gradient=True, tolerance_scale=8)
    _complex_exclusive_products(f)
    f.case("ExclusiveProd", "no axes", [element([2, 3]), fixed(np.zeros(0))], [element([1, 1])], FLOATS, NUMPY)
    f.case("ExclusiveProd", "empty", [element(np.zeros((0, 3))), fixed([1])], [element(np.zeros((0, 3)))], FLOATS,
           NUMPY)


def _complex_exclusive_products(f):
    for name, row in {"no zero": [0.5 + 1j, 2j, -1, 1.5 - 0.5j], "one zero": [0.5j, 0, -1 + 1j, 1.5]}.items():
        x = np.array([row, row[::-1]])
        dy = eighths(x.shape, 6) + 1j * eighths(x.shape, 2)
        alone = np.array([[_all_but(r, {i}) for i in range(len(r))] for r in x])
        twice = np.array([[sum(d[i] * _all_but(r, {i, j}) for i in range(len(r)) if i != j) for j in range(len(r))]
                          for r, d in zip(x, dy)])
        z = lambda values: element(values, "complex128")
        f.case("ExclusiveProd", f"complex rows, {name}", [z(x), fixed([1])], [z(alone)], COMPLEX, NUMPY,
               tolerance_scale=4)
        f.case("ExclusiveProd", f"complex columns, {name}", [z(x.T), fixed([0])], [z(alone.T)], COMPLEX, NUMPY,
               tolerance_scale=4)
        f.case("ExclusiveProdGrad", f"complex rows, {name}", [z(x), fixed([1]), z(dy)], [z(twice)], COMPLEX, NUMPY,
               tolerance_scale=8)
