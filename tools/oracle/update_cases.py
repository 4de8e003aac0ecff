"""Ops that change variables, as functions: each input and the new value of each variable.

The first inputs are the variables, and the outputs their new values in the same order.
"""

import numpy as np
import tensorflow as tf

from case_file import NUMPY, TENSORFLOW, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, REALS, SIGNED, STRING, round_to

SHAPES = [
    ("matrix", (2, 3)),
    ("rank 0", ()),
    ("empty", (0, 3)),
    ("more than a packet", (37,)),
    ("rank 4", (1, 2, 2, 3)),
]
# (name, shape of the variable, indices)
ROWS = [
    ("some rows", (4, 3), [3, 1]),
    ("duplicate rows", (4, 3), [2, 0, 2, 2]),
    ("one row", (4, 3), [1]),
    ("no rows", (4, 3), []),
    ("vector", (6,), [5, 0, 3]),
    ("vector with duplicates", (3,), [1, 1, 2, 1]),
    ("rank 3", (3, 2, 2), [2, 0]),
    ("odd width", (3, 17), [1, 2, 1]),
    ("every row in reverse", (4, 2), [3, 2, 1, 0]),
]
ROWS_BY_TYPE = [(*row, "int32") for row in ROWS] + [("int64 indices", (4, 3), [2, 0, 2], "int64")]


def eighths(*shape, phase=0):
    count = int(np.prod(shape))
    return (((np.arange(count) * 7 + phase * 5) % 25 - 12) / 8).reshape(shape)


def squares(*shape):
    """Second moments: positive."""
    return np.abs(eighths(*shape, phase=4)) / 4 + 0.125


def add(f):
    _gradient_descent(f)
    _momentum(f)
    _adam(f)
    for rule in RULES:
        _rule(f, rule)
    _assign(f)
    _scatter(f)
    _slice_assign(f)
    _errors(f)


def gradient_descent(var, lr, grad):
    return (var - lr * grad,)


def momentum(var, accum, lr, grad, factor, nesterov=False):
    accum = accum * factor + grad
    return var - lr * (grad + factor * accum if nesterov else accum), accum


def adam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, nesterov=False):
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    m, v = m + (1 - beta1) * (grad - m), v + (1 - beta2) * (grad * grad - v)
    return var - rate * (m * beta1 + (1 - beta1) * grad if nesterov else m) / (np.sqrt(v) + epsilon), m, v


def by_tensorflow(op, variables, expected, **arguments):
    """Runs a resource op of TensorFlow on copies of `variables`; the NumPy formula must agree with it."""
    handles = [tf.Variable(v) for v in variables.values()]
    passed = dict(zip(variables, (h.handle for h in handles)))
    scalars = {k: tf.constant(v, tf.float64) if not isinstance(v, bool) else v for k, v in arguments.items()}
    getattr(tf.raw_ops, op)(**passed, **scalars)
    for handle, value in zip(handles, expected):
        if not np.allclose(handle.numpy(), value, rtol=1e-13, atol=1e-15):
            raise ValueError(f"{op}: {TENSORFLOW} computes {handle.numpy().tolist()}, expected {value.tolist()}")
    return f"{TENSORFLOW} raw_ops.{op} float64"


def _record(f, op, name, inputs, outputs, source, types=FLOATS, attrs=None):
    f.case(
        op,
        name,
        [a if hasattr(a, "role") else element(a) for a in inputs],
        [element(o) for o in outputs],
        types,
        source,
        attrs=attrs,
        tolerance_scale=4,
    )


def summed(indices, grad):
    """Distinct indices in order, and for each the sum of its rows of `grad`."""
    rows = np.unique(np.array(indices, int))
    return rows, np.array([grad[np.array(indices) == row].sum(0) for row in rows]).reshape(len(rows), *grad.shape[1:])


def on_rows(function, variables, indices, grad):
    """`function(rows of each variable, summed gradient)` gives the new rows; the other rows keep their values."""
    rows, total = summed(indices, grad)
    result = [v.copy() for v in variables]
    for target, new in zip(result, function([v[rows] for v in variables], total)):
        target[rows] = new
    return result


