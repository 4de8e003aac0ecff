"""Array ops that find elements and name them by their positions: nonzero elements, index tuples, unlike elements."""

import numpy as np

from array_cases import KINDS, fractions, moves, numbers
from case_file import NUMPY, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, REALS, STRING


def add(f):
    _nonzero(f)
    _gathered_tuples(f)
    _scattered_tuples(f)
    _unlike(f)
    _differences(f)


def _nonzero(f):
    def where(name, values, types, wide="float64"):
        f.raw("Where", name, {"condition": element(values, wide)}, types, output_roles=["fixed"])

    def pattern(*shape):
        count = int(np.prod(shape))
        return ((np.arange(count) * 37 + 5) % 7 % 3).reshape(shape)

    where("matrix", pattern(3, 5), REALS)
    where("truths", pattern(4, 4) == 0, BOOL, "bool")
    where("complex", [[0, 1j, 2], [0j, 3 - 1j, -1]], COMPLEX, "complex128")
    where("complex zeros of any sign", [complex(-0.0, -0.0), complex(0.0, -0.0), complex(-0.0, 2)], COMPLEX, "complex128")
    where("complex of no numbers", [complex(np.nan, 0), complex(0, np.nan), complex(0, np.inf)], COMPLEX, "complex128")
    where("signs, infinities and no numbers", [0.0, -0.0, np.nan, np.inf, -np.inf, 2.0**-24, -(2.0**-24)], FLOATS)
    where("the highest bit alone", [0, -128, 127, 1], ["int8", "int16", "int32", "int64", "float32"])
    where("vector", [0, 3, 0, 0, 7, 1], REALS)
    where("nothing", np.zeros((2, 3)), REALS)
    where("everything", np.ones((2, 3)), REALS)
    for name, value, types, wide in [  # TensorFlow's kernel has no rank 0
        ("a scalar", 3, REALS, "float64"),
        ("a scalar of zero", 0, REALS, "float64"),
        ("a true scalar", True, BOOL, "bool"),
    ]:
        outputs = [fixed(np.zeros((1 if value else 0, 0)), "int64")]
        f.case("Where", name, [element(value, wide)], outputs, types, f"{NUMPY}: argwhere")
    where("no elements", np.zeros((0, 3)), REALS)
    where("no rows of truths", np.zeros((2, 0), bool), BOOL, "bool")
    where("rank 3", pattern(2, 3, 4), REALS)
    where("rank 4 of thin rows", pattern(3, 2, 4, 1), ["float32", "uint8", "int64"])
    where("rank 5", pattern(2, 2, 3, 2, 2), ["float64", "int16"])
    tall = pattern(2, 1, 2, 1, 2, 1, 2)  # TensorFlow's kernel has up to rank 8
    where("rank 7", tall, ["float64", "int8"])


