"""Elementwise ops of two inputs with broadcasting, and Select."""

import numpy as np
from scipy import special

from case_file import NUMPY, SCIPY, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, REALS, SIGNED, STRING, spread

INF, NAN = np.inf, np.nan

# (name, shape of x, shape of y)
SHAPES = [
    ("same shape", (2, 3), (2, 3)),
    ("rank 0 both", (), ()),
    ("x of rank 0", (), (2, 3)),
    ("y of rank 0", (2, 3), ()),
    ("y is a row", (2, 3), (3,)),
    ("x is a row", (3,), (2, 3)),
    ("y is a column", (2, 3), (2, 1)),
    ("x is a column", (2, 1), (2, 3)),
    ("outer", (3, 1), (1, 4)),
    ("outer, other way", (1, 4), (3, 1)),
    ("rank 3 by middle", (2, 3, 2), (2, 1, 2)),
    ("rank 3 by first", (2, 1, 1), (2, 2, 3)),
    ("rank 4 interleaved", (2, 1, 3, 1), (1, 2, 1, 2)),
    ("rank 1 of one element by rank 0", (1,), ()),
    ("empty same shape", (0, 3), (0, 3)),
    ("empty by row", (0, 3), (3,)),
    ("rank 0 by empty", (), (2, 0)),
    ("one by empty", (1, 3), (0, 3)),
    ("more than a packet", (37,), (37,)),
    ("long rows by a row", (2, 19), (19,)),
    ("long rows by a column", (3, 17), (3, 1)),
]


def mixed(low, high):
    """Numbers of both signs, none of them near zero and no two alike."""

    def pool(count, phase):
        values = spread(low, high, count + 1)
        values = values[(np.arange(count) * 7 + phase) % (count + 1)] if (count + 1) % 7 else values[:count]
        return np.where((np.arange(count) + phase) % 3 == 1, -values, values)

    return pool


def positive(low, high):
    return lambda count, phase: np.abs(mixed(low, high)(count, phase))


def whole(low, high):
    return lambda count, phase: low + (np.arange(count) * 5 + phase * 3) % (high - low + 1)


# op: pools for x and y, whether it is differentiable at these points, tolerance scale.
FLOAT_OPS = {
    "Add": (mixed(0.5, 8), mixed(0.25, 6), True),
    "Sub": (mixed(0.5, 8), mixed(0.25, 6), True),
    "Mul": (mixed(0.5, 8), mixed(0.25, 6), True),
    "Div": (mixed(0.5, 8), mixed(0.75, 6), True),
    "Mod": (mixed(0.5, 9), mixed(0.75, 4), False),
    "Pow": (positive(0.5, 4), mixed(0.25, 3), True),
    "Maximum": (mixed(0.5, 8), mixed(0.25, 6), True),
    "Minimum": (mixed(0.5, 8), mixed(0.25, 6), True),
    "SquaredDifference": (mixed(0.5, 8), mixed(0.25, 6), True),
    "Igamma": (positive(0.5, 6), positive(0.25, 8), True),
    "Igammac": (positive(0.5, 6), positive(0.25, 8), True),
    "Less": (whole(-2, 2), whole(-2, 1), False),
    "LessEqual": (whole(-2, 2), whole(-2, 1), False),
    "Greater": (whole(-2, 2), whole(-2, 1), False),
    "GreaterEqual": (whole(-2, 2), whole(-2, 1), False),
    "Equal": (whole(-1, 1), whole(-1, 0), False),
    "NotEqual": (whole(-1, 1), whole(-1, 0), False),
}

COMPARISONS = ["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"]
INTEGER_OPS = ["Add", "Sub", "Mul", "Div", "Mod", "Maximum", "Minimum", "SquaredDifference", *COMPARISONS]
COMPLEX_OPS = ["Add", "Sub", "Mul", "Div", "Pow", "SquaredDifference", "Equal", "NotEqual"]

PAIRS = np.array(
    [(x, y) for x in (-INF, -2.0, -1.0, -0.0, 0.0, 0.5, 2.0, INF, NAN) for y in (-INF, -2.0, -0.5, 0.0, 3.0, INF, NAN)]
)


