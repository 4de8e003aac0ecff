"""DepthwiseConv2dNative and its two gradients, and Conv2D with groups: NHWC images, [height, width, in, multiplier] and
[height, width, in of a group, out] filters."""

import numpy as np
import tensorflow as tf

from case_file import NUMPY, TENSORFLOW, element, fixed
from conv_cases import eighths, output_shape
from element_types import FLOATS

# (name, input NHWC, kernel height, width, multiplier, stride of rows, of columns)
GEOMETRIES = [
    ("3 by 3", (2, 4, 5, 2), 3, 3, 1, 1, 1),
    ("two filters a channel", (1, 4, 5, 3), 3, 3, 2, 1, 1),
    ("1 by 1", (2, 3, 2, 3), 1, 1, 1, 1, 1),
    ("1 by 3", (1, 3, 5, 2), 1, 3, 1, 1, 1),
    ("3 by 1, three filters", (1, 5, 3, 2), 3, 1, 3, 1, 1),
    ("one channel", (1, 4, 4, 1), 2, 2, 3, 1, 1),
    ("stride 2, odd", (1, 5, 5, 2), 3, 3, 1, 2, 2),
    ("stride 2, even", (1, 6, 4, 1), 3, 3, 2, 2, 2),
    ("stride beyond the kernel", (1, 7, 7, 2), 2, 2, 1, 3, 3),
    ("unequal strides", (1, 6, 5, 2), 3, 2, 1, 2, 1),
    ("kernel as large as the input", (2, 3, 4, 2), 3, 4, 1, 1, 1),
    ("wide channels", (1, 3, 7, 37), 2, 2, 1, 1, 1),
    ("wide channels, stride 2", (1, 4, 5, 19), 3, 3, 1, 2, 2),
]
SAME_ONLY = [("kernel larger than the input", (1, 2, 3, 2), 5, 5, 1, 1, 1)]
# The same and the dilation of rows, of columns.
DILATED = [
    ("dilation 2", (1, 7, 8, 2), 3, 3, 1, 1, 1, 2, 2),
    ("unequal dilations", (1, 7, 9, 2), 2, 3, 2, 1, 1, 3, 2),
    ("dilation 2, stride 2", (1, 9, 8, 2), 3, 3, 1, 2, 2, 2, 2),
]
DILATED_SAME_ONLY = [
    ("dilation beyond the image", (1, 4, 5, 2), 3, 3, 1, 1, 1, 6, 6),
    ("no element of the filter on the image", (2, 1, 1, 2), 2, 2, 2, 1, 1, 9, 9),
]
# (name, input NHWC, kernel height, width, output channels, groups, stride, dilation)
GROUPED = [
    ("2 groups", (1, 4, 5, 4), 3, 3, 6, 2, 1, 1),
    ("3 groups, stride 2", (2, 5, 4, 6), 2, 3, 3, 3, 2, 1),
    ("a group for each channel", (1, 4, 4, 3), 3, 3, 6, 3, 1, 1),
    ("2 groups, 1 by 1", (1, 3, 3, 4), 1, 1, 4, 2, 1, 1),
    ("2 groups, dilation 2", (1, 6, 7, 4), 2, 2, 2, 2, 1, 2),
]


def add(f):
    for padding in ("SAME", "VALID"):
        for geometry in GEOMETRIES + (SAME_ONLY if padding == "SAME" else []):
            _depthwise(f, *geometry, 1, 1, padding)
        for geometry in DILATED + (DILATED_SAME_ONLY if padding == "SAME" else []):
            _depthwise(f, *geometry, padding)
        for geometry in GROUPED:
            _grouped(f, *geometry, padding)
    _depthwise(f, "empty batch", (0, 3, 3, 2), 2, 2, 2, 1, 1, 1, 1, "SAME")
    _errors(f)


