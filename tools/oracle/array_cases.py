"""Array ops: constants, shapes, and everything that moves elements without arithmetic."""

import numpy as np

from case_file import Argument, NUMPY, element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, REALS, STRING

WORDS = ["", "a", "dataflow", "two words", "x" * 40, "tab\there", "7", "~"]


def numbers(*shape):
    """Distinct small integers, which every element type but bool and string holds."""
    count = int(np.prod(shape))
    return element(((np.arange(count) * 37 + 5) % 101).reshape(shape))


def signed_numbers(*shape):
    count = int(np.prod(shape))
    return element(((np.arange(count) * 37 + 5) % 101 - 50).reshape(shape))


def fractions(*shape):
    count = int(np.prod(shape))
    return element((((np.arange(count) * 37 + 5) % 101 - 50) / 8).reshape(shape))


def complex_numbers(*shape):
    count = int(np.prod(shape))
    real = ((np.arange(count) * 7 + 3) % 23 - 11) / 4
    imaginary = ((np.arange(count) * 5 + 1) % 19 - 9) / 2
    return element((real + 1j * imaginary).reshape(shape), "complex128")


def truths(*shape):
    count = int(np.prod(shape))
    return element(((np.arange(count) * 5) % 7 % 2 == 0).reshape(shape), "bool")


def strings(*shape):
    count = int(np.prod(shape))
    words = np.array([WORDS[i % len(WORDS)] for i in range(count)], dtype=object)
    return element(words.reshape(shape), "string")


KINDS = [
    ("numbers", numbers, REALS),
    ("negative numbers", signed_numbers, REALS),
    ("fractions", fractions, FLOATS),
    ("complex", complex_numbers, COMPLEX),
    ("bool", truths, BOOL),
    ("strings", strings, STRING),
]


def add(f):
    _constants(f)
    _shapes(f)
    _reshaping(f)
    _slicing(f)
    _joining(f)
    _reordering(f)
    _indexing(f)
    _casts(f)
    _ranges(f)


def moves(f, op, name, build, kinds=KINDS, differentiable=True, **options):
    """One case per kind of element; `build(make)` returns the arguments, using `make(*shape)` for each T input."""
    for kind, make, types in kinds:
        f.raw(op, f"{name}, {kind}", build(make), types, gradient=differentiable and kind == "fractions", **options)


