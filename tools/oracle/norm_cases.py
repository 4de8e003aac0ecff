"""Fused batch normalisation, NHWC, and its gradient.

TensorFlow's kernels are for float32 alone, so the formulas are in NumPy, in float64; float32 TensorFlow must agree with them.
The numbers per channel are an arithmetic progression in scrambled order: mean and variance are then exact in every type.
"""

import numpy as np
import tensorflow as tf

from case_file import NUMPY, TENSORFLOW, element, fixed, parameter
from element_types import FLOATS

SOURCE = f"{NUMPY} float64, agrees with {TENSORFLOW} float32"

# (name, NHWC); N*H*W is one of those for which the variance of a progression is a short binary fraction.
SHAPES = [
    ("one channel", (1, 2, 2, 1)),
    ("three channels", (2, 2, 1, 3)),
    ("batch alone", (8, 1, 1, 2)),
    ("one image", (1, 2, 4, 2)),
    ("two by two by two", (2, 2, 2, 2)),
    ("odd count", (1, 5, 1, 2)),
    ("seven rows", (1, 7, 1, 3)),
    ("many channels", (2, 1, 2, 19)),
    ("sixteen pixels", (1, 4, 4, 1)),
    ("two values", (2, 1, 1, 3)),
]


def progressions(shape, phase=0):
    """Channel c holds mean + step * (0, 1, 2, ... - (n-1)/2) in scrambled order, with mean and step depending on c."""
    count, channels = int(np.prod(shape[:3])), shape[3]
    stride = next(s for s in (3, 5, 7) if count % s) if count else 1
    order = (np.arange(count)[:, None] * stride + np.arange(channels) + phase) % max(count, 1) - (count - 1) / 2
    step = np.array([0.5, 1, 0.25])[(np.arange(channels) + phase) % 3]
    return (order * step + (np.arange(channels) % 5 - 2) / 2).reshape(shape)


def eighths(shape, phase=0):
    return (((np.arange(int(np.prod(shape))) * 7 + phase * 5) % 25 - 12) / 8).reshape(shape)


def normalise(x, scale, offset, mean, variance, epsilon):
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


def training_gradients(dy, x, scale, mean, variance, epsilon):
    axes, centred, factor = (0, 1, 2), x - mean, 1 / np.sqrt(variance + epsilon)
    dscale, doffset = np.sum(dy * centred, axes) * factor, np.sum(dy, axes)
    dx = scale * factor * (dy - np.mean(dy, axes) - centred * factor**2 * np.mean(dy * centred, axes))
    return dx, dscale, doffset


def inference_gradients(dy, x, scale, mean, variance, epsilon):
    factor = 1 / np.sqrt(variance + epsilon)
    return dy * scale * factor, np.sum(dy * (x - mean), (0, 1, 2)) * factor, np.sum(dy, (0, 1, 2))


def add(f):
    for i, (name, shape) in enumerate(SHAPES):
        epsilon = [0.0625, 0.0009765625, 1.0][i % 3]
        _training(f, name, progressions(shape), epsilon)
        _inference(f, name, eighths(shape), epsilon)
    numbers = np.sin(np.arange(36.0)).reshape(2, 3, 2, 3) * 3 + 0.7
    _training(f, "17 digits", numbers, 1e-3)
    _inference(f, "17 digits", numbers, 1e-3)
    # A one-pass variance (mean of squares less square of mean) loses all digits here.
    _training(
        f, "mean far from zero", np.array([1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3]).reshape(1, 4, 1, 1), 0.0625, check=False
    )
    _training(f, "constant channel", np.full((2, 2, 1, 2), 3.0), 0.25)
    _training(f, "one value", np.array([[[[2.0, -1.5]]]]), 0.25)
    _inference(f, "empty batch", np.zeros((0, 2, 2, 3)), 0.0625, check=False)
    _inference(f, "default epsilon", eighths((2, 1, 2, 2)), 1e-4, attrs={"is_training": False})
    _errors(f)


def _per_channel(channels):
    c = np.arange(channels)
    scale, offset = np.array([1.5, -0.5, 2, 0.75])[c % 4], np.array([0, 0.25, -1])[c % 3]
    mean, variance = np.array([0.5, -1.25, 0])[c % 3], np.array([0.75, 2.5, 1, 0.25])[c % 4]
    return scale, offset, mean, variance


