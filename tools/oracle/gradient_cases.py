"""TensorFlow's own gradients where finite differences say nothing: of complex numbers, at ties, zeros and kinks.

Of a complex function both conventions exist; TensorFlow's gradient is that of the real part of sum(conj(dy) y) taken as a
pair of real numbers, hence the conjugates. At a tie or a kink any subgradient would do; these are the ones TensorFlow takes.
"""

import numpy as np

from case_file import element, fixed
from element_types import COMPLEX, FLOATS
from pool_cases import attributes

INF, NAN = np.inf, np.nan

POINTS = np.array([0.5 + 0.25j, -1.5 + 1j, 2 - 0.75j, 1j, -0.25 - 2j, 3])
OTHERS = np.array([2 - 1j, 0.5 + 0.5j, 3 - 1.5j, -1j, 1.25 + 1j, -1])


def add(f):
    _complex_elementwise(f)
    _complex_sums(f)
    _complex_moves(f)
    _ties(f)
    _kinks(f)
    _zeros(f)
    _reductions(f)
    _pooling(f)
    _losses(f)


def complex_of(values):
    return element(values, "complex128")


def complex_eighths(*shape, phase=0):
    count = int(np.prod(shape))
    real = ((np.arange(count) * 7 + phase * 5) % 25 - 12) / 8
    imaginary = ((np.arange(count) * 11 + phase * 3) % 19 - 9) / 8
    return complex_of((real + 1j * imaginary).reshape(shape))


def raw(f, op, name, arguments, types, **options):
    f.raw(op, name, arguments, types, **{"with_gradients": True, "any_zero": True, **options})


def binary(f, op, name, x, y, types, **options):
    first, second = ("a", "x") if op.startswith("Igamma") else ("x", "y")
    raw(f, op, name, {first: x, second: y}, types, **options)


def _complex_elementwise(f):
    for op in ("Neg", "Inv", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid", "Sin", "Cos"):
        raw(f, op, "complex", {"x": complex_of(POINTS)}, COMPLEX, tolerance_scale=8)
    raw(f, "Conj", "complex", {"input": complex_of(POINTS)}, COMPLEX)
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "SquaredDifference"):
        shapes = [("", (2, 3), (2, 3)), (" by row", (2, 3), (3,)), (" by column", (2, 3), (2, 1)), (" by one", (2, 3), ())]
        for name, x_shape, y_shape in shapes:
            x, y = np.resize(POINTS, x_shape), np.resize(OTHERS, y_shape)
            binary(f, op, "complex" + name, complex_of(x), complex_of(y), COMPLEX, tolerance_scale=16)
            if name:
                binary(f, op, f"complex{name}, other way", complex_of(y), complex_of(x), COMPLEX, tolerance_scale=16)
    x, y = np.array([0, 0, 0]), np.array([1, 2, 1.5 + 1j])
    binary(f, "Pow", "complex base 0", complex_of(x), complex_of(y), COMPLEX, tolerance_scale=4)
    raw(f, "AddN", "complex", {"inputs": [complex_eighths(2, 2, phase=i) for i in range(3)]}, COMPLEX)
    raw(f, "Select", "complex", {"condition": fixed([True, False, True], "bool"), "x": complex_of(POINTS[:3]),
                                 "y": complex_of(OTHERS[:3])}, COMPLEX)


def _complex_sums(f):
    for op in ("Sum", "Mean", "Prod"):
        for name, axes in (("rows", [1]), ("columns", [0]), ("all", [0, 1]), ("nothing", [])):
            arguments = {"input": complex_eighths(3, 4), "axis": fixed(axes)}
            raw(f, op, f"complex, {name}", arguments, COMPLEX, tolerance_scale=16)
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        attrs = {key: True for key, on in (("transpose_a", a), ("transpose_b", b)) if on}
        x, y = complex_eighths(*((3, 2) if a else (2, 3))), complex_eighths(*((4, 3) if b else (3, 4)), phase=1)
        raw(f, "MatMul", f"complex, {a} {b}", {"a": x, "b": y}, COMPLEX, attrs=attrs, tolerance_scale=4)
        attrs = {key: True for key, on in (("adj_x", a), ("adj_y", b)) if on}
        x, y = complex_eighths(2, *((3, 2) if a else (2, 3))), complex_eighths(2, *((4, 3) if b else (3, 4)), phase=1)
        raw(f, "BatchMatMul", f"complex, {a} {b}", {"x": x, "y": y}, COMPLEX, attrs=attrs, tolerance_scale=4)
    raw(f, "BiasAdd", "complex", {"value": complex_eighths(3, 2), "bias": complex_eighths(2, phase=1)}, COMPLEX)
    for dtype in ("int32", "int64"):
        ids = fixed([1, 0, 1, 2], dtype)
        arguments = {"data": complex_eighths(4, 2), "segment_ids": ids, "num_segments": fixed(4)}
        raw(f, "UnsortedSegmentSum", f"complex, {dtype}", arguments, COMPLEX)


