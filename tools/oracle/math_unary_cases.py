"""Elementwise ops of one input."""

import numpy as np
from scipy import special

from case_file import SCIPY, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, REALS, SIGNED, spread

INF, NAN = np.inf, np.nan
TINY, HUGE = 2.0**-120, 2.0**120

# op: (low, high) of an interval where the op is smooth, further points where it may not be, extreme points.
FLOAT_OPS = {
    "Abs": ((0.25, 8), [-3.5, -0.0, 0, 2], [INF, -INF, NAN, HUGE, -TINY]),
    "Neg": ((-8, 8), [-0.5, 0], [INF, -INF, NAN, HUGE, TINY]),
    "Inv": ((0.25, 8), [-4, -0.125], [INF, -INF, NAN, 0, HUGE]),
    "Square": ((-8, 8), [0, -12], [INF, -INF, NAN, 2.0**60]),
    "Sqrt": ((0.25, 90), [0, 4, 1e4], [INF, NAN, -1, HUGE, TINY]),
    "Rsqrt": ((0.25, 90), [4, 1 / 64], [INF, NAN, 0, HUGE, TINY]),
    "Exp": ((-5, 5), [0, 1, -8], [INF, -INF, NAN, 1000, -1000]),
    "Log": ((0.125, 16), [1, 100], [INF, NAN, 0, -1, HUGE, TINY]),
    "Log1p": ((-0.75, 8), [0, 100, 2.0**-14], [INF, NAN, -1, -2, HUGE, TINY]),
    "Tanh": ((-4, 4), [0, 9, -9, 2.0**-14], [INF, -INF, NAN, 1000, -1000, TINY]),
    "Sigmoid": ((-6, 6), [0, 9, -9], [INF, -INF, NAN, 1000, -1000, TINY]),
    "Sin": ((-7, 7), [0, 40, 2.0**-14], [INF, -INF, NAN, TINY]),
    "Cos": ((-7, 7), [0, 40, 2.0**-14], [INF, -INF, NAN, TINY]),
    "Lgamma": ((0.125, 12), [1, 2, -0.5, -2.5, 40], [INF, NAN, 0, -1, 2.0**-60]),
    "Digamma": ((0.25, 12), [-0.5, -2.25, 40], [INF, NAN, 2.0**60]),
    "Erf": ((-2.5, 2.5), [0, 4, -4, 2.0**-13], [NAN, 1000, -1000, TINY]),
    "Erfc": ((-2.5, 2.5), [0, 3.5, -4], [INF, -INF, NAN, 1000, -1000, TINY]),
    "Sign": (None, [-3.5, 0, 2.5, -0.125, -0.0], [INF, -INF, HUGE, -TINY]),
    "Floor": (None, [-2, -1.5, -0.25, 0, 0.25, 0.5, 1.5, 2, 100.5], [INF, -INF, NAN, HUGE, TINY, -TINY]),
    "Ceil": (None, [-2, -1.5, -0.25, 0, 0.25, 0.5, 1.5, 2, 100.5], [INF, -INF, NAN, HUGE, TINY]),
    "Round": (None, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.25, 0.75, -1.25, 101.5], [INF, -INF, NAN, HUGE, TINY]),
}

INTEGER_POINTS = {
    "Abs": [-100, -1, 0, 1, 127],
    "Neg": [-100, -1, 0, 1, 127],
    "Square": [-11, -1, 0, 1, 3],
    "Sign": [-100, -1, 0, 1, 127],
}

