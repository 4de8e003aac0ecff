"""NumPy's and SciPy's values of ops that TensorFlow computes for the oracle: the generator stops where the two disagree."""

import warnings

import numpy as np
from scipy import special


def _truncated_quotient(x, y):
    if x.dtype.kind not in "iu":
        return x / y
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) == (y < 0), quotient, -quotient)


def _squared_difference(x, y):
    return (np.conj(x - y) if np.iscomplexobj(x) else x - y) * (x - y)


def _mean(x, axis, keepdims):
    if x.dtype.kind not in "iu":
        return np.mean(x, axis=axis, keepdims=keepdims)
    count = np.prod([x.shape[a] for a in axis], dtype=np.int64)
    return np.trunc(np.sum(x, axis=axis, keepdims=keepdims) / count).astype(x.dtype)


def _adjoint(x, on):
    return np.conj(np.swapaxes(x, -1, -2)) if on else x


def _reduced(function):
    return lambda x, axes, keep_dims=False: function(
        x, axis=tuple(np.atleast_1d(axes).astype(int).tolist()), keepdims=keep_dims
    )


ELEMENTWISE = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Inv": lambda x: 1 / x,
    "Square": lambda x: x * x,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Exp": np.exp,
    "Log": np.log,
    "Log1p": np.log1p,
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Cos": np.cos,
    "Lgamma": special.gammaln,
    "Digamma": special.digamma,
    "Erf": special.erf,
    "Erfc": special.erfc,
    "Sign": np.sign,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.round,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
    "LogicalNot": np.logical_not,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _truncated_quotient,
    "Mod": np.fmod,
    "Pow": np.power,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "SquaredDifference": _squared_difference,
    "Igamma": special.gammainc,
    "Igammac": special.gammaincc,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}

OPINIONS = {
    **ELEMENTWISE,
    "MatMul": lambda a, b, transpose_a=False, transpose_b=False: (a.T if transpose_a else a)
    @ (b.T if transpose_b else b),
    "BatchMatMul": lambda x, y, adj_x=False, adj_y=False: _adjoint(x, adj_x) @ _adjoint(y, adj_y),
    "Sum": _reduced(np.sum),
    "Prod": _reduced(np.prod),
    "Mean": _reduced(_mean),
    "All": _reduced(np.all),
    "Any": _reduced(np.any),
}


def disagreement(op, arrays, attrs, result):
    """What is wrong with `result` by the second opinion, or an empty string; also where there is no second opinion."""
    if op not in OPINIONS or any(a.dtype == object for a in arrays):
        return ""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy warns of the mean of nothing, which is not a number
        expected = np.asarray(OPINIONS[op](*arrays, **attrs))
    if expected.shape != result.shape:
        return f"shape {result.shape}, expected {expected.shape}"
    if result.dtype.kind in "fc":
        same = np.isclose(result, expected, rtol=1e-12, atol=1e-14, equal_nan=True)
    else:
        same = result == expected
    return "" if np.all(same) else f"{result[~same].tolist()}, expected {expected[~same].tolist()}"
