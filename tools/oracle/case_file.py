"""Records cases of one family of ops and writes them as a JSON file, one case a line.

An argument of an op is `element(values)`, a tensor whose type is the element type under test ("role": "T"),
`parameter(values)`, the same but float32 where that type is float16 or bfloat16 ("role": "param"), or
`fixed(values, dtype)`, a tensor of one type whatever the type under test. Everything else is an attribute.
"""

import collections
import importlib
import importlib.metadata
import json
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import scipy

import element_types
import second_opinion

# Ops whose outputs are sums of terms of either sign: an error is to be compared with the terms, not with what is left.
SUMS = {
    "AddN", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdam", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyGradientDescent",
    "ApplyMomentum", "ApplyRMSProp", "AvgPool", "AvgPoolGrad", "BatchMatMul", "BiasAddGrad",
    "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "ExclusiveProdGrad", "FusedBatchNorm", "FusedBatchNormGrad",
    "LogSoftmax", "LogSoftmaxGrad", "MatMul", "Mean", "ScatterAdd", "ScatterSub", "SigmoidCrossEntropyWithLogits",
    "SoftmaxCrossEntropyWithLogits", "SoftmaxGrad", "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdam",
    "SparseApplyCenteredRMSProp", "SparseApplyFtrl", "SparseApplyGradientDescent", "SparseApplyMomentum", "SparseApplyRMSProp",
    "SparseSoftmaxCrossEntropyWithLogits", "Sum", "SumToShape", "UnsortedSegmentSum",
    "Cumsum", "LinearScan", "ScatterNd", "SegmentMean", "SegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum",
    "Cholesky", "MatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixSolveLs", "MatrixTriangularSolve", "Qr",
    "SelfAdjointEigV2", "Svd",
    "FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D",
    "RFFTGrad", "IRFFTGrad",
}

# Ops of which a zero may have either sign: sums that may start from +0, and ops that pick one of two zeros or multiply by one.
ANY_ZERO = {"BatchMatMul", "MatMul", "MatrixDeterminant", "Maximum", "Minimum", "Qr", "Relu", "Relu6Grad", "ReluGrad"}

Argument = collections.namedtuple("Argument", "array role dtype")


class _TensorFlow:
    """Imported when it is first asked for: families whose values are NumPy's and SciPy's do without it."""

    def __getattr__(self, name):
        return getattr(importlib.import_module("tensorflow"), name)


