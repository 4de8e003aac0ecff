"""Cross entropies and L2Loss."""

import numpy as np
from scipy import special

from case_file import NUMPY, SCIPY, element, fixed
from element_types import FLOATS, spread


def logits(*shape):
    count = int(np.prod(shape))
    return element(spread(-3, 3, count)[(np.arange(count) * 11) % max(count, 1)].reshape(shape))


def distributions(rows, classes):
    """Each row sums to 1, in multiples of 1/8."""
    result = np.zeros((rows, classes))
    for row in range(rows):
        for part in range(8):
            result[row, (part * part + row) % classes] += 1 / 8
    return element(result)


def add(f):
    _softmax(f)
    _sparse(f)
    _sigmoid(f)
    _l2(f)


def _softmax(f):
    op, options = "SoftmaxCrossEntropyWithLogits", {
        "gradient_inputs": [0],
        "gradient_outputs": [0],
        "tolerance_scale": 4,
    }

    def raw(name, features, labels, types=FLOATS, gradient=True):
        f.raw(op, name, {"features": features, "labels": labels}, types, gradient=gradient, **options)

    for name, rows, classes in [
        ("matrix", 3, 4),
        ("one row", 1, 5),
        ("one class", 3, 1),
        ("two classes", 4, 2),
        ("odd classes", 2, 17),
        ("more than a packet", 2, 37),
        ("no rows", 0, 3),
        ("many rows", 19, 3),
    ]:
        raw(name, logits(rows, classes), distributions(rows, classes))
    raw("one-hot labels", logits(3, 3), element(np.eye(3)))
    raw("labels that do not sum to 1", logits(2, 3), element([[0.5, 0.5, 0.5], [0, 0, 0.25]]), gradient=False)
    raw("all alike", element(np.full((2, 4), 100)), distributions(2, 4))
    raw(
        "large",
        element([[1000, 1000], [-1000, -1000], [1000, -1000]]),
        element([[0.5, 0.5], [1, 0], [1, 0]]),
        gradient=False,
    )
    raw("certain and wrong", element([[1000, -1000]]), element([[0, 1]]), gradient=False)
    raw(
        "17 digits",
        element(np.sin(np.arange(12.0)).reshape(3, 4) * 5),
        element(special.softmax(np.cos(np.arange(12.0)).reshape(3, 4), 1)),
        ["float64"],
    )
    x, p = logits(4, 3).array, distributions(4, 3).array
    loss, backprop = -np.sum(p * special.log_softmax(x, 1), 1), special.softmax(x, 1) - p
    f.case(
        op,
        "by another library",
        [element(x), element(p)],
        [element(loss), element(backprop)],
        FLOATS,
        f"{SCIPY} special.log_softmax float64",
        gradient=True,
        **options,
    )
    one = lambda *shape: fixed(np.ones(shape), "float32")
    f.error(op, "classes differ", [one(2, 3), one(2, 4)], "build")
    f.error(op, "rows differ", [one(2, 3), one(4, 3)], "build")
    f.error(op, "rank 0", [one(), one()], "build")
    f.error(op, "element types differ", [one(2, 3), fixed(np.ones((2, 3)), "float64")], "build")


def _sparse(f):
    op, options = "SparseSoftmaxCrossEntropyWithLogits", {
        "gradient_inputs": [0],
        "gradient_outputs": [0],
        "tolerance_scale": 4,
    }

    def raw(name, features, labels, dtype="int64", types=FLOATS, gradient=True):
        f.raw(op, name, {"features": features, "labels": fixed(labels, dtype)}, types, gradient=gradient, **options)

    for name, rows, classes in [
        ("matrix", 3, 4),
        ("one row", 1, 5),
        ("one class", 3, 1),
        ("two classes", 4, 2),
        ("odd classes", 2, 17),
        ("more than a packet", 2, 37),
        ("no rows", 0, 3),
        ("many rows", 19, 3),
    ]:
        raw(name, logits(rows, classes), (np.arange(rows) * 5 + 1) % classes)
    raw("int32 labels", logits(3, 4), [3, 0, 1], "int32")
    raw("same label in each row", logits(3, 4), [2, 2, 2])
    raw("all alike", element(np.full((2, 4), 100)), [0, 3])
    raw("large", element([[1000, 1000], [-1000, -1000], [1000, -1000]]), [0, 1, 0], gradient=False)
    raw("certain and wrong", element([[1000, -1000]]), [1], gradient=False)
    raw("17 digits", element(np.sin(np.arange(12.0)).reshape(3, 4) * 5), [1, 3, 0], types=["float64"])
    x, labels = logits(4, 3).array, np.array([2, 0, 1, 1])
    loss, backprop = -special.log_softmax(x, 1)[np.arange(4), labels], special.softmax(x, 1) - np.eye(3)[labels]
    f.case(
        op,
        "by another library",
        [element(x), fixed(labels, "int64")],
        [element(loss), element(backprop)],
        FLOATS,
        f"{SCIPY} special.log_softmax float64",
        gradient=True,
        **options,
    )
    one = lambda *shape: fixed(np.ones(shape), "float32")
    f.error(op, "label too large", [one(2, 3), fixed([0, 3])], "run")
    f.error(op, "label negative", [one(2, 3), fixed([0, -1])], "run")
    f.error(op, "one label per row", [one(2, 3), fixed([0, 1, 2])], "build")
    f.error(op, "labels of rank 2", [one(2, 3), fixed([[0], [1]])], "build")
    f.error(op, "logits of rank 1", [one(3), fixed([0, 1, 2])], "build")
    f.error(op, "labels are floats", [one(2, 3), one(2)], "build")