def _gradient_descent(f):
    for name, shape in SHAPES:
        var, grad = eighths(*shape), eighths(*shape, phase=1)
        new = gradient_descent(var, 0.125, grad)
        source = by_tensorflow("ResourceApplyGradientDescent", {"var": var}, new, alpha=0.125, delta=grad)
        _record(f, "ApplyGradientDescent", name, [var, 0.125, grad], new, source)
    var, grad = eighths(3), np.array([np.inf, -np.inf, np.nan])
    _record(
        f,
        "ApplyGradientDescent",
        "infinite gradient",
        [var, 0.5, grad],
        gradient_descent(var, 0.5, grad),
        f"{NUMPY} float64",
    )
    for name, lr in [("rate 0", 0.0), ("negative rate", -0.5), ("rate 1", 1.0)]:
        var, grad = eighths(2, 2), eighths(2, 2, phase=2)
        _record(f, "ApplyGradientDescent", name, [var, lr, grad], gradient_descent(var, lr, grad), f"{NUMPY} float64")
    _record(
        f, "ApplyGradientDescent", "rate 0.1", [var, 0.1, grad], gradient_descent(var, 0.1, grad), f"{NUMPY} float64"
    )
    for name, shape, indices in ROWS:
        var, grad = eighths(*shape), eighths(len(indices), *shape[1:], phase=1)
        new = on_rows(lambda old, total: gradient_descent(*old, 0.25, total), [var], indices, grad)
        _record(f, "SparseApplyGradientDescent", name, [var, 0.25, grad, fixed(indices)], new, f"{NUMPY} float64")
    _record(
        f,
        "SparseApplyGradientDescent",
        "int64 indices",
        [eighths(3, 2), 0.25, eighths(1, 2, phase=1), fixed([2], "int64")],
        on_rows(lambda old, total: gradient_descent(*old, 0.25, total), [eighths(3, 2)], [2], eighths(1, 2, phase=1)),
        f"{NUMPY} float64",
    )


def _momentum(f):
    for nesterov in (False, True):
        attrs, suffix = ({"use_nesterov": True}, ", nesterov") if nesterov else ({}, "")
        for name, shape in SHAPES:
            var, accum, grad = eighths(*shape), eighths(*shape, phase=2), eighths(*shape, phase=1)
            new = momentum(var, accum, 0.125, grad, 0.875, nesterov)
            source = by_tensorflow(
                "ResourceApplyMomentum",
                {"var": var, "accum": accum},
                new,
                lr=0.125,
                grad=grad,
                momentum=0.875,
                use_nesterov=nesterov,
            )
            _record(f, "ApplyMomentum", name + suffix, [var, accum, 0.125, grad, 0.875], new, source, attrs=attrs)
        var, accum, grad = eighths(2, 2), np.zeros((2, 2)), eighths(2, 2, phase=1)
        for name, lr, factor in [("first step, factor 0.9", 0.01, 0.9), ("factor 0", 0.5, 0.0), ("factor 1", 0.5, 1.0)]:
            _record(
                f,
                "ApplyMomentum",
                name + suffix,
                [var, accum, lr, grad, factor],
                momentum(var, accum, lr, grad, factor, nesterov),
                f"{NUMPY} float64",
                attrs=attrs,
            )
        for name, shape, indices, dtype in ROWS_BY_TYPE:
            var, accum, grad = eighths(*shape), eighths(*shape, phase=2), eighths(len(indices), *shape[1:], phase=1)
            new = on_rows(lambda old, total: momentum(*old, 0.25, total, 0.5, nesterov), [var, accum], indices, grad)
            _record(
                f,
                "SparseApplyMomentum",
                name + suffix,
                [var, accum, 0.25, grad, fixed(indices, dtype), 0.5],
                new,
                f"{NUMPY} float64",
                attrs=attrs,
            )