def _constants(f):
    for kind, make, types in KINDS:
        value = make(2, 3)
        f.case("Const", kind, [], [value], types, f"{NUMPY}: the value itself", attrs={"value": value})
    for name, value, types in [
        ("rank 0", element(7), REALS),
        ("empty", element(np.zeros((0, 3))), REALS),
        ("rank 4", numbers(1, 2, 2, 3), REALS),
        ("non-finite and signed zero", element([np.inf, -np.inf, np.nan, -0.0]), FLOATS),
        ("integer limits", element([-(2**63), 2**63 - 1], "int64"), ["int64"]),
        ("largest uint64", element([0, 2**64 - 1], "uint64"), ["uint64"]),
        ("rank 0 string", element("constant", "string"), STRING),
    ]:
        f.case("Const", name, [], [value], types, f"{NUMPY}: the value itself", attrs={"value": value})
    for op in ("Identity", "StopGradient"):
        differentiable = op == "Identity"
        moves(f, op, "matrix", lambda make: {"input": make(2, 3)}, differentiable=differentiable)
        f.raw(op, "rank 0", {"input": numbers()}, REALS, gradient=differentiable)
        f.raw(op, "empty", {"input": numbers(2, 0, 3)}, REALS, gradient=differentiable)
        f.raw(op, "non-finite", {"input": element([np.inf, -np.inf, np.nan])}, FLOATS)
    numeric = [k for k in KINDS if k[0] != "strings"]
    for op in ("ZerosLike", "OnesLike"):
        moves(f, op, "matrix", lambda make: {"x": make(2, 3)}, kinds=numeric, differentiable=False)
        f.raw(op, "rank 0", {"x": fractions()}, FLOATS)
        f.raw(op, "empty", {"x": numbers(0)}, REALS)
        f.raw(op, "of non-finite elements", {"x": element([np.inf, np.nan])}, FLOATS)
        f.raw(op, "rank 5", {"x": numbers(1, 2, 1, 3, 1)}, REALS)
    f.raw("ZerosLike", "strings become empty", {"x": strings(3)}, STRING)
    moves(f, "Fill", "matrix", lambda make: {"dims": fixed([2, 3]), "value": make()})
    f.raw("Fill", "rank 0", {"dims": fixed(np.zeros(0)), "value": fractions()}, FLOATS, gradient=True)
    f.raw("Fill", "empty", {"dims": fixed([3, 0, 2]), "value": numbers()}, REALS, gradient=True)
    f.raw("Fill", "rank 4", {"dims": fixed([1, 2, 1, 3]), "value": numbers()}, REALS)
    f.raw("Fill", "more than a packet", {"dims": fixed([37]), "value": fractions()}, FLOATS, gradient=True)
    f.raw("Fill", "not a number", {"dims": fixed([2]), "value": element(np.nan)}, FLOATS)
    f.raw("Fill", "int64 dims", {"dims": fixed([2, 3], "int64"), "value": fractions()}, FLOATS, gradient=True)
    f.error("Fill", "negative dimension", [fixed([2, -1]), numbers()], "run")
    f.error("Fill", "dims of rank 0", [fixed(3), numbers()], "build")
    f.error("Fill", "dims of rank 2", [fixed([[2, 3]]), numbers()], "build")
    f.error("Fill", "value of rank 1", [fixed([2]), numbers(1)], "build")
    f.error("Fill", "number of elements overflows", [fixed([2**31 - 1] * 3), numbers()], "run")


def _shapes(f):
    cases = [
        ("rank 0", ()),
        ("vector", (5,)),
        ("matrix", (2, 3)),
        ("empty in the middle", (2, 0, 3)),
        ("empty vector", (0,)),
        ("rank 4", (1, 2, 3, 2)),
        ("rank 8", (1, 2, 1, 1, 2, 1, 1, 1)),
    ]
    for op in ("Shape", "Rank", "Size"):
        for name, shape in cases:
            f.raw(op, name, {"input": numbers(*shape)}, REALS)
        f.raw(op, "complex", {"input": complex_numbers(2, 1)}, COMPLEX)
        f.raw(op, "bool", {"input": truths(2, 1)}, BOOL)
        f.raw(op, "strings", {"input": strings(3, 2)}, STRING)


