"""Element types of dflow, and which of them can hold the numbers of a case."""

import ml_dtypes
import numpy as np

FLOATS = ["float64", "float32", "float16", "bfloat16"]
SIGNED = ["int64", "int32", "int16", "int8"]
UNSIGNED = ["uint64", "uint32", "uint16", "uint8"]
INTS = SIGNED + UNSIGNED
REALS = FLOATS + INTS
COMPLEX = ["complex128", "complex64"]
BOOL = ["bool"]
STRING = ["string"]

_FLOAT = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_COMPLEX_PART = {"complex128": "float64", "complex64": "float32"}


def wide_parameter(name):
    """The type of the per-channel parameters of an op on elements of type `name`."""
    return "float32" if name in ("float16", "bfloat16") else name


def round_to(name, values):
    """Rounds float64 `values` to the nearest number of type `name`, as float64."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(_FLOAT[name]).astype(np.float64)


def spread(low, high, count):
    """`count` numbers from `low` to `high`, evenly spaced up to rounding to bfloat16, hence exact in every float type."""
    return round_to("bfloat16", np.linspace(low, high, count))


def holds_input(name, array):
    """Whether every element of `array` is a number of type `name`, so that converting an input loses nothing."""
    if array.dtype == object:
        return name == "string"
    if array.dtype == bool:
        return name == "bool"
    if name in COMPLEX:
        return all(holds_input(_COMPLEX_PART[name], part) for part in (array.real, array.imag))
    if np.iscomplexobj(array):
        return False
    if name in _FLOAT:
        exact = round_to(name, array)
        wide = array.astype(np.float64)
        return bool(np.array_equal(exact, wide, equal_nan=True)) and _fits_float64(array)
    if name in INTS:
        return _holds_integers(name, array)
    return False


def holds_output(name, array):
    """Whether `name` can hold `array` up to rounding: no overflow, and nothing in or below its subnormal range."""
    if array.dtype in (object, bool):
        return holds_input(name, array)
    if name in COMPLEX:
        return all(holds_output(_COMPLEX_PART[name], part) for part in (array.real, array.imag))
    if np.iscomplexobj(array):
        return False
    if name in INTS:
        return _holds_integers(name, array)
    if name == "float64":
        return True  # the type of the reference
    limits = ml_dtypes.finfo(_FLOAT[name])
    wide = np.abs(array.astype(np.float64))
    finite = wide[np.isfinite(wide) & (wide != 0)]
    return bool(np.all(finite <= float(limits.max) * 0.98) and np.all(finite >= float(limits.smallest_normal)))


def _fits_float64(array):
    if array.dtype.kind not in "iu":
        return True
    return all(int(float(value)) == int(value) for value in array.ravel())


def _holds_integers(name, array):
    if array.dtype.kind == "f" and not np.all(np.isfinite(array) & (array == np.floor(array))):
        return False
    limits = np.iinfo(name)
    return all(limits.min <= int(value) <= limits.max for value in array.ravel())
