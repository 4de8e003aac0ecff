"""Average and max pooling and their gradients, NHWC."""

import numpy as np

from case_file import element, fixed
from conv_cases import output_shape
from element_types import FLOATS, INTS, SIGNED

# (name, input NHWC, window height, width, stride of rows, of columns)
GEOMETRIES = [
    ("2 by 2, stride 2", (1, 4, 4, 2), 2, 2, 2, 2),
    ("2 by 2, stride 2, odd", (1, 5, 3, 2), 2, 2, 2, 2),
    ("3 by 3, stride 2", (1, 5, 7, 1), 3, 3, 2, 2),
    ("3 by 3, stride 1", (1, 4, 5, 1), 3, 3, 1, 1),
    ("1 by 1", (2, 2, 3, 2), 1, 1, 1, 1),
    ("1 by 3", (1, 3, 5, 1), 1, 3, 1, 2),
    ("3 by 1", (1, 5, 2, 2), 3, 1, 1, 1),
    ("stride beyond the window", (1, 7, 7, 1), 2, 2, 3, 3),
    ("unequal strides", (1, 6, 5, 1), 2, 3, 2, 1),
    ("whole image", (2, 3, 4, 3), 3, 4, 1, 1),
    ("batch of 3", (3, 2, 2, 1), 2, 2, 1, 1),
    ("many channels", (1, 2, 4, 19), 2, 2, 2, 2),
    ("1 by 1, stride 2", (1, 4, 3, 1), 1, 1, 2, 2),
    ("one pixel", (2, 1, 1, 3), 1, 1, 1, 1),
]
SAME_ONLY = [
    ("window larger than the input", (1, 2, 3, 1), 4, 5, 1, 1),
    ("window larger, stride 2", (1, 3, 2, 2), 5, 5, 2, 2),
]


def distinct(*shape, phase=0):
    """Distinct multiples of 1/8 in scrambled order, so that every window has one maximum."""
    count = int(np.prod(shape))
    step = next(s for s in (37, 41, 43) if count % s) if count else 1
    values = (np.arange(count) * step + phase) % max(count, 1) - count // 2
    return element((values / 8).reshape(shape))


def attributes(kh, kw, sh, sw, padding):
    return {"ksize": [1, kh, kw, 1], "strides": [1, sh, sw, 1], "padding": padding}


def add(f):
    for padding in ("SAME", "VALID"):
        for geometry in GEOMETRIES + (SAME_ONLY if padding == "SAME" else []):
            _cases(f, *geometry, padding)
    _cases(f, "empty batch", (0, 4, 4, 2), 2, 2, 2, 2, "VALID")
    _special(f)
    for op in ("AvgPool", "MaxPool"):
        _errors(f, op)
    _with_argmax(f)


def _cases(f, name, shape, kh, kw, sh, sw, padding):
    attrs = attributes(kh, kw, sh, sw, padding)
    x = distinct(*shape)
    dy = distinct(*output_shape(shape, kh, kw, shape[3], sh, sw, padding), phase=5)
    name = f"{name}, {padding}"
    f.raw("AvgPool", name, {"value": x}, FLOATS, attrs=attrs, gradient=True, tolerance_scale=2)
    average = last_output(f)
    f.raw(
        "AvgPoolGrad",
        name,
        {"orig_input_shape": fixed(shape), "grad": dy},
        FLOATS,
        attrs=attrs,
        gradient=True,
        tolerance_scale=2,
    )
    if not np.isclose(np.sum(average * dy.array), np.sum(last_output(f) * x.array)):
        raise ValueError(f"AvgPool '{name}': TensorFlow's gradient is not the adjoint")
    f.raw("MaxPool", name, {"input": x}, FLOATS, attrs=attrs, gradient=True)
    maximum = last_output(f)
    means, maxima = direct(x.array, maximum.shape, kh, kw, sh, sw)
    if not (np.allclose(average, means, rtol=1e-14) and np.array_equal(maximum, maxima)):
        raise ValueError(f"pooling '{name}': TensorFlow disagrees with the definition")
    f.raw(
        "MaxPoolGrad",
        name,
        {"orig_input": x, "orig_output": element(maximum), "grad": dy},
        FLOATS,
        attrs=attrs,
        gradient=True,
        gradient_inputs=[2],
    )
    if not np.isclose(np.sum(maximum * dy.array), np.sum(last_output(f) * x.array)):
        raise ValueError(f"MaxPool '{name}': TensorFlow's gradient does not select the maxima")
    f.raw(
        "MaxPoolGradGrad",
        name,
        {"orig_input": x, "orig_output": element(maximum), "grad": distinct(*shape, phase=7)},
        FLOATS,
        attrs=attrs,
        gradient=True,
        gradient_inputs=[2],
    )