def _version_of_tensorflow():
    for name in ("tensorflow-cpu", "tensorflow"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


tf = _TensorFlow()
TENSORFLOW = f"tensorflow {_version_of_tensorflow()}"
NUMPY = f"numpy {np.__version__}"
SCIPY = f"scipy {scipy.__version__}"


def element(values, wide="float64"):
    """A tensor of the type under test. `wide` is the type the reference computes in: float64, int64, complex128, ..."""
    return Argument(_as_array(values, wide), "T", wide)


def parameter(values):
    """A tensor of the type under test, or of float32 where that has fewer bits."""
    return Argument(_as_array(values, "float64"), "param", "float64")


def fixed(values, dtype="int32"):
    """A tensor of type `dtype` whatever the type under test."""
    return Argument(_as_array(values, dtype), "fixed", dtype)


def _as_array(values, dtype):
    if dtype == "string":
        return np.array(values, dtype=object)
    if dtype == "bfloat16":
        return element_types.round_to("bfloat16", values)
    return np.array(values, dtype=dtype)


def _plain_array(result):
    """The value of an eager tensor as an array of a type that NumPy knows by itself."""
    if result.dtype == tf.string:
        return np.array(result.numpy(), dtype=object)
    return result.numpy().astype(np.float64) if result.dtype == tf.bfloat16 else result.numpy()


class CaseFile:
    def __init__(self, family):
        self.family = family
        self.cases = []
        self.errors = []

    def case(self, op, name, inputs, outputs, types, source, attrs=None, gradient=False, tolerance_scale=1, **extra):
        """Adds one case. `outputs` are Arguments; of `types`, those that cannot hold the numbers are dropped.

        `extra`: what tests/oracle/README.md says of `terms`, `roundings` and `any_zero`.
        """
        inputs, outputs, attrs = list(inputs), list(outputs), dict(attrs or {})
        under_test = [a for a in inputs + list(attrs.values()) if isinstance(a, Argument) and a.role == "T"]
        results = [a.array for a in outputs if a.role == "T"]
        parameters = [a.array for a in inputs if a.role == "param"]
        kept = [
            t
            for t in types
            if all(element_types.holds_input(t, a.array) for a in under_test)
            and all(element_types.holds_input(element_types.wide_parameter(t), a) for a in parameters)
            and all(element_types.holds_output(t, a) for a in results)
        ]
        if not kept:
            raise ValueError(f"{op} '{name}': no element type can hold the numbers")
        record = {"op": op, "name": name}
        if attrs:
            record["attrs"] = {k: _tensor(v) if isinstance(v, Argument) else v for k, v in attrs.items()}
        record["inputs"] = [_tensor(a) for a in inputs]
        record["outputs"] = [_tensor(a) for a in outputs]
        record["types"] = kept
        record["gradient"] = bool(gradient and "float64" in kept)
        record["tolerance_scale"] = tolerance_scale
        if op in SUMS and "terms" not in extra and any(t in element_types.FLOATS + element_types.COMPLEX for t in kept):
            record["terms"] = _largest([a.array for a in inputs + outputs if a.role != "fixed"])
        if op in ANY_ZERO:
            record["any_zero"] = True
        record.update(extra)
        record["source"] = source
        self._append(self.cases, record)

    def raw(
        self,
        op,
        name,
        arguments,
        types,
        raw_op=None,
        attrs=None,
        raw_attrs=None,
        output_roles=None,
        with_gradients=False,
        **options,
    ):
        """Adds a case whose outputs are those of a raw op of TensorFlow on the wide types.

        `arguments`: the raw op's parameter names to Arguments or lists of them, in the order of the op's inputs.
        `raw_attrs`: attributes passed to TensorFlow where they differ from the recorded `attrs`.
        `output_roles`: "T" or "fixed" per output; by default T, and fixed where the type differs from the inputs'.
        `with_gradients`: records TensorFlow's gradients too, for output gradients that are multiples of 1/8; a list: of these
        outputs alone.
        """
        raw_op = raw_op or op
        inputs = []
        passed = {}
        for key, value in arguments.items():
            group = value if isinstance(value, list) else [value]
            inputs += group
            tensors = [tf.constant(a.array, dtype=a.dtype) for a in group]
            passed[key] = tensors if isinstance(value, list) else tensors[0]
        passed.update(attrs or {} if raw_attrs is None else raw_attrs)
        tensors = [t for value in passed.values() for t in (value if isinstance(value, list) else [value])]
        tensors = tensors[: len(inputs)]
        with tf.GradientTape() as tape:
            if with_gradients:
                tape.watch([t for t, a in zip(tensors, inputs) if a.role != "fixed"])
            results = getattr(tf.raw_ops, raw_op)(**passed)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        wide = next((a.dtype for a in inputs if a.role == "T"), None)
        outputs = []
        for i, result in enumerate(results):
            dtype = result.dtype.name
            role = output_roles[i] if output_roles else ("T" if dtype == wide else "fixed")
            outputs.append(Argument(_plain_array(result), role, dtype))
        wrong = second_opinion.disagreement(op, [a.array for a in inputs], attrs or {}, outputs[0].array)
        if wrong:
            raise ValueError(f"{op} '{name}': {TENSORFLOW} computes {wrong}")
        if with_gradients:
            chosen = range(len(outputs)) if with_gradients is True else with_gradients
            options.update(_gradients(tape, tensors, inputs, results, outputs, types, chosen))
        source = f"{TENSORFLOW} raw_ops.{raw_op} {wide or outputs[0].dtype}"
        self.case(op, name, inputs, outputs, types, source, attrs=attrs, **options)

    def error(self, op, name, inputs, when, attrs=None, code="INVALID_ARGUMENT", match=None):
        """Adds an input that is refused: `when` is "build" if shapes, types and attributes show it, else "run"."""
        record = {"op": op, "name": name}
        if attrs:
            record["attrs"] = {k: _tensor(v) if isinstance(v, Argument) else v for k, v in attrs.items()}
        record["inputs"] = [_tensor(a) for a in inputs]
        record.update({"code": code, "match": match or op, "when": when})
        self._append(self.errors, record)

    def write(self, folder):
        path = os.path.join(folder, self.family + ".json")
        versions = {"tensorflow": _version_of_tensorflow(), "numpy": np.__version__, "scipy": scipy.__version__}
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"source_versions": ' + json.dumps(versions) + ',\n"cases": [\n')
            file.write(",\n".join(_line(c) for c in self.cases))
            file.write('\n],\n"errors": [\n')
            file.write(",\n".join(_line(e) for e in self.errors))
            file.write("\n]}\n")
        return path

    @staticmethod
    def _append(records, record):
        if any(r["op"] == record["op"] and r["name"] == record["name"] for r in records):
            raise ValueError(f"{record['op']} has two cases named '{record['name']}'")
        records.append(record)


def _gradients(tape, tensors, inputs, results, outputs, types, chosen):
    """The fields of a case that say what TensorFlow's gradients of the chosen outputs are."""
    dys = [_output_gradient(a, i) if a.role != "fixed" and i in chosen else None for i, a in enumerate(outputs)]
    wanted = [i for i, a in enumerate(inputs) if a.role != "fixed"]
    differentiated = [i for i, dy in enumerate(dys) if dy is not None]
    slopes = tape.gradient(
        [results[i] for i in differentiated],
        [tensors[i] for i in wanted],
        output_gradients=[tf.constant(dys[i].array, dys[i].dtype) for i in differentiated],
    )
    dxs = [None] * len(inputs)
    for i, slope in zip(wanted, slopes):
        if slope is not None:
            dxs[i] = Argument(tf.convert_to_tensor(slope).numpy(), inputs[i].role, inputs[i].dtype)
    numbers = [a.array for a in dys + dxs if a is not None]
    kept = [
        t
        for t in types
        if t in element_types.FLOATS + element_types.COMPLEX and all(element_types.holds_output(t, a) for a in numbers)
    ]
    return {
        "dy": [a and _tensor(a) for a in dys],
        "dx": [a and _tensor(a) for a in dxs],
        "gradient_types": kept,
        "gradient_terms": _largest(numbers),
    }


def _output_gradient(output, phase):
    count = output.array.size
    real = ((np.arange(count) * 5 + 3 * phase) % 13 - 6 + ((np.arange(count) * 5 + 3 * phase) % 13 >= 6)) / 8
    if output.array.dtype.kind == "c":
        real = real + 1j * ((np.arange(count) * 3 + phase) % 7 - 3) / 4
    return Argument(real.reshape(output.array.shape).astype(output.array.dtype), output.role, output.dtype)


def _largest(arrays):
    """The largest finite absolute value."""
    finite = [np.abs(a[np.isfinite(a)]) for a in arrays]
    return float(max((np.max(a) for a in finite if a.size), default=0))


def _line(record):
    return json.dumps(record, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _tensor(argument):
    array = argument.array
    return {
        "dtype": argument.dtype,
        "shape": list(array.shape),
        "values": [_number(v) for v in array.ravel().tolist()],
        "role": argument.role,
    }


def _number(value):
    if isinstance(value, complex):
        return [_number(value.real), _number(value.imag)]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        if value == int(value) and abs(value) < 2**53 and not (value == 0 and math.copysign(1, value) < 0):
            return int(value)
    return value