def _adam(f):
    # beta1_power, beta2_power, lr, beta1, beta2, epsilon
    short = (0.75, 0.875, 0.125, 0.75, 0.875, 0.0625)
    usual = (0.9, 0.999, 1e-3, 0.9, 0.999, 1e-8)
    third = (0.9**3, 0.999**3, 1e-3, 0.9, 0.999, 1e-8)
    single = tuple(float(v) for v in round_to("float32", third))
    names = ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon")

    def dense(name, shape, scalars, nesterov=False, first=False):
        var, m, v, grad = eighths(*shape), eighths(*shape, phase=2), squares(*shape), eighths(*shape, phase=1)
        if first:
            m, v = np.zeros(shape), np.zeros(shape)
        new = adam(var, m, v, *scalars, grad, nesterov)
        source = by_tensorflow(
            "ResourceApplyAdam",
            {"var": var, "m": m, "v": v},
            new,
            **dict(zip(names, scalars)),
            grad=grad,
            use_nesterov=nesterov,
        )
        _record(
            f,
            "ApplyAdam",
            name,
            [var, m, v, *scalars, grad],
            new,
            source,
            attrs={"use_nesterov": True} if nesterov else {},
        )

    for name, shape in SHAPES:
        dense(name, shape, short)
    dense("first step", (2, 3), usual, first=True)
    dense("third step", (2, 3), third)
    dense("third step, scalars of float32", (2, 3), single)
    dense("nesterov", (2, 3), short, nesterov=True)
    dense("nesterov, third step", (5,), third, nesterov=True)
    zero = np.zeros(3)
    _record(
        f,
        "ApplyAdam",
        "gradient 0",
        [eighths(3), zero, zero, *short, zero],
        adam(eighths(3), zero, zero, *short, zero),
        f"{NUMPY} float64",
    )
    for name, shape, indices, dtype in ROWS_BY_TYPE:
        var, m, v, grad = (
            eighths(*shape),
            eighths(*shape, phase=2),
            squares(*shape),
            eighths(len(indices), *shape[1:], phase=1),
        )
        new = on_rows(lambda old, total: adam(*old, *short, total), [var, m, v], indices, grad)
        _record(f, "SparseApplyAdam", name, [var, m, v, *short, grad, fixed(indices, dtype)], new, f"{NUMPY} float64")
    var, m, v, grad = eighths(3, 2), np.zeros((3, 2)), np.zeros((3, 2)), eighths(2, 2, phase=1)
    _record(
        f,
        "SparseApplyAdam",
        "first step",
        [var, m, v, *usual, grad, fixed([0, 0])],
        on_rows(lambda old, total: adam(*old, *usual, total), [var, m, v], [0, 0], grad),
        f"{NUMPY} float64",
    )


def adagrad(variables, grad, lr):
    var, accum = variables
    accum = accum + grad * grad
    return var - lr * grad / np.sqrt(accum), accum


def adadelta(variables, grad, lr, rho, epsilon):
    var, accum, updates = variables
    accum = rho * accum + (1 - rho) * grad * grad
    update = np.sqrt(updates + epsilon) / np.sqrt(accum + epsilon) * grad
    return var - lr * update, accum, rho * updates + (1 - rho) * update * update


def ftrl(variables, grad, lr, l1, l2, lr_power):
    var, accum, linear = variables
    new = accum + grad * grad
    linear = linear + grad - (new**-lr_power - accum**-lr_power) / lr * var
    shrunk = (np.sign(linear) * l1 - linear) / (new**-lr_power / lr + 2 * l2)
    return np.where(np.abs(linear) > l1, shrunk, 0.0), new, linear


def rms_prop(variables, grad, lr, rho, factor, epsilon):
    var, ms, mom = variables
    ms = ms + (1 - rho) * (grad * grad - ms)
    mom = factor * mom + lr * grad / np.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rms_prop(variables, grad, lr, rho, factor, epsilon):
    var, mg, ms, mom = variables
    mg = mg + (1 - rho) * (grad - mg)
    ms = ms + (1 - rho) * (grad * grad - ms)
    mom = factor * mom + lr * grad / np.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