def _with_argmax(f):
    def row(name, x, attrs, types, index="int64", batch=False, **options):
        f.raw(
            "MaxPoolWithArgmax",
            f"{name}, {index}",
            {"input": x},
            types,
            attrs={**attrs, "Targmax": index, "include_batch_in_index": batch},
            output_roles=["T", "fixed"],
            **options,
        )

    for padding in ("SAME", "VALID"):
        for name, shape, kh, kw, sh, sw in GEOMETRIES + (SAME_ONLY if padding == "SAME" else []):
            x, attrs = distinct(*shape), attributes(kh, kw, sh, sw, padding)
            row(f"{name}, {padding}", x, attrs, FLOATS, gradient=True)
    two = attributes(2, 2, 1, 2, "SAME")
    integers = (np.arange(48) * 5 % 13).reshape(2, 4, 3, 2)
    for index in ("int32", "int64"):
        row("integers", element(integers, "int64"), two, INTS, index)
        row("negative integers", element(integers - 20, "int64"), two, SIGNED, index)
        row("of all images", distinct(3, 4, 3, 2), two, FLOATS, index, batch=True, gradient=True)
        row("first of equals", element(np.ones((2, 3, 3, 2))), two, FLOATS, index)
    f.case(
        "MaxPoolWithArgmax",
        "empty batch",
        [element(np.zeros((0, 4, 4, 2)))],
        [element(np.zeros((0, 4, 2, 2))), fixed(np.zeros((0, 4, 2, 2)), "int64")],
        FLOATS,
        "the definition",
        attrs={**two, "Targmax": "int64"},
    )
    x = fixed(np.ones((1, 4, 4, 2)), "float32")
    for name, value, attrs in [
        ("input of rank 3", fixed(np.ones((4, 4, 2)), "float32"), {}),
        ("window over the batch", x, {"ksize": [2, 2, 2, 1]}),
        ("stride 0", x, {"strides": [1, 2, 0, 1]}),
        ("window larger than the input", x, {"ksize": [1, 5, 5, 1], "padding": "VALID"}),
    ]:
        f.error("MaxPoolWithArgmax", name, [value], "build", attrs={**two, "Targmax": "int64", **attrs})


def last_output(f):
    tensor = f.cases[-1]["outputs"][0]
    return np.reshape(tensor["values"], tensor["shape"])


def direct(x, shape, kh, kw, sh, sw):
    """Mean and maximum of the part of each window that lies in the input."""
    _, rows, columns, _ = shape
    padding = [
        max((n - 1) * s + k - size, 0) // 2 for n, s, k, size in zip((rows, columns), (sh, sw), (kh, kw), x.shape[1:3])
    ]
    means, maxima = np.zeros(shape), np.zeros(shape)
    for row in range(rows):
        for column in range(columns):
            top, left = row * sh - padding[0], column * sw - padding[1]
            window = x[:, max(top, 0) : top + kh, max(left, 0) : left + kw]
            means[:, row, column], maxima[:, row, column] = window.mean((1, 2)), window.max((1, 2))
    return means, maxima


