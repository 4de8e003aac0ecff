"""Reductions and arg-reductions."""

import numpy as np

from case_file import NUMPY, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, REALS, SIGNED, UNSIGNED

# (name, shape, reduction_indices)
AXES = [
    ("all of a vector", (5,), [0]),
    ("rows", (3, 4), [1]),
    ("columns", (3, 4), [0]),
    ("all of a matrix", (3, 4), [0, 1]),
    ("no axes", (2, 3), []),
    ("axis of rank 0", (2, 3), 1),
    ("middle", (2, 3, 2), [1]),
    ("first and last", (2, 3, 2), [0, 2]),
    ("first two", (2, 3, 2), [0, 1]),
    ("last two", (2, 3, 2), [1, 2]),
    ("order does not matter", (2, 3, 2), [2, 0]),
    ("alternating, rank 4", (2, 3, 2, 2), [1, 3]),
    ("alternating, rank 4, other way", (2, 3, 2, 2), [0, 2]),
    ("NHW", (2, 2, 2, 3), [0, 1, 2]),
    ("rank 0", (), []),
    ("dimension of 1", (3, 1), [1]),
    ("odd rows", (2, 37), [1]),
    ("odd columns", (19, 3), [0]),
    ("negative axis", (2, 3), [-1]),
    ("negative axes", (2, 3, 2), [-1, -3]),
]
EMPTY = [
    ("to an empty result", (0, 3), [1]),
    ("over no elements", (0, 3), [0]),
    ("all of nothing", (2, 0), [0, 1]),
    ("empty vector", (0,), [0]),
]


def eighths(shape):
    """Distinct multiples of 1/8 of both signs, none of them 0."""
    count = int(np.prod(shape))
    order = (np.arange(count) * 7 + 3) % count if count % 7 and count else np.arange(count)
    values = order - count // 2
    return element((np.where(values >= 0, values + 1, values) / 8).reshape(shape))


def near_one(shape):
    """Factors near 1, so that long products stay small."""
    count = int(np.prod(shape))
    return element(np.array([0.5, 2, -1, 1.5, 0.75, -1.25, 1])[np.arange(count) % 7].reshape(shape))


def small(shape, low=0, high=3, wide="int64"):
    count = int(np.prod(shape))
    return element((low + (np.arange(count) * 5 + 2) % 7 % (high - low + 1)).reshape(shape), wide)


def complex_eighths(shape):
    real = eighths(shape).array
    return element(real + 1j * real[..., ::-1] if real.ndim else real + 0.5j, "complex128")


def truths(shape, first=0):
    count = int(np.prod(shape))
    return element(((np.arange(count) + first) % 3 != 1).reshape(shape), "bool")


def add(f):
    for op in ("Sum", "Mean", "Prod", "Max", "Min"):
        _reduction(f, op)
    for op in ("All", "Any"):
        _logical(f, op)
    for op in ("ArgMax", "ArgMin"):
        _arg(f, op)


def reduce(f, op, name, x, axes, types, keep_dims=False, **options):
    attrs = {"keep_dims": True} if keep_dims else {}
    f.raw(op, name + (", kept" if keep_dims else ""), {"input": x, "axis": fixed(axes)}, types, attrs=attrs, **options)


def _reduction(f, op):
    make = near_one if op == "Prod" else eighths
    empty = [e for e in EMPTY if op != "Mean" or e[0] == "to an empty result"]
    for name, shape, axes in AXES + empty:
        smooth = not (op in ("Max", "Min") and 0 in shape and name != "to an empty result")
        for keep_dims in (False, True):
            if op in ("Max", "Min") and not smooth:
                value = -np.inf if op == "Max" else np.inf
                kept = np.full([1 if i in axes else n for i, n in enumerate(shape)], value)
                result = kept if keep_dims else np.squeeze(kept, tuple(axes))
                f.case(
                    op,
                    name + (", kept" if keep_dims else ""),
                    [make(shape), fixed(axes)],
                    [element(result)],
                    FLOATS,
                    "the identity of the reduction, as TensorFlow's float types",
                    attrs={"keep_dims": True} if keep_dims else {},
                )
                continue
            scale = 2 if op in ("Sum", "Mean", "Prod") else 1
            reduce(f, op, name, make(shape), axes, FLOATS, keep_dims, gradient=True, tolerance_scale=scale)
    if op == "Mean":
        for name, shape, axes in EMPTY[1:]:
            reduce(f, op, name, make(shape), axes, FLOATS)
    few = [
        a
        for a in AXES
        if a[0]
        in ("all of a vector", "rows", "columns", "middle", "first and last", "no axes", "rank 0", "axis of rank 0")
    ]
    if op == "Mean":
        _integer_means(f, few + [EMPTY[0]])
    else:
        for name, shape, axes in few + [EMPTY[0]]:
            high = 2 if op == "Prod" else 3
            reduce(f, op, f"integers, {name}", small(shape, 1 if op == "Prod" else 0, high), axes, INTS)
            reduce(f, op, f"negative integers, {name}", small(shape, -2, 2), axes, SIGNED)
        reduce(
            f,
            op,
            "wide integers",
            element([[2**40, -3], [5, 2**20 + 1]], "int64"),
            [0 if op != "Prod" else 1],
            ["int64"],
        )
    if op in ("Sum", "Prod"):
        for name, shape, axes in EMPTY[1:]:
            reduce(f, op, f"integers, {name}", small(shape), axes, INTS)
    if op in ("Sum", "Mean", "Prod"):
        for name, shape, axes in few:
            reduce(f, op, f"complex, {name}", complex_eighths(shape), axes, COMPLEX, tolerance_scale=4)
    reduce(f, op, "infinities", element([[np.inf, 1], [-np.inf, 2], [3, 4]]), [1], FLOATS)
    if op in ("Sum", "Mean", "Prod"):
        reduce(f, op, "not a number stays", element([[np.nan, 1], [2, 0]]), [1], FLOATS)
        reduce(f, op, "opposite infinities", element([np.inf, -np.inf]), [0], FLOATS)
    if op in ("Sum", "Mean"):
        reduce(f, op, "a thousand and one", element(np.arange(1001) % 5 / 4), [0], FLOATS, tolerance_scale=8)
        reduce(
            f, op, "long columns", element((np.arange(1000) % 7 / 8).reshape(500, 2)), [0], FLOATS, tolerance_scale=8
        )
    one = fixed(np.ones((2, 3)), "float32")
    f.error(op, "axis too large", [one, fixed([2])], "run")
    f.error(op, "axis too small", [one, fixed([-3])], "run")
    f.error(op, "same axis twice", [one, fixed([0, 0])], "run")
    f.error(op, "string", [fixed(["a"], "string"), fixed([0])], "build")