def _reshaping(f):
    def reshape(shape):
        return lambda make: {"tensor": make(2, 6), "shape": fixed(shape)}

    moves(f, "Reshape", "to rank 3", reshape([2, 3, 2]))
    for name, source, shape in [
        ("flatten by -1", (2, 3), [-1]),
        ("-1 in the middle", (4, 3), [2, -1, 3]),
        ("-1 that becomes 1", (4, 3), [4, -1, 3]),
        ("rank 0 to vector", (), [1]),
        ("vector to rank 0", (1,), []),
        ("rank 0 to rank 3", (), [1, 1, 1]),
        ("empty to empty", (0, 3), [5, 0]),
        ("empty with -1", (2, 0), [2, -1]),
        ("same shape", (3, 2), [3, 2]),
        ("odd vector", (37,), [1, 37]),
    ]:
        f.raw("Reshape", name, {"tensor": fractions(*source), "shape": fixed(shape)}, FLOATS, gradient=True)
    f.raw("Reshape", "int64 shape", {"tensor": fractions(2, 3), "shape": fixed([3, -1], "int64")}, FLOATS, gradient=True)
    f.error("Reshape", "different number of elements", [numbers(2, 3), fixed([4])], "run")
    f.error("Reshape", "two unknown dimensions", [numbers(2, 3), fixed([-1, -1])], "run")
    f.error("Reshape", "dimension -2", [numbers(2, 3), fixed([-2, 3])], "run")
    f.error("Reshape", "-1 does not divide", [numbers(2, 3), fixed([-1, 4])], "run")
    f.error("Reshape", "-1 beside 0", [numbers(2, 3), fixed([-1, 0])], "run")
    f.error("Reshape", "shape of rank 2", [numbers(2, 3), fixed([[3, 2]])], "build")
    f.error("Reshape", "number of elements overflows", [numbers(2, 3), fixed([2**31 - 1] * 3)], "run")

    moves(f, "ExpandDims", "in front", lambda make: {"input": make(2, 3), "axis": fixed(0)})
    for name, shape, dim in [
        ("in the middle", (2, 3), 1),
        ("at the end", (2, 3), 2),
        ("-1 is at the end", (2, 3), -1),
        ("most negative", (2, 3), -3),
        ("rank 0", (), 0),
        ("rank 0, -1", (), -1),
        ("empty", (2, 0), 1),
    ]:
        f.raw("ExpandDims", name, {"input": fractions(*shape), "axis": fixed(dim)}, FLOATS, gradient=True)
    f.error("ExpandDims", "dim too large", [numbers(2, 3), fixed(3)], "run")
    f.error("ExpandDims", "dim too small", [numbers(2, 3), fixed(-4)], "run")
    f.error("ExpandDims", "dim with two elements", [numbers(2, 3), fixed([0, 1])], "build")

    moves(f, "Squeeze", "all", lambda make: {"input": make(1, 2, 1, 3)})
    for name, shape, dims in [
        ("first", (1, 2, 1, 3), [0]),
        ("third", (1, 2, 1, 3), [2]),
        ("both", (1, 2, 1, 3), [0, 2]),
        ("negative", (1, 2, 1, 3), [-2]),
        ("negative and positive", (1, 2, 1), [-1, 0]),
        ("to rank 0", (1, 1), []),
        ("rank 0", (), []),
        ("nothing to drop", (2, 3), []),
        ("empty", (0, 1), []),
        ("empty, by dim", (0, 1), [1]),
    ]:
        attrs = {"squeeze_dims": dims} if dims else {}
        f.raw(
            "Squeeze", name, {"input": fractions(*shape)}, FLOATS, attrs=attrs, raw_attrs={"axis": dims}, gradient=True
        )
    f.error("Squeeze", "dimension is not 1", [numbers(1, 2)], "build", attrs={"squeeze_dims": [1]})
    f.error("Squeeze", "dim too large", [numbers(1, 2)], "build", attrs={"squeeze_dims": [2]})
    f.error("Squeeze", "dim too small", [numbers(1, 2)], "build", attrs={"squeeze_dims": [-3]})