def add(f):
    for op, (x_pool, y_pool, smooth) in FLOAT_OPS.items():
        _float_cases(f, op, x_pool, y_pool, smooth)
    for op in INTEGER_OPS:
        _integer_cases(f, op)
    _integer_powers(f)
    for op in COMPLEX_OPS:
        _complex_cases(f, op)
    for op in ("LogicalAnd", "LogicalOr"):
        _logical_cases(f, op)
    for op in ("Equal", "NotEqual"):
        raw(
            f,
            op,
            "bool",
            element([True, True, False, False], "bool"),
            element([True, False, True, False], "bool"),
            BOOL,
        )
        raw(
            f,
            op,
            "strings",
            element(["a", "b", "", "word"], "string"),
            element(["a", "c", "", "words"], "string"),
            STRING,
        )
    _gamma_by_scipy(f)
    _select(f)
    _errors(f)


def raw(f, op, name, x, y, types, **options):
    first, second = ("a", "x") if op.startswith("Igamma") else ("x", "y")
    f.raw(op, name, {first: x, second: y}, types, **options)


def _shaped(pool, shape, phase):
    return pool(int(np.prod(shape)), phase).reshape(shape)


def _float_cases(f, op, x_pool, y_pool, smooth):
    extra = {"gradient_inputs": [1]} if op.startswith("Igamma") else {}
    scale = {"Pow": 4, "Igamma": 8, "Igammac": 8}.get(op, 1)
    for name, x_shape, y_shape in SHAPES:
        x, y = element(_shaped(x_pool, x_shape, 0)), element(_shaped(y_pool, y_shape, 1))
        tied = op in ("Maximum", "Minimum") and bool(np.any(x.array == y.array))
        raw(f, op, name, x, y, FLOATS, gradient=smooth and not tied, tolerance_scale=scale, **extra)
    if op.startswith("Igamma"):
        raw(f, op, "edges", element([1, 2, 0.5, 3, 1, 4]), element([0, 0, 0, INF, 60, 0.5]), FLOATS)
        raw(f, op, "outside the domain", element([-1, 2, NAN, 1]), element([1, -1, 1, NAN]), FLOATS)
        raw(
            f,
            op,
            "float64 extremes",
            element([1e-3, 50, 200, 1e3, 2]),
            element([1e-6, 80, 150, 1e3, 40]),
            ["float64"],
            tolerance_scale=1e4,
        )
        return
    pairs = PAIRS
    if op in ("Maximum", "Minimum"):
        pairs = PAIRS[~np.isnan(PAIRS).any(axis=1)]
        raw(f, op, "not a number stays", element([NAN, 1, NAN]), element([1, NAN, NAN]), FLOATS)
    raw(f, op, "infinities, zeros, not a number", element(pairs[:, 0]), element(pairs[:, 1]), FLOATS)
    large = {
        "Add": (1e308, 1e308),
        "Sub": (-1e308, 1e308),
        "Mul": (1e200, 1e-200),
        "Div": (1e-300, 1e-200),
        "Mod": (1e17, 3.5),
        "Pow": (10.5, 290),
        "SquaredDifference": (1e160, -1e100),
    }
    x, y = large.get(op, (1e308, 2.0**-1022))
    raw(
        f,
        op,
        "float64 extremes",
        element([x, -y if op == "Pow" else y]),
        element([y, x]),
        ["float64"],
        tolerance_scale=16,
    )
    if op == "Pow":
        raw(
            f,
            op,
            "negative base",
            element([-2, -2, -0.5, -3, -1.5]),
            element([3, 2, 2, -1, 0.5]),
            FLOATS,
            tolerance_scale=scale,
        )


