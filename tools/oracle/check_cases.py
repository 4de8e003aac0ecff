"""CheckNumerics, EnsureShape and Assert: what passes through, and what is refused."""

import numpy as np

from array_cases import KINDS
from case_file import element, fixed
from element_types import FLOATS, REALS


def add(f):
    message = {"message": "loss went astray"}
    for name, values in [
        ("rank 0", 1.5),
        ("matrix", [[1, -2, 0], [0.25, -0.0, 3]]),
        ("empty", np.zeros((0, 3))),
        ("more than a packet", np.arange(37) / 4),
        ("rank 4", np.arange(8).reshape(1, 2, 2, 2)),
        ("large and small", [2.0**120, -(2.0**-120), 0]),
    ]:
        f.raw("CheckNumerics", name, {"tensor": element(values)}, FLOATS, attrs=message, gradient="large" not in name)
    f.raw(
        "CheckNumerics",
        "largest and subnormal float64",
        {"tensor": element([1.7976931348623157e308, 5e-324])},
        ["float64"],
        attrs=message,
    )
    late = np.zeros(1000)
    late[997] = np.nan
    for dtype in FLOATS:
        for name, values in [
            ("not a number", [1, np.nan]),
            ("infinity", [np.inf, 1]),
            ("minus infinity", [[1, 2], [3, -np.inf]]),
            ("rank 0", np.nan),
            ("near the end", late),
        ]:
            f.error(
                "CheckNumerics",
                f"{name}, {dtype}",
                [fixed(values, dtype)],
                "run",
                attrs=message,
                match=message["message"],
            )
    f.error("CheckNumerics", "integers", [fixed([1, 2])], "build", attrs=message)

    data = [fixed([1, 2, 3]), fixed("what went wrong", "string")]
    for name, condition, attached in [
        ("true", True, data),
        ("without data", True, []),
        ("true, much data", True, [fixed(np.arange(20)), fixed([0.5], "float32")]),
    ]:
        f.case("Assert", name, [fixed(condition, "bool"), *attached], [], ["float32"], "the definition")
    f.error("Assert", "false", [fixed(False, "bool"), *data], "run", match="what went wrong")
    f.error(
        "Assert", "false, one element of data shown", [fixed(False, "bool"), data[0]], "run", attrs={"summarize": 1}
    )
    f.error("Assert", "false, empty data", [fixed(False, "bool"), fixed(np.zeros(0), "float32")], "run")
    f.error("Assert", "condition of rank 1", [fixed([True], "bool"), *data], "build")
    f.error("Assert", "condition is not bool", [fixed(1), *data], "build")

    for kind, make, types in KINDS:
        for name, shape in [("known", [2, 3]), ("partly known", [2, -1]), ("unknown dimensions", [-1, -1])]:
            f.raw(
                "EnsureShape",
                f"{name}, {kind}",
                {"input": make(2, 3)},
                types,
                attrs={"shape": shape},
                gradient=kind == "fractions",
            )
    f.raw("EnsureShape", "rank 0", {"input": element(1.5)}, FLOATS, attrs={"shape": []}, gradient=True)
    f.raw("EnsureShape", "empty", {"input": element(np.zeros((0, 3)))}, REALS, attrs={"shape": [-1, 3]})
    for name, shape in [("another dimension", [2, 4]), ("another rank", [2, 3, 1]), ("rank 0", [])]:
        f.error("EnsureShape", name, [fixed(np.zeros((2, 3)), "float32")], "build", attrs={"shape": shape})