def _slicing(f):
    moves(f, "Slice", "inner part", lambda make: {"input": make(3, 5), "begin": fixed([1, 1]), "size": fixed([2, 3])})
    for name, shape, begin, size in [
        ("whole", (3, 4), [0, 0], [3, 4]),
        ("-1 is the rest", (3, 4), [1, 2], [-1, -1]),
        ("one row", (3, 4), [2, 0], [1, 4]),
        ("one column", (3, 4), [0, 3], [3, 1]),
        ("vector", (7,), [2], [4]),
        ("rank 0", (), [], []),
        ("nothing", (3, 4), [3, 0], [0, 4]),
        ("of empty", (0, 4), [0, 1], [0, 2]),
        ("rank 3", (2, 3, 4), [1, 0, 2], [1, 3, 2]),
        ("rank 4", (2, 3, 2, 3), [0, 1, 1, 0], [2, 2, 1, -1]),
        ("rank 5", (2, 1, 3, 2, 2), [0, 0, 1, 0, 1], [2, 1, 2, 2, 1]),
    ]:
        f.raw(
            "Slice",
            name,
            {"input": fractions(*shape), "begin": fixed(begin), "size": fixed(size)},
            FLOATS,
            gradient=True,
        )
    f.raw(
        "Slice",
        "int64 bounds",
        {"input": numbers(4, 3), "begin": fixed([1, 0], "int64"), "size": fixed([2, -1], "int64")},
        REALS,
    )
    f.error("Slice", "begin past the end", [numbers(3, 4), fixed([4, 0]), fixed([-1, -1])], "run")
    f.error("Slice", "negative begin", [numbers(3, 4), fixed([-1, 0]), fixed([1, 1])], "run")
    f.error("Slice", "begin plus size past the end", [numbers(3, 4), fixed([1, 2]), fixed([1, 3])], "run")
    f.error("Slice", "size -2", [numbers(3, 4), fixed([0, 0]), fixed([-2, 1])], "run")
    f.error("Slice", "begin shorter than the rank", [numbers(3, 4), fixed([0]), fixed([1])], "build")
    f.error("Slice", "begin and size of different lengths", [numbers(3, 4), fixed([0, 0]), fixed([1])], "build")
    f.error("Slice", "begin of rank 2", [numbers(3, 4), fixed([[0, 0]]), fixed([[1, 1]])], "build")

    moves(
        f,
        "Pad",
        "matrix",
        lambda make: {"input": make(2, 3), "paddings": fixed([[1, 2], [0, 1]])},
        kinds=[k for k in KINDS if k[0] != "strings"],
    )
    for name, shape, paddings in [
        ("vector in front", (3,), [[2, 0]]),
        ("vector behind", (3,), [[0, 2]]),
        ("nothing", (2, 3), [[0, 0], [0, 0]]),
        ("empty becomes zeros", (0, 2), [[2, 1], [0, 1]]),
        ("rank 0", (), np.zeros((0, 2))),
        ("rank 3", (2, 1, 3), [[1, 0], [0, 1], [1, 1]]),
        ("rank 4", (1, 2, 2, 3), [[0, 0], [1, 1], [2, 1], [0, 0]]),
        ("stays empty", (0, 2), [[0, 0], [1, 1]]),
    ]:
        f.raw("Pad", name, {"input": fractions(*shape), "paddings": fixed(paddings)}, FLOATS, gradient=True)
    paddings = fixed([[1, 2], [0, 1]], "int64")
    f.raw("Pad", "int64 paddings", {"input": fractions(2, 3), "paddings": paddings}, FLOATS, gradient=True)
    f.error("Pad", "negative", [numbers(2, 3), fixed([[-1, 0], [0, 0]])], "run")
    f.error("Pad", "one row per dimension", [numbers(2, 3), fixed([[1, 1]])], "build")
    f.error("Pad", "three columns", [numbers(2, 3), fixed([[1, 1, 1], [0, 0, 0]])], "build")
    f.error("Pad", "paddings of rank 1", [numbers(2), fixed([1, 1])], "build")


def _joining(f):
    moves(f, "Concat", "rows", lambda make: {"concat_dim": fixed(0), "values": [make(2, 3), make(1, 3), make(3, 3)]})
    for name, dim, shapes in [
        ("columns", 1, [(2, 3), (2, 1)]),
        ("vectors", 0, [(3,), (1,), (4,)]),
        ("one is empty", 1, [(2, 3), (2, 0), (2, 2)]),
        ("all are empty", 0, [(0, 3), (0, 3)]),
        ("middle", 1, [(2, 1, 3), (2, 2, 3)]),
        ("last of rank 4", 3, [(1, 2, 2, 3), (1, 2, 2, 2)]),
        ("many", 0, [(1,)] * 9),
        ("odd widths", 1, [(2, 17), (2, 5)]),
    ]:
        f.raw(
            "Concat", name, {"concat_dim": fixed(dim), "values": [fractions(*s) for s in shapes]}, FLOATS, gradient=True
        )
    f.error("Concat", "different ranks", [fixed(0), numbers(2, 3), numbers(3)], "build")
    f.error("Concat", "another dimension differs", [fixed(0), numbers(2, 3), numbers(2, 4)], "run")
    f.error("Concat", "concat_dim out of range", [fixed(2), numbers(2, 3), numbers(2, 3)], "run")
    f.error("Concat", "concat_dim of rank 1", [fixed([0]), numbers(2, 3), numbers(2, 3)], "build")

    moves(f, "Split", "columns in two", lambda make: {"axis": fixed(1), "value": make(3, 4)}, attrs={"num_split": 2})
    for name, dim, shape, count in [
        ("rows in three", 0, (6, 2), 3),
        ("vector", 0, (6,), 2),
        ("into one", 0, (3, 2), 1),
        ("each alone", 1, (2, 3), 3),
        ("empty", 0, (0, 2), 2),
        ("empty across", 1, (0, 4), 2),
        ("middle", 1, (2, 4, 3), 2),
        ("last of rank 4", 3, (1, 2, 2, 6), 3),
    ]:
        f.raw(
            "Split",
            name,
            {"axis": fixed(dim), "value": fractions(*shape)},
            FLOATS,
            attrs={"num_split": count},
            gradient=True,
        )
    f.error("Split", "does not divide", [fixed(0), numbers(5, 2)], "run", attrs={"num_split": 2})
    f.error("Split", "split_dim out of range", [fixed(2), numbers(4, 2)], "run", attrs={"num_split": 2})
    f.error("Split", "no parts", [fixed(0), numbers(4, 2)], "build", attrs={"num_split": 0})
    f.error("Split", "split_dim of rank 1", [fixed([0]), numbers(4, 2)], "build", attrs={"num_split": 2})