# (op, formula, TensorFlow's names of the variables, of the factors, whether these stand before the gradient, factors)
RULES = [
    ("Adagrad", adagrad, ("var", "accum"), ("lr",), True, [(0.125,), (0.01,), (0.0,)]),
    (
        "Adadelta",
        adadelta,
        ("var", "accum", "accum_update"),
        ("lr", "rho", "epsilon"),
        True,
        [(0.125, 0.75, 0.0625), (1e-3, 0.95, 1e-8), (1.0, 0.0, 0.5)],
    ),
    (
        "Ftrl",
        ftrl,
        ("var", "accum", "linear"),
        ("lr", "l1", "l2", "lr_power"),
        False,
        [(0.125, 0.25, 0.5, -0.5), (0.01, 0.0, 0.0, -0.5), (0.5, 0.75, 0.125, -0.75), (0.5, 2.0, 0.0, -0.25)],
    ),
    (
        "RMSProp",
        rms_prop,
        ("var", "ms", "mom"),
        ("lr", "rho", "momentum", "epsilon"),
        True,
        [(0.125, 0.75, 0.5, 0.0625), (1e-3, 0.9, 0.0, 1e-10), (0.5, 0.0, 0.875, 1.0)],
    ),
    (
        "CenteredRMSProp",
        centered_rms_prop,
        ("var", "mg", "ms", "mom"),
        ("lr", "rho", "momentum", "epsilon"),
        True,
        [(0.125, 0.75, 0.5, 0.0625), (1e-3, 0.9, 0.0, 1e-3), (0.5, 0.5, 0.875, 1.0)],
    ),
]


def _rule(f, rule):
    op, formula, names, factor_names, is_before, factors = rule

    def state(shape):
        """The variable and its slots: sums of squares are positive, and as large as the mean's square."""
        slots = {"var": eighths(*shape), "mg": eighths(*shape, phase=2) / 8, "linear": eighths(*shape, phase=2)}
        positive = {name: squares(*shape) + 0.0625 * k for k, name in enumerate(("accum", "accum_update", "ms"))}
        return [{**slots, **positive, "mom": eighths(*shape, phase=3) / 4}[name] for name in names]

    def inputs(variables, grad, values, *indices):
        return [*variables, *values, grad, *indices] if is_before else [*variables, grad, *indices, *values]

    def dense(name, shape, values):
        variables, grad = state(shape), eighths(*shape, phase=1)
        new = formula(variables, grad, *values)
        source = by_tensorflow(
            f"ResourceApply{op}", dict(zip(names, variables)), new, grad=grad, **dict(zip(factor_names, values))
        )
        _record(f, f"Apply{op}", name, inputs(variables, grad, values), new, source)

    def by_rows(name, shape, indices, dtype, values):
        variables, grad = state(shape), eighths(len(indices), *shape[1:], phase=1)
        new = on_rows(lambda old, total: formula(old, total, *values), variables, indices, grad)
        _record(
            f,
            f"SparseApply{op}",
            name,
            inputs(variables, grad, values, fixed(indices, dtype)),
            new,
            f"{NUMPY} float64",
        )

    for name, shape in SHAPES:
        dense(name, shape, factors[0])
    for values in factors[1:]:
        dense(f"factors {', '.join(map(str, values))}", (2, 3), values)
    for name, shape, indices, dtype in ROWS_BY_TYPE:
        by_rows(name, shape, indices, dtype, factors[0])
    by_rows("other factors", (3, 2), [2, 2], "int32", factors[-1])