COMPLEX_POINTS = [0.5 + 0.25j, -1.5 + 1j, 2 - 0.75j, 1j, -0.25 - 2j, 3]
COMPLEX_OPS = ["Neg", "Inv", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid", "Sin", "Cos"]

PREDICATES = ["IsNan", "IsInf", "IsFinite"]


def add(f):
    for op, (interval, points, extremes) in FLOAT_OPS.items():
        _float_cases(f, op, interval, points, extremes)
    for op, points in INTEGER_POINTS.items():
        _integer_cases(f, op, points)
    for op in COMPLEX_OPS:
        raw(f, op, "complex", element(COMPLEX_POINTS, "complex128"), COMPLEX)
        raw(f, op, "complex, rank 0", element(0.75 - 0.5j, "complex128"), COMPLEX)
        raw(f, op, "complex, empty", element(np.zeros((2, 0)), "complex128"), COMPLEX)
    for op in PREDICATES:
        raw(f, op, "every class of number", element([0.0, -0.0, 1.5, -2, INF, -INF, NAN, -NAN, HUGE, TINY]), FLOATS)
        raw(f, op, "small numbers", element([0.0, 1.5, -2, INF, -INF, NAN]), FLOATS)
        for name, value in (("rank 0", 1.5), ("rank 0, infinite", -INF), ("rank 0, not a number", NAN)):
            raw(f, op, name, element(value), FLOATS)
        raw(f, op, "empty", element(np.zeros((0, 3))), FLOATS)
        raw(f, op, "matrix", element([[NAN, 1, INF], [0, -INF, 2]]), FLOATS)
        alternating = np.where(np.arange(37) % 5 == 0, NAN, np.where(np.arange(37) % 3 == 0, -INF, np.arange(37)))
        raw(f, op, "more than a packet", element(alternating), FLOATS)
        raw(f, op, "subnormal and largest float64", element([5e-324, 1.7976931348623157e308]), FLOATS)
    for name, shape in [
        ("rank 0", ()),
        ("vector", (37,)),
        ("matrix", (2, 3)),
        ("empty", (0, 2)),
        ("rank 4", (1, 2, 1, 3)),
    ]:
        count = int(np.prod(shape))
        truth = (np.arange(count) * 5 % 7 % 2 == 0).reshape(shape)
        f.raw("LogicalNot", name, {"x": element(truth, "bool")}, BOOL)
    f.raw("LogicalNot", "rank 0, true", {"x": element(False, "bool")}, BOOL)
    f.error("LogicalNot", "not bool", [fixed([1, 0])], "build")
    for op in ("Sqrt", "Exp", "Tanh", "Sin", "IsNan"):
        f.error(op, "bool", [fixed([True], "bool")], "build")
    f.error("Neg", "string", [fixed(["x"], "string")], "build")


def raw(f, op, name, x, types, **options):
    if op == "Digamma":
        options.setdefault("terms", 1)  # what cancels near its zeros
    f.raw(op, name, {"x": x}, types, **options)


def _float_cases(f, op, interval, points, extremes):
    if interval:
        low, high = interval
        smooth = spread(low, high, 6)
        raw(f, op, "matrix", element(smooth.reshape(2, 3)), FLOATS, gradient=True)
        raw(f, op, "rank 0", element(smooth[3]), FLOATS, gradient=True)
        raw(f, op, "more than a packet", element(spread(low, high, 37)), FLOATS, gradient=True)
        raw(f, op, "rank 4", element(spread(low, high, 12)[::-1].reshape(2, 1, 3, 2)), FLOATS, gradient=True)
        raw(f, op, "17 digits", element(np.linspace(low, high, 5) + (high - low) / 30), ["float64"], gradient=True)
        if low < 0 < high and op not in ("Abs",):
            raw(f, op, "through zero", element([-0.5, 0, 0.5]), FLOATS, gradient=True)
    else:
        raw(f, op, "matrix", element(np.array(points[:4]).reshape(2, 2)), FLOATS)
        raw(f, op, "between the steps", element([-2.25, -0.75, 0.25, 1.75, 30.25]), FLOATS, gradient=True)
        raw(f, op, "rank 0", element(points[1]), FLOATS)
        raw(f, op, "more than a packet", element(np.arange(-18, 19) / 4), FLOATS)
    raw(f, op, "points", element(points), FLOATS)
    raw(f, op, "empty", element(np.zeros((2, 0, 3))), FLOATS, gradient=bool(interval))
    raw(f, op, "extremes", element(extremes), FLOATS)
    everywhere = [v for v in extremes if v not in (HUGE, TINY, -TINY, 2.0**60, 2.0**-60)]
    if len(everywhere) != len(extremes):
        raw(f, op, "extremes of every type", element(everywhere), FLOATS)
    _wide_extremes(f, op)


def _wide_extremes(f, op):
    """Arguments where a careless formula loses all digits; compared by relative error."""
    points = {
        "Log1p": [1e-10, -1e-10, 1e-300],
        "Tanh": [1e-10, -1e-8],
        "Sin": [1e-10, 1e5],
        "Erf": [1e-10, -1e-12],
        "Erfc": [6, 10, 20],
        "Sigmoid": [-40, -700],
        "Lgamma": [1e-10, 1e10, 171.5, 1e300, 0.999999, 2.000001],
        "Digamma": [1e-10, 1e10, 1.4616321449683622 + 1e-3],
        "Exp": [-700, 700],
        "Sqrt": [1e-300, 1e300],
        "Rsqrt": [1e-300, 1e300],
        "Inv": [1e-300, 1e300],
        "Log": [1e-300, 1e300, 1.0000001],
        "Square": [1e-150, 1e150],
        "Cos": [1e5, 1.5707963267948966 - 1e-6],
        "Round": [4503599627370495.5, 4503599627370497.5, 0.49999999999999994],
        "Floor": [4503599627370495.5, -1e-300, 1e300],
        "Ceil": [4503599627370495.5, 1e-300, -1e300],
    }
    if op in points:
        raw(f, op, "float64 extremes", element(points[op]), ["float64"], tolerance_scale=16)
    if op == "Erf":
        # TensorFlow 2.21 gives "not a number" here.
        f.case(op, "infinities", [element([INF, -INF])], [element([1, -1])], FLOATS, f"{SCIPY} special.erf float64")
    if op in ("Erfc", "Lgamma", "Digamma"):
        # A second, independent implementation at the points where TensorFlow's might share a weakness with ours.
        function = {"Erfc": special.erfc, "Lgamma": special.gammaln, "Digamma": special.digamma}[op]
        x = spread(0.5, 8, 9)
        f.case(
            op,
            "by another library",
            [element(x)],
            [element(function(x))],
            FLOATS,
            f"{SCIPY} special.{function.__name__} float64",
            gradient=True,
        )


def _integer_cases(f, op, points):
    raw(f, op, "integers", element(points, "int64"), SIGNED)
    natural = [abs(p) for p in points]
    if op == "Abs" or op == "Sign":
        f.case(
            op,
            "numbers",
            [element(natural)],
            [element(natural if op == "Abs" else np.sign(natural))],
            REALS if op == "Sign" else REALS[:8],
            "the definition",
        )
    if op == "Square":
        raw(f, op, "unsigned integers", element([0, 1, 2, 9, 11, 15], "int64"), INTS)
        raw(f, op, "unsigned integers, more than a packet", element(np.arange(37) % 12, "int64"), INTS)
    raw(f, op, "integers, rank 0", element(points[1], "int64"), SIGNED)
    raw(f, op, "integers, empty", element(np.zeros((0, 2)), "int64"), SIGNED)
    raw(f, op, "integers, more than a packet", element(np.arange(-18, 19) % 12 - 6, "int64"), SIGNED)
    wide = {
        "Abs": [-(2**40), 2**62],
        "Neg": [-(2**40), 2**62],
        "Square": [-(2**20), 2**31 - 1],
        "Sign": [-(2**40), 2**62],
    }
    raw(f, op, "wide integers", element(wide[op], "int64"), SIGNED)