def _reordering(f):
    moves(f, "Transpose", "matrix", lambda make: {"x": make(2, 3), "perm": fixed([1, 0])})
    for name, shape, perm in [
        ("identity", (2, 3), [0, 1]),
        ("vector", (5,), [0]),
        ("rank 0", (), []),
        ("empty", (0, 3), [1, 0]),
        ("NHWC to NCHW", (2, 2, 3, 2), [0, 3, 1, 2]),
        ("NCHW to NHWC", (2, 2, 3, 2), [0, 2, 3, 1]),
        ("rank 3 reversed", (2, 3, 4), [2, 1, 0]),
        ("rank 3 batch", (3, 2, 4), [0, 2, 1]),
        ("rank 3 swap in front", (2, 3, 4), [1, 0, 2]),
        ("rank 5", (2, 1, 3, 1, 2), [4, 2, 0, 3, 1]),
        ("rank 8", (2, 1, 2, 1, 1, 3, 1, 1), [7, 5, 0, 1, 6, 2, 3, 4]),
        ("larger than a tile", (9, 11), [1, 0]),
        ("with a dimension of 1", (1, 7), [1, 0]),
    ]:
        f.raw("Transpose", name, {"x": fractions(*shape), "perm": fixed(perm)}, FLOATS, gradient=True)
    f.raw("Transpose", "int64 perm", {"x": fractions(2, 3, 2), "perm": fixed([2, 0, 1], "int64")}, FLOATS, gradient=True)
    f.error("Transpose", "perm repeats a dimension", [numbers(2, 3), fixed([0, 0])], "run")
    f.error("Transpose", "perm out of range", [numbers(2, 3), fixed([0, 2])], "run")
    f.error("Transpose", "perm too short", [numbers(2, 3), fixed([0])], "build")
    f.error("Transpose", "perm too long", [numbers(2, 3), fixed([0, 1, 2])], "build")


