"""Array ops that move elements: strided slices, tiles, reversals, and views of bits."""

import numpy as np

from array_cases import KINDS, fractions, moves, numbers
from case_file import NUMPY, element, fixed
from element_types import COMPLEX, FLOATS, REALS

MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
PLAIN_KINDS = [k for k in KINDS if k[0] != "strings"]


def add(f):
    _strided_slices(f)
    _tiles(f)
    _reversed_sequences(f)
    _bitcasts(f)
    _defaults(f)


def _masks(**given):
    return {name + "_mask": given.pop(name, 0) for name in MASKS} | given


def _strided_slices(f):
    bounds = {"begin": fixed([1, -1]), "end": fixed([3, 0]), "strides": fixed([1, -2])}
    moves(f, "StridedSlice", "a corner", lambda make: {"input": make(3, 5), **bounds}, attrs=_masks())
    moves(
        f,
        "StridedSliceGrad",
        "a corner",
        lambda make: {"shape": fixed([3, 5]), **bounds, "dy": make(2, 2)},
        kinds=PLAIN_KINDS,
        attrs=_masks(),
    )
    cases = [
        ("whole", (3, 4), [0, 0], [3, 4], [1, 1], {}),
        ("no entries", (3, 4), [], [], [], {}),
        ("rank 0", (), [], [], [], {}),
        ("rows alone", (4, 3), [1], [3], [1], {}),
        ("every second row", (5, 3), [0], [5], [2], {}),
        ("reversed by masks", (5, 3), [1, 1], [2, 2], [-1, -1], {"begin": 3, "end": 3}),
        ("backwards by twos", (7,), [5], [0], [-2], {}),
        ("beyond both ends", (5,), [-9], [9], [3], {}),
        ("backwards beyond both ends", (5,), [9], [-9], [-3], {}),
        ("nothing", (5,), [3], [1], [1], {}),
        ("nothing backwards", (5,), [1], [3], [-1], {}),
        ("nothing at the end", (5, 2), [5], [9], [1], {}),
        ("of empty", (0, 4), [0, 1], [5, 3], [1, 1], {}),
        ("largest numbers", (5,), [1], [2**31 - 1], [2**31 - 1], {}),
        ("smallest numbers", (5,), [3], [-(2**31)], [-(2**31)], {}),
        ("a row", (3, 4), [1], [2], [1], {"shrink_axis": 1}),
        ("the last row", (3, 4), [-1], [0], [1], {"shrink_axis": 1}),
        ("an element", (3, 4), [2, -2], [0, 0], [1, 1], {"shrink_axis": 3}),
        ("a column", (3, 4), [0, 1], [0, 0], [1, 1], {"begin": 1, "end": 1, "shrink_axis": 2}),
        ("a position of a large stride", (3, 4), [1], [2], [7], {"shrink_axis": 1}),
        ("a new axis in front", (2, 3), [0], [0], [1], {"new_axis": 1}),
        ("new axes around", (2, 3), [0, 0, 0], [0, 0, 0], [1, 1, 1], {"new_axis": 5, "ellipsis": 2}),
        ("a new axis and a position", (2, 3), [1, 0], [2, 0], [1, 1], {"new_axis": 2, "shrink_axis": 1}),
        ("a new axis wins over a position", (2, 3), [1], [2], [1], {"new_axis": 1, "shrink_axis": 1}),
        ("ellipsis at the end", (2, 3, 2), [1, 0], [2, 0], [1, 1], {"ellipsis": 2}),
        ("ellipsis in front", (2, 3, 4), [0, 1], [0, 3], [1, 1], {"ellipsis": 1}),
        ("ellipsis of nothing", (2, 3), [0, 0, 1], [2, 0, 3], [1, 1, 1], {"ellipsis": 2}),
        ("ellipsis alone", (2, 3), [0], [0], [0], {"ellipsis": 1}),
        ("all at once", (8, 2, 3, 4), [1, 0, 0, 0], [-1, 0, 0, 1], [2, 1, 1, 1], {"ellipsis": 2, "new_axis": 4, "shrink_axis": 8}),
        ("masks beyond the entries", (3, 4), [1], [2], [1], {"begin": 62, "end": 62, "shrink_axis": 4}),
        ("rank 5", (2, 3, 2, 3, 2), [0, 2, 0, 0, 1], [2, 0, 1, 3, 2], [1, -1, 1, 2, 1], {}),
        ("rank 8", (2, 1, 2, 1, 2, 1, 2, 2), [1, 0], [0, 1], [-1, 1], {"end": 1}),
        ("long rows backwards", (2, 37), [0, 36], [2, 0], [1, -1], {"end": 2}),
        ("one row of many", (3, 37), [1, 0], [2, 37], [1, 1], {}),
    ]
    for name, shape, begin, end, strides, masks in cases:
        bounds = {"begin": fixed(begin), "end": fixed(end), "strides": fixed(strides)}
        attrs = _masks(**masks)
        f.raw("StridedSlice", name, {"input": fractions(*shape), **bounds}, FLOATS, attrs=attrs, gradient=True)
        size = f.cases[-1]["outputs"][0]["shape"]
        arguments = {"shape": fixed(shape), **bounds, "dy": fractions(*size)}
        f.raw("StridedSliceGrad", name, arguments, FLOATS, attrs=attrs, gradient=True)
    wide = {"begin": fixed([1, 0], "int64"), "end": fixed([4, 9], "int64"), "strides": fixed([2, 1], "int64")}
    f.raw("StridedSlice", "int64 bounds", {"input": numbers(4, 3), **wide}, REALS, attrs=_masks(), gradient=True)
    f.raw(
        "StridedSliceGrad",
        "int64 bounds",
        {"shape": fixed([4, 3], "int64"), **wide, "dy": numbers(2, 3)},
        REALS,
        attrs=_masks(),
        gradient=True,
    )

    def refused(name, shape, begin, end, strides, when, **masks):
        inputs = [numbers(*shape), fixed(begin), fixed(end), fixed(strides)]
        f.error("StridedSlice", name, inputs, when, attrs=_masks(**masks))

    refused("stride 0", (3, 4), [0, 0], [3, 4], [1, 0], "run")
    refused("position too large", (3, 4), [3], [4], [1], "run", shrink_axis=1)
    refused("position too small", (3, 4), [-4], [0], [1], "run", shrink_axis=1)
    refused("position in nothing", (0, 4), [0], [1], [1], "run", shrink_axis=1)
    refused("position with a negative stride", (3, 4), [1], [0], [-1], "run", shrink_axis=1)
    refused("two ellipses", (3, 4), [0, 0], [0, 0], [1, 1], "build", ellipsis=3)
    refused("more entries than dimensions", (3, 4), [0, 0, 0], [1, 1, 1], [1, 1, 1], "build")
    refused("too many beside an ellipsis", (3,), [0, 0, 0], [1, 0, 1], [1, 1, 1], "build", ellipsis=2)
    refused("lengths that differ", (3, 4), [0, 0], [1], [1, 1], "build")
    refused("bounds of rank 2", (3, 4), [[0]], [[1]], [[1]], "build")
    refused("more dimensions than eight", (1,) * 8, [0], [0], [1], "build", new_axis=1)
    f.error(
        "StridedSliceGrad",
        "gradient of another shape",
        [fixed([3, 4]), fixed([0]), fixed([2]), fixed([1]), numbers(3, 4)],
        "run",
        attrs=_masks(),
    )
    f.error(
        "StridedSliceGrad",
        "negative extent",
        [fixed([-3, 4]), fixed([0]), fixed([2]), fixed([1]), numbers(2, 4)],
        "run",
        attrs=_masks(),
    )