def _integer_means(f, geometries):
    """TensorFlow adds in 64 bits and divides towards zero, whatever the type."""
    for name, shape, axes in geometries:
        reduce(f, "Mean", f"integers, {name}", small(shape, 0, 9), axes, INTS)
        reduce(f, "Mean", f"negative integers, {name}", small(shape, -9, 8), axes, SIGNED)
    large = element([[100, 101, 99], [127, 126, 127], [1, 0, 1]], "int64")
    reduce(f, "Mean", "integers whose sum does not fit", large, [1], INTS)
    reduce(f, "Mean", "integers whose sum does not fit, columns", large, [0], INTS)
    reduce(f, "Mean", "high half of unsigned", element([[200, 200, 255], [255, 255, 255]], "int64"), [1], UNSIGNED)
    low = element([[-128, -127, -128], [-100, -100, 127]], "int64")
    reduce(f, "Mean", "negative integers whose sum does not fit", low, [1], SIGNED)


def _logical(f, op):
    for name, shape, axes in AXES + EMPTY:
        f.raw(op, name, {"input": truths(shape), "axis": fixed(axes)}, BOOL)
    for name, shape, axes in (AXES[1], AXES[6], EMPTY[1]):
        f.raw(op, f"{name}, kept", {"input": truths(shape), "axis": fixed(axes)}, BOOL, attrs={"keep_dims": True})
    f.raw(op, "all true", {"input": element([[True] * 3] * 2, "bool"), "axis": fixed([1])}, BOOL)
    f.raw(op, "all false", {"input": element([[False] * 3] * 2, "bool"), "axis": fixed([1])}, BOOL)
    one = fixed(np.ones((2, 3)), "bool")
    f.error(op, "axis too large", [one, fixed([2])], "run")
    f.error(op, "not bool", [fixed([1, 0]), fixed([0])], "build")


def _arg(f, op):
    function = np.argmax if op == "ArgMax" else np.argmin
    for name, shape, dimension in [
        ("vector", (5,), 0),
        ("rows", (3, 4), 1),
        ("columns", (3, 4), 0),
        ("first of rank 3", (2, 3, 2), 0),
        ("middle", (2, 3, 2), 1),
        ("last of rank 3", (2, 3, 2), 2),
        ("rank 4", (2, 2, 3, 2), 2),
        ("one element", (1,), 0),
        ("dimension of 1", (3, 1), 1),
        ("odd rows", (3, 37), 1),
        ("odd columns", (19, 3), 0),
        ("negative dimension", (2, 3), -1),
        ("empty result", (0, 3), 1),
        ("empty result, rank 3", (2, 3, 0), 1),
    ]:
        f.raw(op, name, {"input": eighths(shape), "dimension": fixed(dimension)}, FLOATS)
        arguments = {"input": small(shape, 0, 6), "dimension": fixed(dimension)}
        f.raw(op, f"integers, {name}", arguments, INTS, output_roles=["fixed"])
    ties = np.array([[1, 3, 3, 0], [0, 0, 2, 2], [1, 1, 1, 1]])
    f.raw(op, "first of equals", {"input": element(ties), "dimension": fixed(1)}, REALS)
    long_ties = np.zeros(100)
    long_ties[[41, 77]] = 1 if op == "ArgMax" else -1
    f.raw(op, "first of equals, far apart", {"input": element(long_ties), "dimension": fixed(0)}, FLOATS)
    arguments = {"input": element([[-5, -3, -9], [7, -8, 0]], "int64"), "dimension": fixed(1)}
    f.raw(op, "negative integers", arguments, SIGNED, output_roles=["fixed"])
    f.raw(
        op,
        "infinities",
        {"input": element([[1, np.inf, -np.inf], [-np.inf, -np.inf, 0]]), "dimension": fixed(1)},
        FLOATS,
    )
    x = np.array([[-0.25, 0.5], [2, -4]])
    f.case(
        op,
        "by another library",
        [element(x), fixed(0)],
        [fixed(function(x, 0), "int64")],
        FLOATS,
        f"{NUMPY} {function.__name__}",
    )
    one = fixed(np.ones((2, 3)), "float32")
    f.error(op, "dimension too large", [one, fixed(2)], "run")
    f.error(op, "dimension too small", [one, fixed(-3)], "run")
    f.error(op, "dimension of rank 1", [one, fixed([0])], "build")
    f.error(op, "rank 0", [fixed(1.0, "float32"), fixed(0)], "run")
    f.error(op, "over no elements", [fixed(np.zeros((0, 3)), "float32"), fixed(0)], "run")