def _integer_cases(f, op):
    low = 1 if op in ("Div", "Mod") else 0
    x_top, y_top = (11, 11) if op in ("Mul", "SquaredDifference") else (40, 20)
    if op in COMPARISONS:
        x_top, y_top = 3, 2
    for name, x_shape, y_shape in SHAPES:
        x, y = _shaped(whole(20 if op == "Sub" else 0, x_top), x_shape, 0), _shaped(whole(low, y_top), y_shape, 1)
        raw(f, op, f"integers, {name}", element(x, "int64"), element(y, "int64"), INTS)
    if op in ("Div", "Mod"):
        x, y = np.meshgrid([-100, -7, -6, -1, 0, 1, 6, 7, 100], [-7, -3, -2, -1, 1, 2, 3, 7])
    else:
        x, y = np.meshgrid([-9, -2, -1, 0, 1, 5], [-9, -1, 0, 2])
    raw(f, op, "negative integers", element(x.ravel(), "int64"), element(y.ravel(), "int64"), SIGNED)
    raw(f, op, "negative integers, rank 0", element(-7, "int64"), element(2, "int64"), SIGNED)
    raw(
        f,
        op,
        "wide integers",
        element([2**40, -(2**40) + 1, 123456789], "int64"),
        element([3, 1000, -4567], "int64"),
        ["int64"],
    )
    raw(
        f,
        op,
        "int32 limits",
        element([2**31 - 1, -(2**31), 7], "int64"),
        element([1, 1, 3], "int64"),
        ["int64", "int32"],
    )
    raw(
        f,
        op,
        "high half of uint8",
        element([250, 200, 255], "int64"),
        element([5, 100, 1], "int64"),
        ["uint8", "uint16", "uint32", "int16", "int32"],
    )


def _integer_powers(f):
    for name, x_shape, y_shape in SHAPES:
        x, y = _shaped(whole(0, 3), x_shape, 1), _shaped(whole(0, 4), y_shape, 1)
        f.case(
            "Pow",
            f"integers, {name}",
            [element(x, "int64"), element(y, "int64")],
            [element(np.power(x, y), "int64")],
            INTS,
            f"{NUMPY} power int64",
        )
    x, y = np.meshgrid([-3, -2, -1, 0, 1, 2], [0, 1, 2, 3, 4])
    f.case(
        "Pow",
        "negative integers",
        [element(x.ravel(), "int64"), element(y.ravel(), "int64")],
        [element(np.power(x, y).ravel(), "int64")],
        SIGNED,
        f"{NUMPY} power int64",
    )
    f.case(
        "Pow",
        "wide integers",
        [element([7, -3, 2], "int64"), element([22, 39, 62], "int64")],
        [element([7**22, (-3) ** 39, 2**62], "int64")],
        ["int64"],
        "Python's integers",
    )


def _complex_cases(f, op):
    x = np.array([1 + 2j, -0.5 + 1j, 3 - 1.5j, 0.25j, -2, 1.5 + 0.5j])
    y = np.array([2 - 1j, 0.5 + 0.5j, 3 - 1.5j, -1j, 1.25 + 1j, -1])
    z = lambda values: element(values, "complex128")
    raw(f, op, "complex", z(x), z(y), COMPLEX, tolerance_scale=4)
    raw(f, op, "complex by row", z(x.reshape(2, 3)), z(y[:3]), COMPLEX, tolerance_scale=4)
    raw(f, op, "complex rank 0", z(x[1]), z(y), COMPLEX, tolerance_scale=4)
    raw(f, op, "complex empty", z(np.zeros((0, 2))), z(np.zeros((1, 2))), COMPLEX)


def _logical_cases(f, op):
    for name, x_shape, y_shape in SHAPES:
        x, y = (element(_shaped(whole(0, 1), s, phase) > 0, "bool") for s, phase in ((x_shape, 0), (y_shape, 1)))
        raw(f, op, name, x, y, BOOL)
    raw(
        f,
        op,
        "truth table",
        element([True, True, False, False], "bool"),
        element([True, False, True, False], "bool"),
        BOOL,
    )


def _gamma_by_scipy(f):
    a, x = np.meshgrid(spread(0.5, 8, 4), spread(0.25, 12, 5))
    for op, function in (("Igamma", special.gammainc), ("Igammac", special.gammaincc)):
        f.case(
            op,
            "by another library",
            [element(a), element(x)],
            [element(function(a, x))],
            FLOATS,
            f"{SCIPY} special.{function.__name__} float64",
            gradient=True,
            gradient_inputs=[1],
            tolerance_scale=4,
        )