def _complex_moves(f):
    z = complex_eighths(2, 3)
    raw(f, "Identity", "complex", {"input": z}, COMPLEX)
    raw(f, "Reshape", "complex", {"tensor": z, "shape": fixed([3, 2])}, COMPLEX)
    raw(f, "Transpose", "complex", {"x": z, "perm": fixed([1, 0])}, COMPLEX)
    raw(f, "Slice", "complex", {"input": z, "begin": fixed([0, 1]), "size": fixed([2, 2])}, COMPLEX)
    raw(f, "Pad", "complex", {"input": z, "paddings": fixed([[1, 0], [0, 2]])}, COMPLEX)
    raw(f, "Gather", "complex", {"params": z, "indices": fixed([1, 1, 0])}, COMPLEX)
    raw(f, "BroadcastTo", "complex", {"input": complex_eighths(2, 1), "shape": fixed([2, 3])}, COMPLEX)
    raw(f, "Pack", "complex", {"values": [z, complex_eighths(2, 3, phase=1)]}, COMPLEX, attrs={"axis": 1})
    raw(f, "Concat", "complex", {"concat_dim": fixed(1), "values": [z, complex_eighths(2, 1, phase=1)]}, COMPLEX)


def _ties(f):
    x = element([1, 2, 3, 0.0, -0.0, 0.0, INF, -INF])
    y = element([1, 3, 2, 0.0, 0.0, -0.0, INF, -INF])
    for op in ("Maximum", "Minimum"):
        binary(f, op, "ties", x, y, FLOATS)
        binary(f, op, "ties by row", element([[1, 2, 3], [3, 2, 1]]), element([1, 2, 1]), FLOATS)
        binary(f, op, "ties by one", element([[1, 2, 3], [3, 2, 1]]), element(2), FLOATS)
        binary(f, op, "not a number", element([NAN, 1, NAN]), element([1, NAN, NAN]), FLOATS)
    binary(f, "SquaredDifference", "ties", element([1, 2, 3]), element([1, 2, 4]), FLOATS)


def _kinks(f):
    around_zero = element([-1, -0.0, 0.0, 2.0**-14, -(2.0**-14), 1])
    for op in ("Relu", "Relu6", "Elu", "Softplus", "Softsign"):
        # TensorFlow's Elu, exp(x) - 1, loses digits near 0.
        points = element([-1, -0.0, 0.0, 0.5, -0.5, 1]) if op == "Elu" else around_zero
        raw(f, op, "around 0", {"features": points}, FLOATS, tolerance_scale=2)
    raw(f, "Relu6", "around 6", {"features": element([5.75, 6, 6.25, 1000, INF])}, FLOATS)
    raw(f, "Relu", "not a number", {"features": element([NAN, 1, -INF, INF])}, FLOATS)
    raw(f, "Abs", "around 0", {"x": around_zero}, FLOATS)
    raw(f, "Abs", "infinities", {"x": element([INF, -INF, NAN])}, FLOATS)
    raw(f, "Sign", "steps", {"x": element([-1.5, -1, -0.5, 0, 0.5, 1, 1.5])}, FLOATS)
    condition = fixed([True, False, True], "bool")
    raw(f, "Select", "what is not chosen", {"condition": condition, "x": element([1, NAN, -INF]),
                                            "y": element([NAN, 2, INF])}, FLOATS)