def _tiles(f):
    moves(f, "Tile", "matrix", lambda make: {"input": make(2, 3), "multiples": fixed([2, 3])})
    for name, shape, multiples in [
        ("vector", (3,), [4]),
        ("once", (2, 3), [1, 1]),
        ("rows", (2, 3), [3, 1]),
        ("columns", (2, 3), [1, 2]),
        ("rank 0", (), []),
        ("none", (2, 3), [2, 0]),
        ("of empty", (0, 3), [2, 2]),
        ("dimensions of 1", (1, 3, 1), [2, 1, 4]),
        ("rank 4", (2, 1, 2, 3), [1, 2, 3, 2]),
        ("rank 5", (2, 2, 2, 2, 2), [2, 2, 2, 2, 2]),
        ("rank 8", (2, 1, 1, 2, 1, 1, 1, 2), [1, 2, 1, 2, 1, 1, 2, 1]),
        ("odd rows", (2, 17), [1, 3]),
    ]:
        f.raw("Tile", name, {"input": fractions(*shape), "multiples": fixed(multiples)}, FLOATS, gradient=True)
    shape, multiples = (2,) * 7, [2] * 7  # TensorFlow's kernel has no rank 6 and more
    f.case(
        "Tile",
        "seven dimensions",
        [numbers(*shape), fixed(multiples)],
        [element(np.tile(numbers(*shape).array, multiples))],
        ["float64", "int32"],
        f"{NUMPY}: tile",
    )
    arguments = {"input": fractions(2, 3), "multiples": fixed([2, 1], "int64")}
    f.raw("Tile", "int64 multiples", arguments, FLOATS, gradient=True)
    f.error("Tile", "negative", [numbers(2, 3), fixed([-1, 1])], "run")
    f.error("Tile", "too few", [numbers(2, 3), fixed([2])], "build")
    f.error("Tile", "multiples of rank 2", [numbers(2, 3), fixed([[2, 2]])], "build")
    f.error("Tile", "too many elements", [numbers(2, 3), fixed([2**62, 2**62], "int64")], "run")
    f.error("Tile", "a dimension too large", [numbers(2, 3), fixed([2**62, 0], "int64")], "run")