def _training(f, name, x, epsilon, check=True):
    scale, offset, _, _ = _per_channel(x.shape[3])
    axes, count = (0, 1, 2), int(np.prod(x.shape[:3]))
    mean, variance = np.mean(x, axes), np.var(x, axes)
    unbiased = variance * count / max(count - 1, 1)
    y = normalise(x, scale, offset, mean, variance, epsilon)
    dy = eighths(x.shape, phase=3)
    gradients = training_gradients(dy, x, scale, mean, variance, epsilon)
    if check:
        empty = np.zeros(0)
        _agree(
            name,
            tf.raw_ops.FusedBatchNorm(
                **_float32(x=x, scale=scale, offset=offset, mean=empty, variance=empty), epsilon=epsilon
            ),
            (y, mean, unbiased, mean, variance),
        )
        _agree(
            name,
            tf.raw_ops.FusedBatchNormGrad(
                **_float32(y_backprop=dy, x=x, scale=scale, reserve_space_1=mean, reserve_space_2=variance),
                epsilon=epsilon,
            ),
            gradients,
        )
    attrs = {"epsilon": epsilon, "is_training": True}
    outputs = [element(y), *(parameter(v) for v in (mean, unbiased, mean, variance))]
    f.case(
        "FusedBatchNorm",
        f"training, {name}",
        [element(x), parameter(scale), parameter(offset), parameter([]), parameter([])],
        outputs,
        FLOATS,
        SOURCE,
        attrs=attrs,
        gradient=count > 1,
        gradient_inputs=[0, 1, 2],
        gradient_outputs=[0],
        tolerance_scale=4,
    )
    inputs = [element(dy), element(x), parameter(scale), parameter(mean), parameter(variance)]
    outputs = [element(gradients[0]), parameter(gradients[1]), parameter(gradients[2])]
    f.case(
        "FusedBatchNormGrad",
        f"training, {name}",
        inputs,
        outputs,
        FLOATS,
        SOURCE,
        attrs=attrs,
        gradient=count > 1,
        gradient_inputs=[0, 2],
        tolerance_scale=8,
    )


def _inference(f, name, x, epsilon, attrs=None, check=True):
    scale, offset, mean, variance = _per_channel(x.shape[3])
    y = normalise(x, scale, offset, mean, variance, epsilon)
    dy = eighths(x.shape, phase=3)
    gradients = inference_gradients(dy, x, scale, mean, variance, epsilon)
    if check:
        _agree(
            name,
            tf.raw_ops.FusedBatchNorm(
                **_float32(x=x, scale=scale, offset=offset, mean=mean, variance=variance),
                epsilon=epsilon,
                is_training=False,
            ),
            (y,),
        )
        _agree(
            name,
            tf.raw_ops.FusedBatchNormGrad(
                **_float32(y_backprop=dy, x=x, scale=scale, reserve_space_1=mean, reserve_space_2=variance),
                epsilon=epsilon,
                is_training=False,
            ),
            gradients,
        )
    attrs = attrs or {"epsilon": epsilon, "is_training": False}
    inputs = [element(x), *(parameter(v) for v in (scale, offset, mean, variance))]
    outputs = [element(y), parameter(mean), parameter(variance)]
    f.case(
        "FusedBatchNorm",
        f"inference, {name}",
        inputs,
        outputs,
        FLOATS,
        SOURCE,
        attrs=attrs,
        gradient=True,
        tolerance_scale=4,
    )
    inputs = [element(dy), element(x), parameter(scale), parameter(mean), parameter(variance)]
    outputs = [element(gradients[0]), parameter(gradients[1]), parameter(gradients[2])]
    f.case(
        "FusedBatchNormGrad",
        f"inference, {name}",
        inputs,
        outputs,
        FLOATS,
        SOURCE,
        attrs=attrs,
        gradient=True,
        tolerance_scale=4,
    )


def _float32(**arrays):
    return {name: tf.constant(array, tf.float32) for name, array in arrays.items()}


def _agree(name, results, expected):
    for result, values in zip(results, expected):
        if not np.allclose(result.numpy(), values, rtol=1e-4, atol=1e-4):
            raise ValueError(
                f"batch normalisation '{name}': {TENSORFLOW} computes {result.numpy().tolist()}, expected {values.tolist()}"
            )


def _errors(f):
    one = lambda *shape: fixed(np.ones(shape), "float32")
    x, three, none = one(2, 2, 2, 3), one(3), one(0)
    f.error("FusedBatchNorm", "x of rank 3", [one(2, 2, 3), three, three, none, none], "build")
    f.error("FusedBatchNorm", "scale of another length", [x, one(2), three, none, none], "build")
    f.error("FusedBatchNorm", "offset of another length", [x, three, one(4), none, none], "build")
    f.error("FusedBatchNorm", "scale of rank 2", [x, one(1, 3), three, none, none], "build")
    f.error(
        "FusedBatchNorm",
        "inference without mean",
        [x, three, three, none, three],
        "build",
        attrs={"is_training": False},
    )
    f.error(
        "FusedBatchNorm",
        "inference with variance of another length",
        [x, three, three, three, one(2)],
        "build",
        attrs={"is_training": False},
    )
    f.error("FusedBatchNormGrad", "y_backprop of another shape", [one(2, 2, 1, 3), x, three, three, three], "build")
    f.error("FusedBatchNormGrad", "x of rank 3", [one(2, 2, 3), one(2, 2, 3), three, three, three], "build")
    f.error("FusedBatchNormGrad", "scale of another length", [x, x, one(2), three, three], "build")