def _special(f):
    two = attributes(2, 2, 2, 2, "SAME")
    integers = (np.arange(24) * 5 % 13).reshape(1, 4, 3, 2)
    f.raw("MaxPool", "integers", {"input": element(integers, "int64")}, INTS, attrs=two)
    f.raw("MaxPool", "negative integers", {"input": element(integers - 20, "int64")}, SIGNED, attrs=two)
    negative = element(np.arange(-9, 0).reshape(1, 3, 3, 1))
    f.raw(
        "MaxPool",
        "padding is not zero",
        {"input": negative},
        FLOATS,
        attrs=attributes(3, 3, 1, 1, "SAME"),
        gradient=True,
    )
    f.raw(
        "AvgPool",
        "padding is not counted",
        {"value": negative},
        FLOATS,
        attrs=attributes(3, 3, 1, 1, "SAME"),
        gradient=True,
        tolerance_scale=2,
    )
    infinite = np.full((1, 2, 2, 1), -np.inf)
    f.case(
        "MaxPool",
        "all minus infinity",
        [element(infinite)],
        [element([[[[-np.inf]]]])],
        FLOATS,
        "the definition",
        attrs=attributes(2, 2, 1, 1, "VALID"),
    )
    spoilt = np.array([1, np.nan, 2, 3, 4, 5, np.nan, 7]).reshape(1, 2, 4, 1)
    f.case(
        "MaxPool",
        "not a number stays",
        [element(spoilt)],
        [element([[[[np.nan], [np.nan]]]])],
        FLOATS,
        "the definition",
        attrs=two,
    )
    f.case(
        "AvgPool",
        "not a number stays",
        [element(spoilt)],
        [element([[[[np.nan], [np.nan]]]])],
        FLOATS,
        "the definition",
        attrs=two,
    )
    mixed = np.array([1, np.inf, -np.inf, 2]).reshape(1, 2, 2, 1)
    f.raw("MaxPool", "infinities", {"input": element(mixed)}, FLOATS, attrs=attributes(1, 2, 1, 1, "VALID"))
    f.raw("AvgPool", "infinities", {"value": element(mixed)}, FLOATS, attrs=attributes(2, 1, 1, 1, "VALID"))
    equal = element(np.ones((1, 3, 3, 1)))
    for padding in ("VALID", "SAME"):
        attrs = attributes(2, 2, 1, 1, padding)
        size = 2 if padding == "VALID" else 3
        dy = element(np.arange(1, size * size + 1).reshape(1, size, size, 1))
        f.raw(
            "MaxPoolGrad",
            f"first of equals gets the gradient, {padding}",
            {"orig_input": equal, "orig_output": element(np.ones((1, size, size, 1))), "grad": dy},
            FLOATS,
            attrs=attrs,
        )


def _errors(f, op):
    one = lambda *shape: fixed(np.ones(shape), "float32")
    x, base = one(1, 4, 4, 2), attributes(2, 2, 2, 2, "SAME")
    for name, value, attrs in [
        ("input of rank 3", one(4, 4, 2), {}),
        ("window over the batch", x, {"ksize": [2, 2, 2, 1]}),
        ("stride over the batch", x, {"strides": [2, 1, 1, 1]}),
        ("window of 0", x, {"ksize": [1, 0, 2, 1]}),
        ("negative window", x, {"ksize": [1, 2, -2, 1]}),
        ("stride 0", x, {"strides": [1, 2, 0, 1]}),
        ("three window sizes", x, {"ksize": [1, 2, 2]}),
        ("three strides", x, {"strides": [1, 2, 2]}),
        ("unknown padding", x, {"padding": "FULL"}),
        (
            "window larger than the input",
            one(1, 2, 2, 1),
            {"ksize": [1, 5, 5, 1], "strides": [1, 1, 1, 1], "padding": "VALID"},
        ),
    ]:
        f.error(op, name, [value], "build", attrs={**base, **attrs})
    if op == "AvgPool":
        f.error("AvgPoolGrad", "grad of another size", [fixed([1, 4, 4, 2]), one(1, 3, 2, 2)], "run", attrs=base)
        f.error("AvgPoolGrad", "three input sizes", [fixed([1, 4, 4]), one(1, 2, 2, 2)], "build", attrs=base)
        f.error("AvgPoolGrad", "grad of rank 3", [fixed([1, 4, 4, 2]), one(2, 2, 2)], "build", attrs=base)
    else:
        f.error("MaxPoolGrad", "grad of another size", [x, one(1, 2, 2, 2), one(1, 3, 2, 2)], "build", attrs=base)
        f.error("MaxPoolGrad", "output of another size", [x, one(1, 3, 2, 2), one(1, 2, 2, 2)], "build", attrs=base)
        f.error("MaxPoolGrad", "input of rank 3", [one(4, 4, 2), one(1, 2, 2, 2), one(1, 2, 2, 2)], "build", attrs=base)