def _indexing(f):
    moves(f, "Gather", "rows", lambda make: {"params": make(4, 3), "indices": fixed([3, 0, 3])})
    for name, shape, indices in [
        ("from a vector", (5,), [4, 2, 2, 0]),
        ("one row by a rank 0 index", (4, 3), 2),
        ("one element", (4,), 1),
        ("indices of rank 2", (4, 3), [[0, 3], [1, 1]]),
        ("indices of rank 3", (4,), [[[3], [0]]]),
        ("no indices", (4, 3), np.zeros((0,))),
        ("no indices, rank 2", (4, 3), np.zeros((2, 0))),
        ("rows of rank 2", (3, 2, 2), [2, 0]),
        ("empty rows", (3, 0), [1, 2]),
        ("wide rows", (3, 17), [2, 1]),
    ]:
        f.raw("Gather", name, {"params": fractions(*shape), "indices": fixed(indices)}, FLOATS, gradient=True)
    f.raw(
        "Gather", "int64 indices", {"params": fractions(4, 3), "indices": fixed([3, 1], "int64")}, FLOATS, gradient=True
    )
    f.error("Gather", "index too large", [numbers(3, 2), fixed([0, 3])], "run", match="indices[1] = 3")
    f.error("Gather", "index negative", [numbers(3, 2), fixed([-1])], "run", match="indices[0] = -1")
    f.error("Gather", "index into nothing", [numbers(0, 2), fixed([0])], "run")
    f.error("Gather", "params of rank 0", [numbers(), fixed([0])], "build")
    f.error("Gather", "position in rank 2", [numbers(3), fixed([[0, 1], [2, 9]])], "run", match="indices[1,1] = 9")

    for kind, make, types in KINDS:
        off, on = (Argument(np.array(v, dtype=make(2).array.dtype), "T", make(2).dtype) for v in make(2).array)
        arguments = {"indices": fixed([1, 0, 2], "int64"), "depth": fixed(3), "on_value": on, "off_value": off}
        f.raw("OneHot", f"vector, {kind}", arguments, types, gradient=kind == "fractions")
    for name, indices, depth, axis, dtype in [
        ("rank 0 index", 1, 3, None, "int64"),
        ("out of range is off", [0, 5, -1], 3, None, "int64"),
        ("axis 0", [1, 0], 3, 0, "int64"),
        ("axis -1", [1, 0], 3, -1, "int64"),
        ("rank 2", [[0, 2], [1, 0]], 3, None, "int64"),
        ("rank 2, axis 1", [[0, 2], [1, 0]], 3, 1, "int64"),
        ("rank 2, axis 0", [[0, 2], [1, 0]], 3, 0, "int64"),
        ("no indices", np.zeros(0), 3, None, "int64"),
        ("depth 0", [0, 1], 0, None, "int64"),
        ("int32 indices", [2, 1], 3, None, "int32"),
        ("uint8 indices", [2, 0], 3, None, "uint8"),
        ("depth 1", [0, 0, 1], 1, None, "int64"),
    ]:
        arguments = {
            "indices": fixed(indices, dtype),
            "depth": fixed(depth),
            "on_value": element(1.5),
            "off_value": element(-0.5),
        }
        f.raw("OneHot", name, arguments, FLOATS, attrs={} if axis is None else {"axis": axis}, gradient=True)
    arguments = [fixed([0, 1], "int64"), fixed(3), element(1), element(0)]
    f.error("OneHot", "axis out of range", arguments, "build", attrs={"axis": 2})
    f.error("OneHot", "axis below -1", arguments, "build", attrs={"axis": -2})
    f.error("OneHot", "negative depth", [arguments[0], fixed(-1), *arguments[2:]], "run")
    f.error("OneHot", "depth of rank 1", [arguments[0], fixed([3]), *arguments[2:]], "build")
    f.error("OneHot", "on_value of rank 1", [*arguments[:2], element([1]), element(0)], "build")