def _reversed_sequences(f):
    moves(
        f,
        "ReverseSequence",
        "rows",
        lambda make: {"input": make(3, 4), "seq_lengths": fixed([2, 0, 4])},
        attrs={"seq_dim": 1, "batch_dim": 0},
    )
    for name, shape, lengths, seq, batch in [
        ("columns", (4, 3), [3, 1, 4], 0, 1),
        ("inner elements", (2, 3, 2), [2, 3], 1, 0),
        ("inner batch", (3, 2, 2), [1, 3], 0, 1),
        ("far apart", (2, 3, 2, 4), [4, 2, 3], 3, 1),
        ("batch behind", (2, 3, 2), [2, 1], 0, 2),
        ("no batch", (0, 3), [], 1, 0),
        ("no time", (2, 0), [0, 0], 1, 0),
        ("no elements", (2, 3, 0), [1, 3], 1, 0),
        ("odd rows", (2, 19), [17, 19], 1, 0),
    ]:
        arguments = {"input": fractions(*shape), "seq_lengths": fixed(lengths)}
        attrs = {"seq_dim": seq, "batch_dim": batch}
        f.raw("ReverseSequence", name, arguments, FLOATS, attrs=attrs, gradient=True)
    arguments = {"input": numbers(2, 3), "seq_lengths": fixed([3, 2], "int64")}
    f.raw("ReverseSequence", "int64 lengths", arguments, REALS, attrs={"seq_dim": 1, "batch_dim": 0}, gradient=True)

    def refused(name, shape, lengths, seq, batch, when, match=None):
        attrs = {"seq_dim": seq, "batch_dim": batch}
        f.error("ReverseSequence", name, [numbers(*shape), fixed(lengths)], when, attrs=attrs, match=match)

    refused("length too large", (2, 3), [3, 4], 1, 0, "run", match="lengths[1] = 4")
    refused("negative length", (2, 3), [-1, 3], 1, 0, "run", match="lengths[0] = -1")
    refused("too few lengths", (2, 3), [3], 1, 0, "build")
    refused("lengths of rank 2", (2, 3), [[3, 3]], 1, 0, "build")
    refused("the same dimension", (2, 3), [3, 3], 0, 0, "build")
    refused("the same dimension, from behind", (2, 3), [3, 3], -2, 0, "build")
    refused("no such dimension", (2, 3), [3, 3], 2, 0, "build")
    refused("no such batch", (2, 3), [3, 3], 1, -3, "build")