def _gathered_tuples(f):
    def tuples(values, dtype="int32"):
        return fixed(values, dtype)

    moves(f, "GatherNd", "elements", lambda make: {"params": make(3, 4), "indices": tuples([[2, 1], [0, 3], [2, 1]])})
    moves(f, "GatherNd", "rows", lambda make: {"params": make(3, 4), "indices": tuples([[2], [0]], "int64")})
    for name, shape, indices in [
        ("a row", (3, 4), [1]),
        ("an element", (3, 4), [1, 2]),
        ("from a vector", (5,), [[4], [0], [4], [2]]),
        ("tuples in a matrix", (3, 4), [[[0, 1], [2, 3]], [[1, 1], [0, 0]]]),
        ("matrices", (2, 3, 4), [[1], [0], [1]]),
        ("inner rows", (2, 3, 4), [[1, 2], [0, 0]]),
        ("elements of rank 3", (2, 3, 4), [[1, 2, 3], [0, 0, 0]]),
        ("rank 5", (2, 1, 3, 2, 2), [[1, 0, 2, 1, 0], [0, 0, 1, 0, 1]]),
        ("all of it", (2, 3), np.zeros((2, 0))),
        ("no tuples", (2, 3), np.zeros((0, 2))),
        ("no tuples in rows", (2, 3), np.zeros((3, 0, 1))),
        ("long rows", (4, 67), [[3], [1], [3], [0]]),
    ]:
        f.raw("GatherNd", name, {"params": fractions(*shape), "indices": tuples(indices)}, FLOATS, gradient=True)
    f.case(
        "GatherNd",
        "rows without elements",
        [numbers(3, 0), tuples([[2], [0]])],
        [element(np.zeros((2, 0)))],
        REALS,
        f"{NUMPY}: params[[2, 0]]",
    )
    f.case(
        "GatherNd",
        "a scalar three times",
        [fractions(), tuples(np.zeros((3, 0)))],
        [element(np.full(3, fractions().array))],
        FLOATS,
        f"{NUMPY}: full",
        gradient=True,
    )

    def refused(name, shape, indices, when, match=None, dtype="int32"):
        f.error("GatherNd", name, [numbers(*shape), tuples(indices, dtype)], when, match=match)

    refused("index too large", (3, 4), [[0, 0], [2, 4]], "run", "indices[1,1] = 4 is outside [0, 4), dimension 1")
    refused("negative index", (3, 4), [[0, 0], [-1, 0]], "run", "indices[1,0] = -1 is outside [0, 3), dimension 0")
    refused("index of no rows", (0, 4), [[0]], "run", "indices[0,0] = 0 is outside [0, 0)")
    refused("index of rows without elements", (3, 0), [[3]], "run", "indices[0,0] = 3")
    refused("one bad index", (3,), [3], "run", "indices[0] = 3 is outside [0, 3)")
    refused("the smallest index", (3, 4), [[-(2**63), 0]], "run", "indices[0,0] = -9223372036854775808", "int64")
    refused("an index that wraps", (3, 4), [[2**62, 0]], "run", "indices[0,0] = 4611686018427387904", "int64")
    refused("more indices than dimensions", (3, 4), [[0, 0, 0]], "build", "tuples of 3 indices")
    refused("scalar indices", (3, 4), 0, "build")
    refused("too many dimensions", (1,) * 8, np.zeros((1, 1, 1)), "build")


