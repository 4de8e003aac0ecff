"""Conv2D and its two gradients: NHWC input, [height, width, in, out] filter."""

import numpy as np
import tensorflow as tf

from case_file import TENSORFLOW, element, fixed
from element_types import FLOATS

# (name, input NHWC, kernel height, width, output channels, stride of rows, of columns)
GEOMETRIES = [
    ("3 by 3", (1, 4, 5, 2), 3, 3, 2, 1, 1),
    ("1 by 1", (2, 3, 2, 3), 1, 1, 2, 1, 1),
    ("5 by 5", (1, 5, 6, 1), 5, 5, 1, 1, 1),
    ("2 by 2", (1, 3, 4, 1), 2, 2, 2, 1, 1),
    ("1 by 3", (1, 3, 5, 2), 1, 3, 1, 1, 1),
    ("3 by 1", (1, 5, 3, 2), 3, 1, 1, 1, 1),
    ("3 by 3, stride 2, odd", (1, 5, 5, 1), 3, 3, 2, 2, 2),
    ("3 by 3, stride 2, even", (1, 6, 4, 1), 3, 3, 2, 2, 2),
    ("2 by 2, stride 2", (2, 4, 4, 1), 2, 2, 1, 2, 2),
    ("2 by 2, stride 2, odd", (1, 5, 3, 1), 2, 2, 1, 2, 2),
    ("1 by 1, stride 2", (1, 5, 4, 2), 1, 1, 2, 2, 2),
    ("stride beyond the kernel", (1, 7, 7, 1), 2, 2, 1, 3, 3),
    ("unequal strides", (1, 6, 5, 1), 3, 2, 1, 2, 1),
    ("unequal strides, other way", (1, 4, 7, 1), 2, 3, 1, 1, 3),
    ("kernel as large as the input", (2, 3, 4, 1), 3, 4, 2, 1, 1),
    ("one pixel", (3, 1, 1, 2), 1, 1, 3, 1, 1),
    ("wide channels", (1, 3, 3, 17), 2, 2, 9, 1, 1),
    ("batch of 5", (5, 3, 2, 1), 2, 2, 1, 1, 1),
]
SAME_ONLY = [
    ("kernel larger than the input", (1, 2, 3, 1), 5, 5, 1, 1, 1),
    ("kernel larger, stride 2", (1, 3, 2, 1), 4, 5, 1, 2, 2),
]
# The same and the dilation of rows, of columns.
DILATED = [
    ("dilation 2", (1, 7, 8, 2), 3, 3, 2, 1, 1, 2, 2),
    ("dilation of rows alone", (2, 6, 4, 1), 3, 2, 2, 1, 1, 2, 1),
    ("unequal dilations", (1, 7, 9, 1), 2, 3, 2, 1, 1, 3, 2),
    ("dilation 2, stride 2", (1, 9, 8, 2), 3, 3, 1, 2, 2, 2, 2),
    ("dilation 3, unequal strides", (1, 8, 9, 1), 3, 2, 2, 2, 1, 3, 3),
    ("1 by 1, dilation 5", (1, 3, 4, 2), 1, 1, 2, 1, 1, 5, 5),
    ("wide channels, dilation 2", (1, 5, 5, 17), 2, 2, 9, 1, 1, 2, 2),
]
DILATED_SAME_ONLY = [
    ("dilation beyond the image", (1, 4, 5, 2), 3, 3, 2, 1, 1, 6, 6),
    ("dilation beyond the rows", (1, 3, 9, 1), 3, 3, 2, 1, 1, 4, 2),
    ("dilation and stride beyond the image", (1, 8, 9, 1), 3, 3, 2, 8, 8, 10, 10),
    ("no element of the filter on the image", (2, 1, 1, 2), 2, 2, 3, 1, 1, 9, 9),
]


def eighths(*shape, phase=0):
    count = int(np.prod(shape))
    return element((((np.arange(count) * 7 + phase * 5) % 25 - 12) / 8).reshape(shape))