def _select(f):
    def select(name, condition, t, e, types, **options):
        f.raw("Select", name, {"condition": fixed(condition, "bool"), "x": t, "y": e}, types, **options)

    def values(shape, scale=1):
        count = int(np.prod(shape))
        return np.arange(1, count + 1).reshape(shape) * scale, (np.arange(count)[::-1] + 40).reshape(shape) * scale

    for name, condition_shape, shape in [
        ("same shape", (2, 3), (2, 3)),
        ("rank 0", (), ()),
        ("vector", (5,), (5,)),
        ("rows by a vector", (3,), (3, 2)),
        ("blocks by a vector", (2,), (2, 3, 2)),
        ("rank 0 condition", (), (2, 3)),
        ("empty", (0, 2), (0, 2)),
        ("empty rows by a vector", (2,), (2, 0)),
        ("no rows by a vector", (0,), (0, 3)),
        ("rank 4", (1, 2, 2, 3), (1, 2, 2, 3)),
        ("more than a packet", (37,), (37,)),
    ]:
        count = int(np.prod(condition_shape))
        condition = (np.arange(count) % 3 != 1).reshape(condition_shape)
        t, e = values(shape)
        select(name, condition, element(t), element(e), REALS)
        t, e = values(shape, 0.125)
        select(f"{name}, fractions", condition, element(t), element(-e), FLOATS, gradient=True)
    chosen = [True, False, True]
    select("bool", chosen, element([True, False, False], "bool"), element([False, True, True], "bool"), BOOL)
    select("strings", chosen, element(["a", "b", "c"], "string"), element(["d", "e", "f"], "string"), STRING)
    select("complex", chosen, element([1j, 2, 3], "complex128"), element([4, 5 + 1j, 6], "complex128"), COMPLEX)
    select("negative integers", chosen, element([-1, 2, -3], "int64"), element([4, -5, 6], "int64"), SIGNED)
    select("what is not chosen does not matter", chosen, element([1, NAN, -INF]), element([NAN, 2, INF]), FLOATS)
    t, e = (element(v) for v in values((2, 3)))
    f.error("Select", "branches of different shapes", [fixed([True, False], "bool"), t, element([[1, 2]])], "build")
    f.error("Select", "condition of another shape", [fixed([[True, False, True]], "bool"), t, e], "build")
    f.error("Select", "vector of another length", [fixed([True, False, True], "bool"), t, e], "build")
    f.error("Select", "condition is not bool", [fixed([[1, 0, 1], [0, 1, 0]]), t, e], "build")
    f.error(
        "Select",
        "branches of different types",
        [fixed(True, "bool"), fixed(1, "int32"), fixed(1.0, "float32")],
        "build",
    )


def _errors(f):
    ops = list(FLOAT_OPS)
    for op in ops:
        f.error(
            op,
            "shapes do not broadcast",
            [fixed(np.ones((2, 3)), "float32"), fixed(np.ones((2, 2)), "float32")],
            "build",
        )
        f.error(op, "empty against two", [fixed(np.ones((0,)), "float32"), fixed(np.ones((2,)), "float32")], "build")
        f.error(op, "different element types", [fixed([1.0], "float32"), fixed([1.0], "float64")], "build")
    for op in ("LogicalAnd", "LogicalOr"):
        f.error(
            op, "shapes do not broadcast", [fixed(np.ones((2, 3)), "bool"), fixed(np.ones((2, 2)), "bool")], "build"
        )
        f.error(op, "not bool", [fixed([1]), fixed([0])], "build")
    for op in ("Less", "Greater", "Maximum"):
        f.error(op, "complex", [fixed([1j], "complex64"), fixed([1], "complex64")], "build")
    for op in ("Mul", "Sub"):
        f.error(op, "strings", [fixed(["a"], "string"), fixed(["b"], "string")], "build")
    for dtype in INTS:
        for op in ("Div", "Mod"):
            f.error(op, f"zero divisor, {dtype}", [fixed([4, 6, 8], dtype), fixed([2, 0, 4], dtype)], "run")
    for op in ("Div", "Mod"):
        f.error(op, "zero divisor of rank 0", [fixed([4, 6]), fixed(0)], "run")
        f.error(op, "zero divided by zero", [fixed(0), fixed(0)], "run")
    f.error("Pow", "integer to a negative power", [fixed([2, 3]), fixed([2, -1])], "run")
