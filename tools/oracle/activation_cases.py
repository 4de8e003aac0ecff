"""Activations and their gradients, BiasAdd, Softmax and LogSoftmax."""

import numpy as np
from scipy import special

from case_file import SCIPY, element, fixed
from element_types import COMPLEX, FLOATS, INTS, REALS, SIGNED, spread

INF, NAN = np.inf, np.nan

# op: points away from kinks, points on and near kinks, extremes
ACTIVATIONS = {
    "Relu": ([-4, -1.5, -0.25, 0.25, 1.5, 4], [-1, -0.0, 0, 1], [INF, -INF]),
    "Relu6": ([-4, -0.25, 0.25, 3, 5.5, 7.5], [0, 6, -6, 6.25, 5.75], [INF, -INF, 1000]),
    "Elu": ([-4, -1.5, -0.25, 0.25, 1.5, 4], [0, -0.0078125, 0.0078125], [INF, -INF, -1000, 1000]),
    "Softplus": ([-6, -1.5, -0.25, 0, 1.5, 6], [-9, 9, 0], [INF, -INF, -1000, 1000, NAN]),
    "Softsign": ([-4, -1.5, -0.25, 0.25, 1.5, 4], [0, -0.0078125, 100], [1000, -1000, NAN]),
}
SHAPES = [
    ("rank 0", ()),
    ("matrix", (2, 3)),
    ("empty", (0, 3)),
    ("rank 4", (1, 2, 3, 1)),
    ("more than a packet", (37,)),
]


def add(f):
    for op, (smooth, kinks, extremes) in ACTIVATIONS.items():
        _activation(f, op, np.array(smooth), kinks, extremes)
    _integers(f)
    _float64_extremes(f)
    _bias(f)
    for op in ("Softmax", "LogSoftmax"):
        _softmax(f, op)


def _gradients(count):
    return ((np.arange(count) * 5 + 3) % 17 - 8) / 4 + 0.125


def _activation(f, op, smooth, kinks, extremes):
    second = "outputs" if op == "Elu" else "features"
    for name, shape in SHAPES:
        count = int(np.prod(shape))
        x = smooth[np.arange(count) % len(smooth)].reshape(shape)
        f.raw(op, name, {"features": element(x)}, FLOATS, gradient=True)
        features = np.where(x < 0, -0.5 + x / 16, x) if op == "Elu" else x
        f.raw(
            f"{op}Grad",
            name,
            {"gradients": element(_gradients(count).reshape(shape)), second: element(features)},
            FLOATS,
            gradient=True,
        )
    f.raw(op, "points", {"features": element(kinks)}, FLOATS)
    f.raw(op, "extremes", {"features": element(extremes)}, FLOATS)
    f.raw(op, "not a number stays", {"features": element([NAN, 1, NAN])}, FLOATS)
    if op != "Elu":
        f.raw(f"{op}Grad", "points", {"gradients": element(_gradients(len(kinks))), second: element(kinks)}, FLOATS)
    else:
        f.raw("EluGrad", "points", {"gradients": element([2, 2, 2]), second: element([0, -1, -0.9921875])}, FLOATS)
    f.raw(
        f"{op}Grad",
        "infinite gradients",
        {"gradients": element([INF, -INF, NAN]), second: element([0.5, 1, 2])},
        FLOATS,
    )
    f.error(op, "string", [fixed(["x"], "string")], "build")
    f.error(op, "bool", [fixed([True], "bool")], "build")
    f.error(f"{op}Grad", "shapes differ", [fixed([1.0, 2.0], "float32"), fixed([1.0], "float32")], "build")
    f.error(f"{op}Grad", "element types differ", [fixed([1.0], "float32"), fixed([1.0], "float64")], "build")


def _integers(f):
    for op in ("Relu", "Relu6"):
        f.raw(op, "integers", {"features": element([-7, -1, 0, 1, 6, 7, 100], "int64")}, SIGNED)
        f.raw(op, "unsigned", {"features": element([0, 1, 6, 7, 100], "int64")}, INTS)
        f.raw(op, "integers, empty", {"features": element(np.zeros((0, 2)), "int64")}, INTS)
        f.raw(
            f"{op}Grad",
            "integers",
            {"gradients": element([3, -4, 5, 6, -7], "int64"), "features": element([-2, 0, 1, 5, 9], "int64")},
            SIGNED,
        )
        f.raw(
            f"{op}Grad",
            "unsigned",
            {"gradients": element([3, 4, 5, 6, 7, 100], "int64"), "features": element([0, 1, 5, 6, 9, 127], "int64")},
            INTS,
        )


def _float64_extremes(f):
    x = np.array([-700, -40, -1e-9, 1e-9, 40, 700])
    f.case(
        "Softplus",
        "float64 extremes",
        [element(x)],
        [element(np.logaddexp(0, x))],
        ["float64"],
        "numpy logaddexp float64",
        tolerance_scale=16,
    )
    f.case(
        "Elu",
        "float64 extremes",
        [element([-1e-9, -1e-300, -40])],
        [element(np.expm1([-1e-9, -1e-300, -40]))],
        ["float64"],
        "numpy expm1 float64",
        tolerance_scale=16,
    )
    f.case(
        "SoftplusGrad",
        "float64 extremes",
        [element(np.ones(6)), element(x)],
        [element(special.expit(x))],
        ["float64"],
        f"{SCIPY} special.expit float64",
        tolerance_scale=16,
    )