def _assign(f):
    definition = "the definition"
    for op, function in (("Assign", lambda ref, value: value), ("AssignAdd", np.add), ("AssignSub", np.subtract)):
        for name, shape in SHAPES:
            ref, value = eighths(*shape), eighths(*shape, phase=1)
            _record(f, op, name, [ref, value], [function(ref, value)], definition)
        ref, value = np.array([50, 60, 70]), np.array([1, 0, 50])
        _record(f, op, "numbers", [ref, value], [function(ref, value)], definition, REALS)
        _record(
            f,
            op,
            "negative integers",
            [element(ref - 60, "int64"), element(value - 20, "int64")],
            [function(ref - 60, value - 20)],
            definition,
            SIGNED,
        )
        z = np.array([1 + 2j, -3j])
        f.case(
            op,
            "complex",
            [element(z, "complex128"), element(z[::-1], "complex128")],
            [element(function(z, z[::-1]), "complex128")],
            COMPLEX,
            definition,
        )
    f.case(
        "Assign",
        "bool",
        [element([True, False], "bool"), element([False, False], "bool")],
        [element([False, False], "bool")],
        ["bool"],
        definition,
    )
    f.case(
        "Assign",
        "strings",
        [element(["a", "b"], "string"), element(["", "longer"], "string")],
        [element(["", "longer"], "string")],
        STRING,
        definition,
    )


# By what repeated indices are applied one after the other; TensorFlow alone says what integers divide to.
SCATTERS = {
    "ScatterUpdate": lambda old, update: update,
    "ScatterAdd": np.add,
    "ScatterSub": np.subtract,
    "ScatterMul": np.multiply,
    "ScatterDiv": lambda old, update: old / update if old.dtype.kind in "fc" else None,
    "ScatterMin": np.minimum,
    "ScatterMax": np.maximum,
}


def scattered(op, ref, indices, updates, wide, dtype):
    """The variable after TensorFlow's update of its rows, which the definition must agree with."""
    variable = tf.Variable(tf.constant(ref, wide))
    getattr(tf.raw_ops, "Resource" + op)(
        resource=variable.handle, indices=tf.constant(indices, dtype), updates=tf.constant(updates, wide)
    )
    result = variable.numpy()
    if wide == "string":
        result = np.vectorize(bytes.decode, otypes=[object])(result)
    rows = np.asarray(indices, int)
    expected = np.array(ref, dtype=result.dtype)
    values = np.broadcast_to(np.asarray(updates, result.dtype), rows.shape + expected.shape[1:])
    for at in np.ndindex(rows.shape):
        new = SCATTERS[op](expected[rows[at]], values[at])
        expected[rows[at]] = result[rows[at]] if new is None else new
    if not np.array_equal(result, expected):
        raise ValueError(f"{op}: {TENSORFLOW} computes {result.tolist()}, expected {expected.tolist()}")
    return result