def _zeros(f):
    raw(f, "Sqrt", "zero", {"x": element([0.0, 4, INF])}, FLOATS)
    raw(f, "Rsqrt", "zero and infinity", {"x": element([4, INF])}, FLOATS)
    raw(f, "Log", "zero", {"x": element([0.0, 1, INF])}, FLOATS)
    raw(f, "Log1p", "minus one", {"x": element([-1, 0, 1])}, FLOATS)
    raw(f, "Inv", "infinity", {"x": element([INF, -INF, 2])}, FLOATS)
    raw(f, "Square", "zero", {"x": element([0.0, -0.0, 3])}, FLOATS)
    raw(f, "Exp", "limits", {"x": element([-INF, 0, INF])}, FLOATS)
    for op in ("Tanh", "Sigmoid"):
        raw(f, op, "limits", {"x": element([-INF, -1000, 0, 1000, INF])}, FLOATS)
    raw(f, "Erf", "limits", {"x": element([-1000, 0, 1000])}, FLOATS)
    raw(f, "Erfc", "limits", {"x": element([-1000, 0, 1000])}, FLOATS)
    binary(f, "Div", "zero numerator", element([0.0, -0.0, 1]), element([2, 4, INF]), FLOATS)
    binary(f, "Div", "zero denominator", element([1.0, -1, 0]), element([0.0, 0, 0]), FLOATS)
    binary(f, "Mul", "zero", element([0.0, 0, 2]), element([3, 0, 0.0]), FLOATS)
    base, exponent = (v.ravel() for v in np.meshgrid([0.0, 1, 2, -2], [0.0, 1, 2, 3]))
    binary(f, "Pow", "base and exponent 0, 1, 2", element(base), element(exponent), FLOATS, tolerance_scale=2)
    binary(f, "Pow", "base 0, broken exponents", element([0.0, 0, 0]), element([0.5, 1.5, 2.5]), FLOATS)
    binary(f, "Pow", "base 0, negative exponents", element([0.0, 0]), element([-1, -2]), FLOATS)
    binary(f, "Pow", "negative base", element([-2, -0.5, -1.5]), element([2, 3, -1]), FLOATS, tolerance_scale=2)
    raw(f, "L2Loss", "zeros", {"t": element([0.0, -0.0, 3])}, FLOATS)


def _reductions(f):
    tied = element([[1, 3, 3], [2, 2, 2], [-1, -2, -1]])
    for op in ("Max", "Min"):
        for name, axes in (("rows", [1]), ("columns", [0]), ("all", [0, 1])):
            raw(f, op, f"ties, {name}", {"input": tied, "axis": fixed(axes)}, FLOATS, tolerance_scale=2)
        zeros = element([[0.0, -0.0, -1], [0.0, 0.0, 1]])
        raw(f, op, "zeros of either sign", {"input": zeros, "axis": fixed([1])}, FLOATS)
        infinite = element([[INF, INF, 1], [-INF, 2, -INF]])
        raw(f, op, "infinities", {"input": infinite, "axis": fixed([1])}, FLOATS)
    for name, row in {"one zero": [2.0, 0, 3], "two zeros": [0.0, 0, 3], "no zero": [2.0, -1, 3]}.items():
        raw(f, "Prod", name, {"input": element([row, row[::-1]]), "axis": fixed([1])}, FLOATS, tolerance_scale=2)
        raw(f, "Prod", f"{name}, all", {"input": element([row, row[::-1]]), "axis": fixed([0, 1])}, FLOATS)


def _pooling(f):
    """TensorFlow's kernel of MaxPool gives the gradient of a window to its first maximum."""
    for padding in ("VALID", "SAME"):
        for name, values in (
            ("all alike", np.ones((1, 3, 4, 2))),
            ("some alike", (np.arange(24) * 5 % 3 * 1.0).reshape(1, 3, 4, 2)),
            ("zeros of either sign", np.where(np.arange(24) % 2 == 0, 0.0, -0.0).reshape(1, 3, 4, 2)),
            ("negative", -(np.arange(24) // 2 % 3 * 1.0 + 1).reshape(1, 3, 4, 2)),
        ):
            raw(f, "MaxPool", f"ties, {name}, {padding}", {"input": element(values)}, FLOATS,
                attrs=attributes(2, 2, 1, 1, padding))
    values = element((np.arange(24) * 5 % 7 / 4).reshape(1, 3, 4, 2))
    raw(f, "AvgPool", "at the border", {"value": values}, FLOATS, attrs=attributes(2, 2, 1, 1, "SAME"),
        tolerance_scale=2)


def _losses(f):
    for op in ("Softmax", "LogSoftmax"):
        raw(f, op, "ties", {"logits": element([[1, 1, 1], [0.0, -0.0, -100]])}, FLOATS, tolerance_scale=4)
        raw(f, op, "one dominates", {"logits": element([[1000, 0, -1000], [-1000, -1000, 1000]])}, FLOATS,
            tolerance_scale=4)
    x, labels = element([[1, 1, 1], [0.0, 100, -100]]), element([[0.5, 0.25, 0.25], [0, 1, 0]])
    raw(f, "SoftmaxCrossEntropyWithLogits", "ties, and a certain class", {"features": x, "labels": labels}, FLOATS,
        with_gradients=[0], tolerance_scale=4)
    arguments = {"features": x, "labels": fixed([2, 1], "int64")}
    raw(f, "SparseSoftmaxCrossEntropyWithLogits", "ties, and a certain class", arguments, FLOATS, with_gradients=[0],
        tolerance_scale=4)