def _scattered_tuples(f):
    def scatter(name, indices, updates, shape, types, index="int32", **options):
        arguments = {"indices": fixed(indices, index), "updates": updates, "shape": fixed(shape, index)}
        f.raw("ScatterNd", name, arguments, types, **options)

    def small(*shape, wide="float64"):
        count = int(np.prod(shape))
        return element((np.arange(count) * 7 % 11 + 1).reshape(shape), wide)

    for index in ("int32", "int64"):
        scatter(f"elements, {index}", [[2, 1], [0, 3], [1, 0]], small(3), [3, 4], REALS, index)
        scatter(f"twice to one place, {index}", [[2, 1], [0, 3], [2, 1]], small(3), [3, 4], REALS, index)
    scatter("complex, twice to one place", [[1], [0], [1]], small(3, 2, wide="complex128"), [3, 2], COMPLEX)
    for name, indices, of, shape in [
        ("rows", [[2], [0]], (2, 4), [3, 4]),
        ("rows twice", [[2], [0], [2], [2]], (4, 5), [3, 5]),
        ("tuples in a matrix", [[[0, 1], [2, 3]], [[1, 1], [0, 1]]], (2, 2), [3, 4]),
        ("matrices", [[1], [1]], (2, 3, 2), [2, 3, 2]),
        ("inner rows", [[1, 2], [0, 0], [1, 2]], (3, 4), [2, 3, 4]),
        ("rank 5", [[1, 0, 2, 1, 0], [0, 0, 1, 0, 1]], (2,), [2, 1, 3, 2, 2]),
        ("no tuples", np.zeros((0, 2)), (0,), [2, 3]),
        ("long rows twice", [[3], [1], [3], [0]], (4, 67), [4, 67]),
    ]:
        scatter(name, indices, fractions(*of), shape, FLOATS, gradient=True)
    for name, index, of in [("a row", (1,), (4,)), ("an element", (1, 2), ())]:  # one tuple, several to TensorFlow's kernel
        scattered = np.zeros((3, 4))
        scattered[index] += fractions(*of).array
        arguments = [fixed(index), fractions(*of), fixed([3, 4])]
        f.case("ScatterNd", name, arguments, [element(scattered)], FLOATS, f"{NUMPY}: y[index] += updates", gradient=True)
    f.case(
        "ScatterNd",
        "all of it, three times",
        [fixed(np.zeros((3, 0))), fractions(3, 2), fixed([2])],
        [element(fractions(3, 2).array.sum(0))],
        FLOATS,
        f"{NUMPY}: sum",
        gradient=True,
    )
    f.case(
        "ScatterNd",
        "into a scalar",
        [fixed(np.zeros((3, 0))), fractions(3), fixed(np.zeros(0))],
        [element(fractions(3).array.sum())],
        FLOATS,
        f"{NUMPY}: sum",
        gradient=True,
    )
    f.case(
        "ScatterNd",
        "rows without elements",
        [fixed([[2], [0]]), numbers(2, 0), fixed([3, 0])],
        [element(np.zeros((3, 0)))],
        REALS,
        f"{NUMPY}: zeros",
    )
    f.case(
        "ScatterNd",
        "sums of 16 bits are rounded once",
        [fixed(np.zeros((513, 1))), element([512] + [1] * 512), fixed([2])],
        [element([1024, 0])],
        FLOATS,
        f"{NUMPY}: sum",
    )

    def refused(name, indices, updates, shape, when, match=None, dtype="int32"):
        f.error("ScatterNd", name, [fixed(indices, dtype), updates, fixed(shape, dtype)], when, match=match)

    refused("index too large", [[0, 0], [2, 4]], numbers(2), [3, 4], "run", "indices[1,1] = 4 is outside [0, 4), dimension 1")
    refused("negative index", [[0], [-1]], numbers(2, 4), [3, 4], "run", "indices[1,0] = -1 is outside [0, 3), dimension 0")
    refused("index into nothing", [[0]], numbers(1), [0], "run", "indices[0,0] = 0 is outside [0, 0)")
    refused("the smallest index", [[-(2**63)]], numbers(1), [3], "run", "indices[0,0] = -9223372036854775808", "int64")
    refused("updates of other rows", [[0], [1]], numbers(2, 3), [3, 4], "run")
    refused("fewer updates than tuples", [[0], [1]], numbers(1, 4), [3, 4], "run")
    refused("updates of another rank", [[0], [1]], numbers(2), [3, 4], "run")
    refused("more indices than dimensions", [[0, 0, 0]], numbers(1), [3, 4], "run", "tuples of 3 indices")
    refused("negative extent", [[0]], numbers(1), [-3], "run")
    refused("too many elements", [[0, 0]], numbers(1), [2**62, 2**62], "run", dtype="int64")
    refused("scalar indices", 0, numbers(4), [3, 4], "build")
    refused("shape of rank 2", [[0]], numbers(1), [[3]], "build")


def _firsts(values):
    """What Unique gives, by the definition of equality that Python's lists and numbers have."""
    kept, positions, counts = [], [], []
    for value in values:
        at = next((k for k, other in enumerate(kept) if other == value), len(kept))
        if at == len(kept):
            kept.append(value)
            counts.append(0)
        positions.append(at)
        counts[at] += 1
    return kept, positions, counts