def _sigmoid(f):
    """TensorFlow 0.8 composes this one: max(x, 0) - x * z + log(1 + exp(-|x|)) of logits x and targets z."""
    op = "SigmoidCrossEntropyWithLogits"

    def case(name, x, z, types=FLOATS, gradient=True, **options):
        x, z = np.asarray(x, float), np.asarray(z, float)
        # log(1 + exp(x)) - x * z, in the form that neither overflows nor cancels
        loss = z * np.logaddexp(0, -x) + (1 - z) * np.logaddexp(0, x)
        composed = np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))
        if not np.allclose(loss, composed, rtol=1e-12, atol=1e-12):
            raise ValueError(f"{op} '{name}': two formulas disagree")
        f.case(
            op,
            name,
            [element(x), element(z)],
            [element(loss)],
            types,
            f"{NUMPY} logaddexp float64",
            gradient=gradient,
            tolerance_scale=4,
            **options,
        )

    for name, shape in [
        ("rank 0", ()),
        ("vector", (5,)),
        ("matrix", (2, 3)),
        ("empty", (0, 3)),
        ("rank 4", (1, 2, 2, 3)),
        ("more than a packet", (37,)),
    ]:
        count = int(np.prod(shape))
        case(name, logits(*shape).array, (np.arange(count) * 3 % 9 / 8).reshape(shape))
    case("targets of 0 and 1", [-2.5, -0.5, 0.5, 2.5], [0, 1, 0, 1])
    case("logits of 0", [0, 0, 0], [0, 0.5, 1], gradient=False)
    case("large", [1000, -1000, 1000, -1000], [0, 1, 0.5, 0.5], gradient=False)
    case("certain and right", [700, -700, 40, -40], [1, 0, 1, 0], ["float64"], gradient=False)
    case("17 digits", np.sin(np.arange(6.0)) * 5 + 0.1, special.expit(np.cos(np.arange(6.0))), ["float64"])
    f.error(op, "shapes differ", [fixed([1.0, 2.0], "float32"), fixed([1.0, 2.0, 3.0], "float32")], "build", match="")
    f.error(op, "element types differ", [fixed([1.0], "float32"), fixed([1.0], "float64")], "build", match="")


def _l2(f):
    op = "L2Loss"
    for name, shape in [
        ("rank 0", ()),
        ("vector", (5,)),
        ("matrix", (2, 3)),
        ("empty", (0, 3)),
        ("rank 4", (1, 2, 2, 3)),
        ("more than a packet", (37,)),
    ]:
        f.raw(op, name, {"t": logits(*shape)}, FLOATS, gradient=True, tolerance_scale=4)
    f.raw(op, "zeros", {"t": element([0, 0])}, FLOATS, gradient=True)
    f.raw(op, "infinity", {"t": element([-np.inf, 1])}, FLOATS)
    f.raw(op, "not a number stays", {"t": element([np.nan, 1])}, FLOATS)
    f.raw(op, "a thousand and one", {"t": element(np.arange(1001) % 5 / 4)}, FLOATS, tolerance_scale=8)
    f.raw(op, "float64 extremes", {"t": element([1e150, -1e150])}, ["float64"])
    f.raw(op, "17 digits", {"t": element(np.sin(np.arange(7.0)))}, ["float64"], gradient=True)
    f.error(op, "integers", [fixed([1, 2])], "build")
    f.error(op, "string", [fixed(["x"], "string")], "build")
