#!/usr/bin/env python3
"""Reads a tensor bundle, a checkpoint of version 2, with TensorFlow itself.

Usage: tests/tools/read_bundle.py PREFIX
Prints one line per tensor: name, number of the element type, shape and the bytes in hexadecimal, of strings each behind a
blank. Exits 77 where TensorFlow is not installed, 1 if it does not read all of it, or reads a slice otherwise.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

try:
    import tensorflow as tf
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def bytes_of(array):
    if array.dtype == object:
        return "".join(" " + text.hex() for text in array.ravel().tolist())
    return " " + array.tobytes().hex()


def require_slice(prefix, name, whole):
    """As a partitioned variable restores its part."""
    first = (whole.shape[0] + 1) // 2
    extents = " ".join(map(str, whole.shape))
    rest = ":".join(["-"] * (len(whole.shape) - 1))
    spec = f"{extents} 0,{first}" + (":" + rest if rest else "")
    try:
        (part,) = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[spec], dtypes=[TYPES[name]])
    except tf.errors.InvalidArgumentError as error:
        if "not supported" in error.message:  # TensorFlow cuts no tensor of that type
            return
        raise
    if bytes_of(part.numpy()) != bytes_of(whole[:first]):
        sys.exit(f"'{name}' has other values in slice {spec}")


prefix = sys.argv[1]
reader = tf.train.load_checkpoint(prefix)
TYPES = reader.get_variable_to_dtype_map()
listed = dict(tf.train.list_variables(prefix))
for name, shape in sorted(reader.get_variable_to_shape_map().items(), key=lambda item: item[0].encode()):
    value = tf.constant(reader.get_tensor(name), dtype=TYPES[name])
    array = value.numpy()
    if isinstance(array, bytes):
        array = tf.reshape(value, [1]).numpy()
    elif 0 not in value.shape and len(value.shape) > 0:
        require_slice(prefix, name, array)
    if listed[name] != shape or value.shape.as_list() != shape:
        sys.exit(f"'{name}' has shapes {listed[name]}, {shape} and {value.shape}")
    print(name, TYPES[name].as_datatype_enum, shape, end="")
    print(bytes_of(array))