def _bias(f):
    def eighths(*shape, phase=0):
        return (((np.arange(int(np.prod(shape))) * 7 + phase * 5) % 25 - 12) / 8).reshape(shape)

    for name, shape in [
        ("matrix", (2, 3)),
        ("NHWC", (2, 2, 1, 3)),
        ("rank 3", (2, 2, 3)),
        ("rank 5", (1, 2, 1, 2, 3)),
        ("one channel", (4, 1)),
        ("odd channels", (3, 17)),
        ("no rows", (0, 3)),
        ("no channels", (2, 0)),
        ("one row", (1, 5)),
    ]:
        f.raw(
            "BiasAdd",
            name,
            {"value": element(eighths(*shape)), "bias": element(eighths(shape[-1], phase=1))},
            FLOATS,
            gradient=True,
        )
        f.raw("BiasAddGrad", name, {"out_backprop": element(eighths(*shape))}, FLOATS, gradient=True, tolerance_scale=2)
    small = np.arange(6).reshape(2, 3)
    f.raw("BiasAdd", "integers", {"value": element(small, "int64"), "bias": element([7, 8, 9], "int64")}, INTS)
    f.raw(
        "BiasAdd",
        "negative integers",
        {"value": element(small - 9, "int64"), "bias": element([7, -8, 9], "int64")},
        SIGNED,
    )
    f.raw("BiasAddGrad", "integers", {"out_backprop": element(small, "int64")}, INTS)
    f.raw("BiasAddGrad", "negative integers", {"out_backprop": element(small - 9, "int64")}, SIGNED)
    f.raw(
        "BiasAdd",
        "complex",
        {"value": element([[1j, 2], [3, 4 - 1j]], "complex128"), "bias": element([1, -1j], "complex128")},
        COMPLEX,
    )
    for name, shape in (("complex", (3, 2)), ("complex, NHWC", (2, 3, 1, 2)), ("complex, no rows", (0, 2))):
        z = element(eighths(*shape) + 1j * eighths(*shape, phase=2), "complex128")
        f.raw("BiasAddGrad", name, {"out_backprop": z}, COMPLEX, tolerance_scale=2)
    f.raw("BiasAdd", "infinities", {"value": element([[INF, -INF], [NAN, 1]]), "bias": element([-1, INF])}, FLOATS)
    one = lambda *shape: fixed(np.ones(shape), "float32")
    f.error("BiasAdd", "bias of another length", [one(2, 3), one(2)], "build")
    f.error("BiasAdd", "bias of rank 2", [one(2, 3), one(1, 3)], "build")
    f.error("BiasAdd", "value of rank 1", [one(3), one(3)], "build")
    f.error("BiasAdd", "element types differ", [one(2, 3), fixed(np.ones(3), "float64")], "build")
    f.error("BiasAddGrad", "rank 0", [one()], "build")


def _softmax(f, op):
    def rows(*shape):
        return element(
            spread(-3, 3, int(np.prod(shape)))[
                (np.arange(int(np.prod(shape))) * 11) % max(int(np.prod(shape)), 1)
            ].reshape(shape)
        )

    for name, shape in [
        ("matrix", (2, 3)),
        ("one row", (1, 5)),
        ("one class", (3, 1)),
        ("two classes", (4, 2)),
        ("odd classes", (2, 17)),
        ("more than a packet", (2, 37)),
        ("no rows", (0, 3)),
    ]:
        f.raw(op, name, {"logits": rows(*shape)}, FLOATS, gradient=True, tolerance_scale=2)
    function = special.softmax if op == "Softmax" else special.log_softmax
    x = rows(3, 4).array
    f.case(
        op,
        "by another library",
        [element(x)],
        [element(function(x, 1))],
        FLOATS,
        f"{SCIPY} special.{function.__name__} float64",
        gradient=True,
        tolerance_scale=2,
    )
    f.raw(op, "all alike", {"logits": element(np.full((2, 4), 100))}, FLOATS, gradient=True, tolerance_scale=2)
    f.raw(op, "large", {"logits": element([[1000, 1000], [-1000, -1000], [1000, -1000]])}, FLOATS)
    f.raw(op, "one dominates", {"logits": element([[0, 60000, -60000], [50, -50, 0]])}, ["float64"])
    f.raw(op, "minus infinity is left out", {"logits": element([[0, -INF, 0], [-INF, 2, -INF]])}, FLOATS)
    f.raw(op, "not a number spoils its row", {"logits": element([[0, NAN], [0, 0]])}, FLOATS)
    f.raw(
        op,
        "many classes",
        {"logits": element((np.arange(1000) * 7 % 97 / 16).reshape(2, 500)[:, :200])},
        FLOATS,
        tolerance_scale=4,
    )
    f.raw(
        op,
        "17 digits",
        {"logits": element(np.sin(np.arange(12.0)).reshape(3, 4) * 5)},
        ["float64"],
        gradient=True,
        tolerance_scale=2,
    )
    f.error(op, "rank 0", [fixed(1.0, "float32")], "build")
    f.error(op, "integers", [fixed([[1, 2]])], "build")