def output_size(size, kernel, stride, padding):
    return -(-size // stride) if padding == "SAME" else -(-(size - kernel + 1) // stride)


def output_shape(shape, kh, kw, channels, sh, sw, padding):
    return shape[0], output_size(shape[1], kh, sh, padding), output_size(shape[2], kw, sw, padding), channels


def add(f):
    for padding in ("SAME", "VALID"):
        for geometry in GEOMETRIES + (SAME_ONLY if padding == "SAME" else []):
            _cases(f, *geometry, padding)
        for *geometry, dh, dw in DILATED + (DILATED_SAME_ONLY if padding == "SAME" else []):
            _cases(f, *geometry, padding, (dh, dw))
    _cases(f, "empty batch", (0, 3, 3, 2), 2, 2, 2, 1, 1, "SAME")
    _extremes(f)
    _errors(f)


def _cases(f, name, shape, kh, kw, channels, sh, sw, padding, dilations=(1, 1)):
    attrs = {"strides": [1, sh, sw, 1], "padding": padding}
    if dilations != (1, 1):
        attrs["dilations"] = [1, *dilations, 1]
    options = {"attrs": attrs, "gradient": True, "tolerance_scale": 4}
    x, w = eighths(*shape), eighths(kh, kw, shape[3], channels, phase=1)
    extents = [(k - 1) * d + 1 for k, d in zip((kh, kw), dilations)]
    dy = eighths(*output_shape(shape, *extents, channels, sh, sw, padding), phase=2)
    name = f"{name}, {padding}"
    f.raw("Conv2D", name, {"input": x, "filter": w}, FLOATS, **options)
    gradient = f.raw if dilations == (1, 1) else _compiled(f)
    gradient(
        "Conv2DBackpropInput", name, {"input_sizes": fixed(shape), "filter": w, "out_backprop": dy}, FLOATS, **options
    )
    gradient(
        "Conv2DBackpropFilter",
        name,
        {"input": x, "filter_sizes": fixed(w.array.shape), "out_backprop": dy},
        FLOATS,
        **options,
    )
    y, dx, dw = (
        np.reshape(f.cases[i]["outputs"][0]["values"], f.cases[i]["outputs"][0]["shape"]) for i in (-3, -2, -1)
    )
    if not (
        np.array_equal(y, direct(x.array, w.array, sh, sw, padding, dilations))
        and np.isclose(np.sum(y * dy.array), np.sum(dx * x.array))
        and np.isclose(np.sum(y * dy.array), np.sum(dw * w.array))
    ):
        raise ValueError(f"Conv2D '{name}': TensorFlow disagrees with the definition")


def _compiled(f):
    """As `raw`, by XLA: TensorFlow's own kernels of the gradients know no dilation."""

    def case(op, name, arguments, types, **options):
        def run():
            passed = {key: a.array if a.role == "fixed" else tf.constant(a.array) for key, a in arguments.items()}
            return getattr(tf.raw_ops, op)(**passed, **options["attrs"])

        output = element(tf.function(run, jit_compile=True)().numpy())
        f.case(op, name, arguments.values(), [output], types, f"{TENSORFLOW} raw_ops.{op} float64 by XLA", **options)

    return case


def direct(x, w, sh, sw, padding, dilations=(1, 1)):
    """The definition, in loops; exact for multiples of 1/8."""
    *_, channels = w.shape
    (kh, dh), (kw, dw) = (((k - 1) * d + 1, d) for k, d in zip(w.shape, dilations))
    batch, rows, columns, _ = shape = output_shape(x.shape, kh, kw, channels, sh, sw, padding)
    total = [
        max((n - 1) * s + k - size, 0) if padding == "SAME" else 0
        for n, s, k, size in zip((rows, columns), (sh, sw), (kh, kw), x.shape[1:3])
    ]
    padded = np.pad(x, [(0, 0), *((t // 2, t - t // 2) for t in total), (0, 0)])
    y = np.zeros(shape)
    for row in range(rows):
        for column in range(columns):
            window = padded[:, row * sh : row * sh + kh : dh, column * sw : column * sw + kw : dw]
            y[:, row, column] = np.tensordot(window, w, 3)
    return y


def _extremes(f):
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    f.raw(
        "Conv2D",
        "infinity and not a number",
        {"input": element([[[[np.inf], [1], [2], [np.nan], [1], [1]]]]), "filter": element([[[[1]], [[2]]]])},
        FLOATS,
        attrs=attrs,
    )
    f.raw(
        "Conv2D",
        "zero-padding adds nothing to infinity",
        {"input": element([[[[1], [np.inf]]]]), "filter": element([[[[1]], [[2]]]])},
        FLOATS,
        attrs={"strides": [1, 1, 1, 1], "padding": "SAME"},
    )
    f.raw(
        "Conv2D",
        "float64 extremes",
        {"input": element([[[[1e200], [1e-200]]]]), "filter": element([[[[1e100]]]])},
        ["float64"],
        attrs=attrs,
    )
    f.raw(
        "Conv2D",
        "large values",
        {"input": element(np.full((1, 2, 2, 1), 2.0**60)), "filter": element(np.full((2, 2, 1, 1), 2.0**60))},
        FLOATS,
        attrs=attrs,
    )


def _errors(f):
    x, w, unit, same = (
        fixed(np.ones((1, 4, 4, 2)), "float32"),
        fixed(np.ones((3, 3, 2, 1)), "float32"),
        [1, 1, 1, 1],
        "SAME",
    )
    one = lambda *shape: fixed(np.ones(shape), "float32")
    for name, inputs, attrs in [
        ("channels differ", [x, one(3, 3, 3, 1)], {}),
        ("input of rank 3", [one(4, 4, 2), w], {}),
        ("filter of rank 3", [x, one(3, 3, 2)], {}),
        ("stride over the batch", [x, w], {"strides": [2, 1, 1, 1]}),
        ("stride over the channels", [x, w], {"strides": [1, 1, 1, 2]}),
        ("stride 0", [x, w], {"strides": [1, 0, 1, 1]}),
        ("negative stride", [x, w], {"strides": [1, 1, -1, 1]}),
        ("three strides", [x, w], {"strides": [1, 1, 1]}),
        ("dilation over the batch", [x, w], {"dilations": [2, 1, 1, 1]}),
        ("dilation over the channels", [x, w], {"dilations": [1, 1, 1, 2]}),
        ("dilation 0", [x, w], {"dilations": [1, 1, 0, 1]}),
        ("negative dilation", [x, w], {"dilations": [1, -1, 1, 1]}),
        ("three dilations", [x, w], {"dilations": [1, 1, 1]}),
        ("no dilations", [x, w], {"dilations": []}),
        ("dilated kernel larger than the input", [x, w], {"padding": "VALID", "dilations": [1, 1, 2, 1]}),
        ("unknown padding", [x, w], {"padding": "FULL"}),
        ("kernel larger than the input", [one(1, 2, 4, 2), one(4, 3, 2, 1)], {"padding": "VALID"}),
        ("different element types", [x, fixed(np.ones((3, 3, 2, 1)), "float64")], {}),
    ]:
        f.error("Conv2D", name, inputs, "build", attrs={"strides": unit, "padding": same, **attrs})
    attrs = {"strides": unit, "padding": same}
    sizes, filter_sizes, dy = fixed([1, 4, 4, 2]), fixed([3, 3, 2, 1]), one(1, 4, 4, 1)
    f.error("Conv2DBackpropInput", "out_backprop of another size", [sizes, w, one(1, 3, 4, 1)], "run", attrs=attrs)
    f.error("Conv2DBackpropInput", "batches differ", [fixed([2, 4, 4, 2]), w, dy], "run", attrs=attrs)
    f.error("Conv2DBackpropInput", "channels differ", [sizes, one(3, 3, 2, 2), dy], "build", attrs=attrs)
    dilated = {**attrs, "dilations": [1, 0, 1, 1]}
    f.error("Conv2DBackpropInput", "dilation 0", [sizes, w, dy], "build", attrs=dilated)
    f.error("Conv2DBackpropFilter", "dilation 0", [x, filter_sizes, dy], "build", attrs=dilated)
    f.error("Conv2DBackpropInput", "three input sizes", [fixed([1, 4, 4]), w, dy], "build", attrs=attrs)
    f.error("Conv2DBackpropInput", "negative size", [fixed([1, -4, 4, 2]), w, dy], "run", attrs=attrs)
    f.error(
        "Conv2DBackpropFilter", "out_backprop of another size", [x, filter_sizes, one(1, 4, 3, 1)], "build", attrs=attrs
    )
    f.error("Conv2DBackpropFilter", "batches differ", [x, filter_sizes, one(2, 4, 4, 1)], "build", attrs=attrs)
    f.error("Conv2DBackpropFilter", "channels differ", [x, fixed([3, 3, 3, 1]), dy], "run", attrs=attrs)
    f.error("Conv2DBackpropFilter", "three filter sizes", [x, fixed([3, 3, 2]), dy], "build", attrs=attrs)
