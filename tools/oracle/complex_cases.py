"""Complex numbers and their parts."""

import numpy as np

from case_file import NUMPY, fixed

PRECISIONS = [("float32", "complex64"), ("float64", "complex128")]
SHAPES = [("rank 0", ()), ("vector", (5,)), ("matrix", (2, 3)), ("empty", (0, 3)), ("more than a packet", (37,))]


def add(f):
    for real, complex_ in PRECISIONS:
        for name, shape in SHAPES:
            count = int(np.prod(shape))
            a = ((np.arange(count) * 5 + 2) % 11 - 4).reshape(shape) / 4
            b = ((np.arange(count) * 3 + 1) % 7 - 3.5).reshape(shape) / 2
            _parts(f, name, a, b, real, complex_)
        f.raw("Complex", f"broadcast, {real}", {"real": fixed([[0.5], [-1]], real), "imag": fixed([1, 2, 3], real)}, [real],
              attrs={"Tout": complex_}, raw_attrs={"Tout": _tf(complex_)}, output_roles=["fixed"])
        odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1])
        for part in ("Real", "Imag", "ComplexAbs", "Angle"):
            z = np.array([complex(a, b) for a in odd for b in odd], complex_)
            value = {"Real": np.real, "Imag": np.imag, "ComplexAbs": np.abs, "Angle": np.angle}[part](z)
            f.case(part, f"extremes, {real}", [fixed(z, complex_)], [fixed(value, real)], [complex_], f"{NUMPY}",
                   attrs={"Tout": real}, tolerance_scale=2)
        large = np.array([3e38 + 3e37j if real == "float32" else 1.5e308 + 2e307j], complex_)
        f.case("ComplexAbs", f"large, {real}", [fixed(large, complex_)], [fixed(np.abs(large), real)], [complex_], f"{NUMPY}",
               attrs={"Tout": real}, tolerance_scale=2)
    z = fixed([1 + 2j], "complex128")
    for part in ("Real", "Imag", "ComplexAbs", "Angle"):
        f.error(part, "of another precision", [z], "build", attrs={"Tout": "float32"})
        f.error(part, "of a real number", [fixed([1.0], "float64")], "build", attrs={"Tout": "float64"})
    x = fixed([1.0, 2.0], "float64")
    f.error("Complex", "of another precision", [x, x], "build", attrs={"Tout": "complex64"})
    f.error("Complex", "shapes differ", [x, fixed([1.0, 2.0, 3.0], "float64")], "build", attrs={"Tout": "complex128"})


def _tf(name):
    from case_file import tf
    return getattr(tf, name)


def _parts(f, name, a, b, real, complex_):
    f.raw("Complex", f"{name}, {real}", {"real": fixed(a, real), "imag": fixed(b, real)}, [real], attrs={"Tout": complex_},
          raw_attrs={"Tout": _tf(complex_)}, output_roles=["fixed"])
    z = fixed(a + 1j * b, complex_)
    for part, argument in (("Real", "input"), ("Imag", "input"), ("ComplexAbs", "x"), ("Angle", "input")):
        f.raw(part, f"{name}, {real}", {argument: z}, [complex_], attrs={"Tout": real}, raw_attrs={"Tout": _tf(real)},
              output_roles=["fixed"], tolerance_scale=2)