def _casts(f):
    targets = [
        ("float64", REALS + BOOL),
        ("float32", REALS + BOOL),
        ("float16", REALS + BOOL),
        ("bfloat16", REALS + BOOL),
        ("int64", REALS),
        ("int32", REALS),
        ("int16", REALS),
        ("int8", REALS),
        ("uint64", REALS),
        ("uint32", REALS),
        ("uint16", REALS),
        ("uint8", REALS),
    ]
    for target, _ in targets:
        attrs = {"DstT": target}
        raw_attrs = {"DstT": target}

        def cast(name, x, types, gradient=False):
            f.raw(
                "Cast",
                f"{name} to {target}",
                {"x": x},
                types,
                attrs=attrs,
                raw_attrs=raw_attrs,
                gradient=gradient,
                output_roles=["fixed"],
            )

        is_float = target in FLOATS
        cast("numbers", numbers(2, 3), REALS, gradient=target == "float64")
        cast("truth", element([True, False, True], "bool"), BOOL)
        cast("nothing", element(np.zeros((2, 0))), REALS)
        if is_float:
            cast("non-finite", element([np.inf, -np.inf, np.nan]), FLOATS)
            cast("rank 0 fraction", element(-2.625), FLOATS, gradient=target == "float64")
            cast(
                "rounded float",
                element([1 + 2**-9, 1 + 3 * 2**-9, 1 + 2**-12, -1 - 2**-20, 3.1415927410125732]),
                FLOATS,
            )
            cast("negative integers", element([-100, -1, 0, 127], "int64"), ["int64", "int32", "int16", "int8"])
        else:
            cast("truncated float", element([0.0, 0.5, 1.5, 2.875, 99.75]), FLOATS)
            if target.startswith("int"):
                cast("truncated negative float", element([-0.5, -1.5, -2.875, -99.75]), FLOATS)
                cast("negative integers", element([-128, -1, 0, 127], "int64"), ["int64", "int32", "int16", "int8"])
    for target, value in [("int64", 2**40 + 3), ("uint32", 2**32 - 1), ("int32", -(2**31))]:
        f.raw(
            "Cast",
            f"wide integer to {target}",
            {"x": element([value], "int64")},
            INTS,
            attrs={"DstT": target},
            output_roles=["fixed"],
        )
    zero_is_false = {"x": element([0.0, 2.0, 100.0, 1.0])}
    f.raw("Cast", "numbers to bool", zero_is_false, REALS, attrs={"DstT": "bool"})
    f.raw("Cast", "not a number to bool", {"x": element([np.nan, 0.5, -0.0])}, FLOATS, attrs={"DstT": "bool"})
    f.raw("Cast", "bool to bool", {"x": truths(3)}, BOOL, attrs={"DstT": "bool"}, output_roles=["fixed"])
    for target in COMPLEX:
        f.raw("Cast", f"real to {target}", {"x": element([1.5, -2.0, 0.0])}, FLOATS, attrs={"DstT": target})
        f.raw(
            "Cast",
            f"complex to {target}",
            {"x": complex_numbers(3)},
            COMPLEX,
            attrs={"DstT": target},
            output_roles=["fixed"],
        )


def _ranges(f):
    signed = REALS[:8]
    for name, start, limit, delta, types in [
        ("by one", 0, 5, 1, REALS),
        ("from three", 3, 18, 3, REALS),
        ("last step does not fit", 3, 17, 3, REALS),
        ("nothing", 4, 4, 1, REALS),
        ("backwards", 5, -3, -2, signed),
        ("negative", -5, 0, 1, signed),
        ("one element", 7, 8, 5, REALS),
        ("odd count", 0, 37, 1, REALS),
    ]:
        for wide, kept in (("float64", [t for t in types if t in FLOATS]), ("int64", [t for t in types if t in INTS])):
            kind = "floats" if wide == "float64" else "integers"
            arguments = {k: element(v, wide) for k, v in (("start", start), ("limit", limit), ("delta", delta))}
            if wide == "int64":
                values = np.arange(start, limit, delta)
                f.case(
                    "Range",
                    f"{name}, {kind}",
                    arguments.values(),
                    [element(values, wide)],
                    kept,
                    f"{NUMPY} arange int64",
                )
            else:
                f.raw("Range", f"{name}, {kind}", arguments, kept)
    f.raw("Range", "fractions", {"start": element(1.0), "limit": element(2.0), "delta": element(0.25)}, FLOATS)
    f.raw(
        "Range", "fractions backwards", {"start": element(0.5), "limit": element(-1.0), "delta": element(-0.5)}, FLOATS
    )
    f.error("Range", "delta 0", [element(0), element(5), element(0)], "run")
    f.error("Range", "limit below start", [element(5), element(0), element(1)], "run")
    f.error("Range", "limit above start, backwards", [element(0), element(5), element(-1)], "run")
    f.error("Range", "start of rank 1", [element([0]), element(5), element(1)], "build")