def _unlike(f):
    def unique(name, values, types, wide="float64", index="int32"):
        arguments, attrs = {"x": element(values, wide)}, {"out_idx": index}
        f.raw("Unique", name, arguments, types, attrs=attrs, output_roles=["T", "fixed"])
        f.raw("UniqueWithCounts", name, arguments, types, attrs=attrs, output_roles=["T", "fixed", "fixed"])

    for index in ("int32", "int64"):
        unique(f"some twice, {index}", [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], REALS, index=index)
        unique(f"texts, {index}", ["b", "", "a", "b", "x" * 40, "", "x" * 40, "x" * 39], STRING, "string", index)
        unique(f"truths, {index}", [True, True, False, True], BOOL, "bool", index)
        values = [1 + 2j, 2 + 1j, 1 + 2j, 0j, complex(-0.0, 0.0), 1 - 2j]
        kept, positions, counts = _firsts(values)
        for op, fixed_outputs in [("Unique", [positions]), ("UniqueWithCounts", [positions, counts])]:
            f.case(
                op,
                f"complex, {index}",
                [element(values, "complex128")],
                [element(kept, "complex128"), *[fixed(v, index) for v in fixed_outputs]],
                COMPLEX,
                f"{NUMPY}: by the definition",
                attrs={"out_idx": index},
            )
    nan = complex(np.nan, 0)
    f.case(
        "Unique",
        "complex of no numbers",
        [element([nan, 1, nan, complex(0, np.nan), 1], "complex128")],
        [element([nan, 1, nan, complex(0, np.nan)], "complex128"), fixed([0, 1, 2, 3, 1])],
        COMPLEX,
        f"{NUMPY}: by the definition",
        attrs={"out_idx": "int32"},
    )
    unique("negative numbers", [-1, 1, -1, -2, 0], ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8"])
    unique("zeros of either sign", [-0.0, 1.5, 0.0, -1.5, -0.0], FLOATS)
    unique("infinities and no numbers", [np.nan, np.inf, np.nan, -np.inf, np.inf], FLOATS)
    unique("none", [], REALS)
    unique("no texts", [], STRING, "string")
    unique("one", [7], REALS)
    unique("all the same", [7] * 300, REALS)
    unique("many", [(i * i) % 1009 for i in range(1500)], ["float64", "float32", "int64", "int32", "uint16"])
    unique("bytes", [(i * 37) % 100 for i in range(700)], INTS)
    unique("of powers of two", [2.0 ** (i % 120 - 60) for i in range(300)], ["float64", "float32"])
    unique("many texts", [f"word {i % 331}" for i in range(800)], STRING, "string")
    for op in ("Unique", "UniqueWithCounts"):
        for name, values in [("a scalar", 3), ("a matrix", [[1, 2]])]:
            f.error(op, name, [element(values)], "build", attrs={"out_idx": "int32"})


def _differences(f):
    def difference(name, x, y, types, wide="float64", index="int32"):
        arguments = {"x": element(x, wide), "y": element(y, wide)}
        f.raw("ListDiff", name, arguments, types, attrs={"out_idx": index}, output_roles=["T", "fixed"])

    for index in ("int32", "int64"):
        difference(f"some are kept, {index}", [1, 2, 3, 4, 5, 6, 2], [1, 3, 5], REALS, index=index)
        difference(f"texts, {index}", ["b", "", "a", "b", "c" * 40], ["", "a", "d"], STRING, "string", index)
    for name, types, x, y in [
        ("complex", COMPLEX, [1 + 2j, 2 + 1j, complex(0.0, -0.0), 1 - 2j, 1 + 2j], [1 - 2j, 0j]),
        ("bool", BOOL, [True, False, True], [False]),
    ]:
        kept = [i for i, value in enumerate(x) if value not in y]
        wide = "bool" if types is BOOL else "complex128"
        f.case(
            "ListDiff",
            name,
            [element(x, wide), element(y, wide)],
            [element([x[i] for i in kept], wide), fixed(kept)],
            types,
            f"{NUMPY}: by the definition",
            attrs={"out_idx": "int32"},
        )
    difference("zeros and no numbers", [0.0, -0.0, np.nan, np.inf, 1.5], [-0.0, np.nan, -np.inf], FLOATS)
    difference("nothing in x", [], [1, 2], REALS)
    difference("nothing in y", [1, 2, 1], [], REALS)
    difference("nothing at all", [], [], REALS)
    difference("all are in y", [1, 2, 1], [2, 1, 3], REALS)
    difference("many", [i % 1009 for i in range(900)], [i * 3 for i in range(300)], ["float64", "float32", "int64", "int32", "uint16"])
    for name, inputs in [
        ("a matrix", [element([[1, 2]]), element([1])]),
        ("by a matrix", [element([1, 2]), element([[1]])]),
        ("a scalar", [element(1), element([1])]),
    ]:
        f.error("ListDiff", name, inputs, "build", attrs={"out_idx": "int32"})