def _bitcasts(f):
    """TensorFlow's bytes are those of a little-endian processor, as NumPy's are here."""
    bits = {1: "uint8", 2: "int16", 4: "int32", 8: "uint64", 16: "complex128"}

    def bitcast(name, source, target, values):
        outputs = None if target in ("bfloat16", source) else ["fixed"]
        f.raw(
            "Bitcast",
            f"{name}, {source} to {target}",
            {"input": element(values, source)},
            [source],
            attrs={"type": target},
            output_roles=outputs,
        )

    for source in REALS + COMPLEX:
        if source == "bfloat16":
            continue  # NumPy has no such array: below
        size = np.dtype(source).itemsize
        values = [[1, 2, 3], [40, 50, 100]]
        bitcast("bytes", source, "uint8" if source != "uint8" else "int8", values)
        bitcast("all of an element", source, bits[size] if bits[size] != source else "int" + str(8 * size), values) if (
            size != 16
        ) else bitcast("halves", source, "float64", values)
        bitcast("no elements", source, "int8" if source != "int8" else "uint8", np.zeros((2, 0)))
        if size > 1:
            count = size
            joined = [[(7 * i + 1) % 63 for i in range(count)], [(5 * i + 2) % 63 for i in range(count)]]
            bitcast(f"of {source}", "uint8", source, joined)
    bitcast("one number", "float32", "uint32", -0.0)
    bitcast("a number of parts", "int32", "float64", [0, 0x3FF00000])
    bitcast("no rows", "uint16", "uint32", np.zeros((0, 2)))
    pairs = [[0x80, 0x3F], [0x20, 0xC1]]
    f.case(
        "Bitcast",
        "bytes to bfloat16",
        [element(pairs, "uint8")],
        [fixed([1, -10], "bfloat16")],
        ["uint8"],
        f"{NUMPY}: bfloat16 is the upper half of float32",
        attrs={"type": "bfloat16"},
    )
    f.case(
        "Bitcast",
        "bfloat16 to bytes",
        [element([1, -10], "bfloat16")],
        [fixed(pairs, "uint8")],
        ["bfloat16"],
        f"{NUMPY}: bfloat16 is the upper half of float32",
        attrs={"type": "uint8"},
    )
    for name, shape, target, when in [
        ("too few parts", (2, 3), "float64", "build"),
        ("a scalar", (), "float64", "build"),
        ("more dimensions than eight", (1,) * 8, "uint8", "build"),
    ]:
        f.error("Bitcast", name, [fixed(np.zeros(shape), "float32")], when, attrs={"type": target})


def _defaults(f):
    """An open shape is not among these: a device of its own could not allocate the output by the shape function."""
    for kind, make, types in KINDS:
        f.raw(
            "PlaceholderWithDefault",
            kind,
            {"input": make(2, 3)},
            types,
            attrs={"shape": [2, 3]},
            gradient=kind == "fractions",
        )
    f.raw("PlaceholderWithDefault", "rank 0", {"input": fractions()}, FLOATS, attrs={"shape": []}, gradient=True)
    for name, shape in [("another dimension", [2, 4]), ("another rank", [2, 3, 1])]:
        f.error("PlaceholderWithDefault", name, [numbers(2, 3)], "build", attrs={"shape": shape})