def _scatter(f):
    for op in SCATTERS:

        def scatter(name, ref, indices, updates, types, wide="float64", dtype="int32"):
            f.case(
                op,
                name,
                [element(ref, wide), fixed(indices, dtype), element(updates, wide)],
                [element(scattered(op, ref, indices, updates, wide, dtype), wide)],
                types,
                f"{TENSORFLOW} raw_ops.Resource{op} {wide}",
                tolerance_scale=2,
            )

        def eighth_rows(*shape):
            """Without zeros, which TensorFlow refuses to divide by."""
            rows = eighths(*shape, phase=1)
            return np.where(rows == 0, 1.5, rows)

        for name, shape, indices in ROWS:
            scatter(name, eighths(*shape), indices, eighth_rows(len(indices), *shape[1:]), FLOATS)
        scatter("one row by a rank 0 index", eighths(4, 3), 2, eighth_rows(3), FLOATS)
        scatter("one element by a rank 0 index", eighths(4), 2, eighth_rows(), FLOATS)
        scatter("indices of rank 2", eighths(4, 3), [[0, 2], [2, 3]], eighth_rows(2, 2, 3), FLOATS)
        scatter("int64 indices", eighths(4, 3), [3, 3], eighth_rows(2, 3), FLOATS, dtype="int64")
        scatter("empty rows", eighths(3, 0), [2, 0], eighths(2, 0), FLOATS)
        scatter("a scalar for every element", eighths(4, 3), [2, 0, 2], 0.75, FLOATS)
        scatter("a scalar for every element of a vector", eighths(4), [[2, 0]], -1.5, FLOATS)
        small = np.arange(12).reshape(4, 3) + 40
        if op == "ScatterMul":
            scatter("many duplicates", eighths(2), np.arange(64) % 2, 2.0 ** (np.arange(64) // 2 % 3 - 1), FLOATS)
            scatter("factors that 16 bits cannot add up", [1.0, 3.0], [0] * 12, [1.125] * 12, FLOATS)
            scatter("integers", small % 4 + 1, [1, 3, 1], np.arange(9).reshape(3, 3) % 3 + 1, INTS, "int64")
            scatter("wide integers", [2**40, -(2**40)], [0, 1], [2**10, 3], ["int64"], "int64")
        elif op == "ScatterDiv":
            scatter("many duplicates", eighths(2), np.arange(64) % 2, 2.0 ** (np.arange(64) // 2 % 3 - 1), FLOATS)
            scatter("divisors that 16 bits cannot add up", [2.0, 3.0], [0] * 12, [1.125] * 12, FLOATS)
            scatter("integers", small, [1, 3, 1], np.arange(9).reshape(3, 3) % 4 + 1, INTS, "int64")
            scatter("wide integers", [2**40, -(2**40)], [0, 1], [2**10, 3], ["int64"], "int64")
        else:
            scatter("many duplicates", eighths(2), np.arange(64) % 2, np.arange(64) % 3 / 4, FLOATS)
            scatter("ones that 16 bits cannot count", [0.0, 1.0], [0] * 300, np.ones(300), FLOATS)
            scatter("integers", small, [1, 3, 1], np.arange(9).reshape(3, 3), INTS, "int64")
            scatter("wide integers", np.array([2**40, -(2**40)]), [0, 1], np.array([2**50, 3]), ["int64"], "int64")
        negative = -np.arange(6).reshape(2, 3) - (op == "ScatterDiv")
        scatter("negative integers", small - 45, [0, 0], negative, SIGNED, "int64")
        if op not in ("ScatterMin", "ScatterMax"):
            z = np.array([1 + 2j, -3j, 0.5])
            scatter("complex", z, [2, 0, 2], z[::-1], COMPLEX, "complex128")
        if op == "ScatterUpdate":
            flags, words = [[True, True], [False, True], [False, False]], [["a", "b"], ["c", "d"], ["", "f"]]
            scatter("bool", flags, [2, 0, 2], [[True, False], [False, False], [False, True]], BOOL, "bool")
            scatter("a bool for every element", flags, [0, 0], False, BOOL, "bool")
            scatter("strings", words, [2, 0], [["", "longer"], ["x", "y"]], STRING, "string")
            scatter("a string for every element", words, [1], "longer", STRING, "string")
    _scatter_by_definition(f)


def _scatter_by_definition(f):
    """What TensorFlow leaves to chance or refuses."""

    def case(op, name, ref, updates, new, types, wide="float64"):
        inputs = [element(ref, wide), fixed(np.arange(len(ref))), element(updates, wide)]
        f.case(op, name, inputs, [element(new, wide)], types, "the definition")

    nan, inf = np.nan, np.inf
    numbers, updates = [nan, 1.0, nan, -inf, inf, 2.0], [1.0, nan, nan, 1.0, 1.0, -inf]
    case("ScatterMin", "not a number stays", numbers, updates, [nan, nan, nan, -inf, 1.0, -inf], FLOATS)
    case("ScatterMax", "not a number stays", numbers, updates, [nan, nan, nan, 1.0, inf, 2.0], FLOATS)
    case("ScatterMin", "zeros", [0.0, -0.0], [-0.0, 0.0], [0.0, -0.0], FLOATS)
    case("ScatterMax", "zeros", [0.0, -0.0], [-0.0, 0.0], [0.0, -0.0], FLOATS)
    case("ScatterMul", "infinities", [inf, inf, 2.0, nan], [-2.0, 0.0, inf, 1.0], [-inf, nan, inf, nan], FLOATS)
    case("ScatterDiv", "by zero", [1.0, -1.0, 0.0, inf], [0.0, 0.0, 0.0, inf], [inf, -inf, nan, nan], FLOATS)
    for bits in (8, 16, 32, 64):
        low = -(2 ** (bits - 1))
        case("ScatterDiv", f"smallest int{bits} by -1", [low, 7], [-1, -1], [low, -7], [f"int{bits}"], "int64")


SLICE_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
# (name, shape of the variable, begin, end, strides, masks, shape of the value)
SLICES = [
    ("a corner", (3, 5), [1, -1], [3, 0], [1, -2], {}, (2, 2)),
    ("whole", (3, 4), [0, 0], [3, 4], [1, 1], {}, (3, 4)),
    ("rank 0", (), [], [], [], {}, ()),
    ("nothing", (5,), [3], [1], [1], {}, (0,)),
    ("a row", (3, 4), [-1], [0], [1], {"shrink_axis": 1}, (4,)),
    ("an element", (3, 4), [2, -2], [0, 0], [1, 1], {"shrink_axis": 3}, ()),
    ("a column backwards", (4, 3), [0, 1], [0, 0], [-1, 1], {"begin": 1, "end": 1, "shrink_axis": 2}, (4,)),
    ("new axes and an ellipsis", (2, 3, 4), [0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsis": 1, "new_axis": 2}, (2, 3, 1, 2)),
]


def _slice_assign(f):
    def assign(name, ref, begin, end, strides, masks, value, types, wide="float64", dtype="int32"):
        attrs = {mask + "_mask": masks.get(mask, 0) for mask in SLICE_MASKS}
        variable = tf.Variable(tf.constant(ref, wide))
        bounds = [np.array(numbers, dtype) for numbers in (begin, end, strides)]
        size = tf.raw_ops.StridedSlice(
            input=variable.value(), begin=bounds[0], end=bounds[1], strides=bounds[2], **attrs
        ).shape
        tf.raw_ops.ResourceStridedSliceAssign(
            ref=variable.handle,
            begin=bounds[0],
            end=bounds[1],
            strides=bounds[2],
            value=tf.broadcast_to(tf.constant(value, wide), size),
            **attrs,
        )
        new = variable.numpy()
        if wide == "string":
            new = np.vectorize(bytes.decode, otypes=[object])(new)
        f.case(
            "StridedSliceAssign",
            name,
            [element(ref, wide), *(fixed(b, dtype) for b in bounds), element(value, wide)],
            [element(new, wide)],
            types,
            f"{TENSORFLOW} raw_ops.ResourceStridedSliceAssign {wide}",
            attrs=attrs,
        )

    for name, shape, begin, end, strides, masks, size in SLICES:
        assign(name, eighths(*shape), begin, end, strides, masks, eighths(*size, phase=1), FLOATS)
    assign("int64 bounds", eighths(4, 3), [1, 0], [4, 9], [2, 1], {}, eighths(2, 3), FLOATS, dtype="int64")
    assign("a scalar for every element", eighths(4, 3), [1], [3], [1], {}, 0.75, FLOATS)
    small = np.arange(12).reshape(4, 3)
    assign("integers", small, [0, 2], [4, 0], [3, -1], {}, small[:2, :2] + 20, INTS, "int64")
    z = np.array([1 + 2j, -3j, 0.5])
    assign("complex", z, [2], [0], [-1], {}, z[:2] + 1, COMPLEX, "complex128")
    flags, words = [[True, True], [False, True], [False, False]], [["a", "b"], ["c", "d"], ["", "f"]]
    assign("bool", flags, [0], [3], [2], {}, [[False, True], [True, True]], BOOL, "bool")
    assign("strings", words, [0], [3], [2], {}, [["", "longer"], ["x", "y"]], STRING, "string")
    assign("a string for every element", words, [1], [3], [1], {}, "longer", STRING, "string")


def _errors(f):
    one = lambda *shape: fixed(np.ones(shape), "float32")
    rate = one()
    for op in ("Assign", "AssignAdd", "AssignSub"):
        f.error(op, "shapes differ", [one(2, 3), one(3, 2)], "build")
        f.error(op, "element types differ", [one(2), fixed([1.0, 1.0], "float64")], "build")
    f.error("ApplyGradientDescent", "shapes differ", [one(2, 3), rate, one(3, 2)], "build")
    f.error("ApplyGradientDescent", "rate of rank 1", [one(2), one(1), one(2)], "build")
    f.error("ApplyMomentum", "accumulator of another shape", [one(2), one(3), rate, one(2), rate], "build")
    f.error("ApplyMomentum", "gradient of another shape", [one(2), one(2), rate, one(3), rate], "build")
    f.error("ApplyMomentum", "momentum of rank 1", [one(2), one(2), rate, one(2), one(1)], "build")
    for op, _, names, factor_names, is_before, _ in RULES:
        tensors, scalars = [one(2)] * len(names), [rate] * len(factor_names)

        def arguments(variables, grad, factors):
            return [*variables, *factors, grad] if is_before else [*variables, grad, *factors]

        f.error(f"Apply{op}", "slot of another shape", arguments([*tensors[:-1], one(3)], one(2), scalars), "build")
        f.error(f"Apply{op}", "gradient of another shape", arguments(tensors, one(3), scalars), "build")
        f.error(f"Apply{op}", "factor of rank 1", arguments(tensors, one(2), [*scalars[:-1], one(1)]), "build")
    f.error("ApplyAdam", "moment of another shape", [one(2), one(2), one(3), *[rate] * 6, one(2)], "build")
    f.error("ApplyAdam", "gradient of another shape", [one(2), one(2), one(2), *[rate] * 6, one(3)], "build")
    f.error(
        "ApplyAdam", "rate of rank 1", [one(2), one(2), one(2), rate, rate, one(1), rate, rate, rate, one(2)], "build"
    )
    for name, indices, grad, when, match in [
        ("index too large", [0, 3], one(2, 2), "run", "indices[1] = 3"),
        ("index negative", [-1], one(1, 2), "run", "indices[0] = -1"),
        ("one row per index", [0, 1], one(3, 2), "build", None),
        ("rows of another width", [0], one(1, 3), "build", None),
    ]:
        var = one(3, 2)
        f.error("SparseApplyGradientDescent", name, [var, rate, grad, fixed(indices)], when, match=match)
        f.error("SparseApplyMomentum", name, [var, var, rate, grad, fixed(indices), rate], when, match=match)
        f.error("SparseApplyAdam", name, [var, var, var, *[rate] * 6, grad, fixed(indices)], when, match=match)
        for op in SCATTERS:
            f.error(op, name, [var, fixed(indices), grad], when, match=match)
    no_masks = {mask + "_mask": 0 for mask in SLICE_MASKS}
    for name, begin, end, strides, value, when in [
        ("value of another shape", [0], [2], [1], one(3, 2), "run"),
        ("value of another rank", [0], [2], [1], one(2), "run"),
        ("stride 0", [0], [2], [0], one(2, 2), "run"),
        ("more ranges than dimensions", [0, 0, 0], [1, 1, 1], [1, 1, 1], one(1, 1), "build"),
        ("bounds of different lengths", [0], [1, 1], [1], one(1, 2), "build"),
    ]:
        inputs = [one(3, 2), fixed(begin), fixed(end), fixed(strides), value]
        f.error("StridedSliceAssign", name, inputs, when, attrs=no_masks)
    f.error(
        "ScatterDiv",
        "integer division by zero",
        [fixed([4, 6]), fixed([0, 1]), fixed([2, 0])],
        "run",
        match="division by zero",
    )
    for op in SCATTERS:
        f.error(op, "variable of rank 0", [one(), fixed([0]), one(1)], "build")
        f.error(op, "element types differ", [one(3), fixed([0]), fixed([1.0], "float64")], "build")
        f.error(op, "indices are floats", [one(3), one(1), one(1)], "build")
        f.error(op, "index into nothing", [one(0, 2), fixed([0]), one(1, 2)], "run")