def definition(x, w, groups, strides, dilations, padding, dy):
    """The convolution of x [NHWC] with w [height, width, in of a group, out], and for the gradient dy of its output the
    gradients of x and w, in loops; exact for multiples of 1/8."""
    height, width, depth, outputs = w.shape
    extents = [(k - 1) * d + 1 for k, d in zip((height, width), dilations)]
    batch, rows, columns, _ = shape = output_shape(x.shape, *extents, outputs, *strides, padding)
    total = [
        max((n - 1) * s + k - size, 0) if padding == "SAME" else 0
        for n, s, k, size in zip((rows, columns), strides, extents, x.shape[1:3])
    ]
    top, left = (t // 2 for t in total)
    y, dx, dw = np.zeros(shape), np.zeros(x.shape), np.zeros(w.shape)
    per_group = outputs // groups
    for row, column, i, j in np.ndindex(rows, columns, height, width):
        at = row * strides[0] - top + i * dilations[0], column * strides[1] - left + j * dilations[1]
        if not (0 <= at[0] < x.shape[1] and 0 <= at[1] < x.shape[2]):
            continue
        for g in range(groups):
            ins, outs = slice(g * depth, (g + 1) * depth), slice(g * per_group, (g + 1) * per_group)
            pixel, slope = x[:, at[0], at[1], ins], dy[:, row, column, outs]
            y[:, row, column, outs] += pixel @ w[i, j, :, outs]
            dx[:, at[0], at[1], ins] += slope @ w[i, j, :, outs].T
            dw[i, j, :, outs] += pixel.T @ slope
    return y, dx, dw


def _depthwise(f, name, shape, height, width, multiplier, sh, sw, dh, dw, padding):
    channels = shape[3]
    x, w = eighths(*shape), eighths(height, width, channels, multiplier, phase=1)
    extents = (height - 1) * dh + 1, (width - 1) * dw + 1
    dy = eighths(*output_shape(shape, *extents, channels * multiplier, sh, sw, padding), phase=2)
    flat = w.array.reshape(height, width, 1, channels * multiplier)
    values = definition(x.array, flat, channels, (sh, sw), (dh, dw), padding, dy.array)
    attrs = {"strides": [1, sh, sw, 1], "padding": padding}
    if (dh, dw) != (1, 1):
        attrs["dilations"] = [1, dh, dw, 1]
    # TensorFlow's CPU kernels know neither unequal strides nor dilations.
    by_tensorflow = sh == sw and (dh, dw) == (1, 1) and shape[0] > 0
    _cases(f, "DepthwiseConv2dNative", f"{name}, {padding}", attrs, (x, w, dy), values, by_tensorflow)


def _grouped(f, name, shape, height, width, outputs, groups, stride, dilation, padding):
    x, w = eighths(*shape), eighths(height, width, shape[3] // groups, outputs, phase=1)
    extents = (height - 1) * dilation + 1, (width - 1) * dilation + 1
    dy = eighths(*output_shape(shape, *extents, outputs, stride, stride, padding), phase=2)
    values = definition(x.array, w.array, groups, (stride, stride), (dilation, dilation), padding, dy.array)
    attrs = {"strides": [1, stride, stride, 1], "padding": padding}
    if dilation != 1:
        attrs["dilations"] = [1, dilation, dilation, 1]
    _cases(f, "Conv2D", f"{name}, {padding}", attrs, (x, w, dy), values, False)


def _cases(f, op, name, attrs, operands, values, by_tensorflow):
    x, w, dy = operands
    for suffix, arguments, value in zip(
        ("", "BackpropInput", "BackpropFilter"),
        (
            {"input": x, "filter": w},
            {"input_sizes": fixed(x.array.shape), "filter": w, "out_backprop": dy},
            {"input": x, "filter_sizes": fixed(w.array.shape), "out_backprop": dy},
        ),
        values,
    ):
        value = value.reshape(w.array.shape) if suffix == "BackpropFilter" else value
        if by_tensorflow:
            passed = {key: tf.constant(a.array) for key, a in arguments.items()}
            if not np.array_equal(getattr(tf.raw_ops, op + suffix)(**passed, **attrs).numpy(), value):
                raise ValueError(f"{op}{suffix} '{name}': TensorFlow disagrees with the definition")
        source = f"{NUMPY} loops of the definition" + (f", equal to {TENSORFLOW} raw_ops" if by_tensorflow else "")
        options = {"attrs": attrs, "gradient": True, "tolerance_scale": 4}
        f.case(op + suffix, name, arguments.values(), [element(value)], FLOATS, source, **options)


def _errors(f):
    one = lambda *shape: fixed(np.ones(shape), "float32")
    x, w, same = one(1, 4, 4, 2), one(3, 3, 2, 2), {"strides": [1, 1, 1, 1], "padding": "SAME"}
    op = "DepthwiseConv2dNative"
    for name, inputs, attrs in [
        ("channels differ", [x, one(3, 3, 3, 1)], {}),
        ("input of rank 3", [one(4, 4, 2), w], {}),
        ("filter of rank 3", [x, one(3, 3, 2)], {}),
        ("stride over the batch", [x, w], {"strides": [2, 1, 1, 1]}),
        ("stride 0", [x, w], {"strides": [1, 0, 1, 1]}),
        ("negative stride", [x, w], {"strides": [1, 1, -1, 1]}),
        ("dilation 0", [x, w], {"dilations": [1, 1, 0, 1]}),
        ("kernel larger than the input", [one(1, 2, 4, 2), one(4, 3, 2, 1)], {"padding": "VALID"}),
        ("different element types", [x, fixed(np.ones((3, 3, 2, 1)), "float64")], {}),
    ]:
        f.error(op, name, inputs, "build", attrs={**same, **attrs})
    sizes, filter_sizes, dy = fixed([1, 4, 4, 2]), fixed([3, 3, 2, 2]), one(1, 4, 4, 4)
    f.error(f"{op}BackpropInput", "out_backprop of another size", [sizes, w, one(1, 3, 4, 4)], "run", attrs=same)
    f.error(f"{op}BackpropInput", "output channels differ", [sizes, w, one(1, 4, 4, 2)], "build", attrs=same)
    f.error(f"{op}BackpropInput", "negative size", [fixed([1, -4, 4, 2]), w, dy], "run", attrs=same)
    f.error(f"{op}BackpropFilter", "batches differ", [x, filter_sizes, one(2, 4, 4, 4)], "build", attrs=same)
    f.error(f"{op}BackpropFilter", "channels differ", [x, fixed([3, 3, 3, 2]), dy], "run", attrs=same)
    f.error(f"{op}BackpropFilter", "three filter sizes", [x, fixed([3, 3, 2]), dy], "build", attrs=same)
    odd, grouped = one(1, 4, 4, 5), one(1, 4, 4, 4)
    f.error("Conv2D", "channels of the filter do not divide those of the input", [odd, w], "build", attrs=same)
    name, w, dy = "groups do not divide the output", one(3, 3, 2, 3), one(1, 4, 4, 3)
    f.error("Conv2D", name, [grouped, w], "build", attrs=same)
    f.error("Conv2DBackpropInput", name, [fixed([1, 4, 4, 4]), w, dy], "run", attrs=same)
