"""Rows that are given to partitions and stitched together, and the shard that has a row of a table."""

import numpy as np

from array_cases import KINDS, fractions, numbers, strings
from case_file import NUMPY, element, fixed
from element_types import COMPLEX, FLOATS, INTS, REALS, STRING


def add(f):
    _partition(f)
    _partition_gradients(f)
    _stitch(f)
    _stitch_gradients(f)
    _shards(f)


def _partition(f):
    for kind, make, types in KINDS:
        arguments = {"data": make(6, 2), "partitions": fixed([0, 0, 2, 3, 2, 1])}
        f.raw("DynamicPartition", f"rows in four, {kind}", arguments, types, attrs={"num_partitions": 4},
              gradient=kind == "fractions")
    # TensorFlow's dynamic_partition_op_test.py: what is expected there is what the generator computes.
    published = [
        ("simple one dimension", [0, 13, 2, 39, 4, 17], [0, 0, 2, 3, 2, 1], 4,
         [[0, 13], [17], [2, 4], [39]]),
        ("simple two dimensions", [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14], [15, 16, 17]],
         [0, 0, 2, 3, 2, 1], 4,
         [[[0, 1, 2], [3, 4, 5]], [[15, 16, 17]], [[6, 7, 8], [12, 13, 14]], [[9, 10, 11]]]),
        ("empty parts", [1, 2, 3, 4], [1, 3, 1, 3], 4, [[], [1, 3], [], [2, 4]]),
        ("data of rank 1, one partition", list(range(10)), [0] * 10, 1, [list(range(10))]),
    ]
    for name, data, partitions, count, expected in published:
        f.raw("DynamicPartition", name, {"data": element(data), "partitions": fixed(partitions)}, REALS,
              attrs={"num_partitions": count}, gradient=True)
        for got, want in zip(f.cases[-1]["outputs"], expected, strict=True):
            if got["values"] != np.ravel(want).tolist():
                raise ValueError(f"DynamicPartition '{name}' is not what TensorFlow's test expects")
    for name, shape, partitions, count in [
        ("partitions of rank 2", (2, 3, 2), [[1, 0, 1], [2, 2, 0]], 3),
        ("partitions of all of data's shape", (2, 3), [[1, 0, 1], [1, 1, 0]], 2),
        ("one row by a rank 0 partition", (3,), 1, 3),
        ("a scalar", (), 0, 2),
        ("no rows", (0, 3), np.zeros(0), 2),
        ("empty rows", (3, 0), [1, 0, 1], 2),
        ("wide rows", (3, 17), [1, 0, 1], 2),
        ("all in one", (4, 2), [1, 1, 1, 1], 3),
        ("many rows", (41, 3), [i * 7 % 5 for i in range(41)], 5),
    ]:
        f.raw("DynamicPartition", name, {"data": fractions(*shape), "partitions": fixed(partitions)}, FLOATS,
              attrs={"num_partitions": count}, gradient=True)
    two = {"num_partitions": 2}
    f.error("DynamicPartition", "partition too large", [numbers(3), fixed([0, 2, 1])], "run", attrs=two,
            match="partitions[1] = 2 is outside [0, 2)")
    f.error("DynamicPartition", "partition negative", [numbers(3), fixed([0, 1, -1])], "run", attrs=two,
            match="partitions[2] = -1 is outside [0, 2)")
    f.error("DynamicPartition", "position in rank 2", [numbers(2, 2), fixed([[0, 1], [7, 1]])], "run", attrs=two,
            match="partitions[1,0] = 7")
    f.error("DynamicPartition", "rank 0", [numbers(), fixed(2)], "run", attrs=two, match="partitions = 2")
    f.error("DynamicPartition", "empty rows", [numbers(1, 0), fixed([2])], "run", attrs=two, match="partitions[0] = 2")
    f.error("DynamicPartition", "another number of partitions", [numbers(3), fixed([0, 1])], "build", attrs=two)
    f.error("DynamicPartition", "partitions of higher rank", [numbers(3), fixed([[0], [1], [1]])], "build", attrs=two)
    f.error("DynamicPartition", "no partitions", [numbers(3), fixed([0, 0, 0])], "build", attrs={"num_partitions": 0})
    f.error("DynamicPartition", "fewer than none", [numbers(3), fixed([0, 0, 0])], "build",
            attrs={"num_partitions": -1})


def _partition_gradients(f):
    for name, shape, partitions, count in [
        ("rows", (5, 2), [1, 0, 2, 1, 1], 3),
        ("matrix of partitions", (2, 3, 2), [[1, 0, 1], [2, 2, 0]], 3),
        ("a partition that gets nothing", (3, 2), [0, 2, 0], 3),
        ("no rows", (0, 2), np.zeros(0), 2),
    ]:
        f.raw("DynamicPartition", f"gradient, {name}", {"data": fractions(*shape), "partitions": fixed(partitions)},
              FLOATS, attrs={"num_partitions": count}, with_gradients=True)
    z = element(fractions(4).array + 0.5j, "complex128")
    f.raw("DynamicPartition", "gradient, complex", {"data": z, "partitions": fixed([1, 0, 1, 1])}, COMPLEX,
          attrs={"num_partitions": 2}, with_gradients=True)


def _stitched(f, name, indices, data, types, **options):
    arguments = {"indices": [fixed(i) for i in indices], "data": data}
    f.raw("DynamicStitch", name, arguments, types, attrs={"N": len(indices)}, raw_attrs={}, **options)


def _stitch(f):
    for kind, make, types in KINDS:
        rows = make(6, 2)
        data = [rows._replace(array=part) for part in (rows.array[:1], rows.array[1:4], rows.array[4:])]
        _stitched(f, f"three lists, {kind}", [[4], [0, 5, 2], [1, 3]], data, types, gradient=kind == "fractions")
    # TensorFlow's dynamic_stitch_op_test.py: what is expected there is what the generator computes.
    published = [
        ("scalar", [0, 1], [40, 60], [40, 60]),
        ("simple one dimension", [[0, 4, 7], [1, 6, 2, 3, 5]], [[0, 40, 70], [10, 60, 20, 30, 50]],
         [0, 10, 20, 30, 40, 50, 60, 70]),
        ("one list, one dimension", [[1, 6, 2, 3, 5, 0, 4, 7]], [[10, 60, 20, 30, 50, 0, 40, 70]],
         [0, 10, 20, 30, 40, 50, 60, 70]),
        ("simple two dimensions", [[0, 4, 7], [1, 6], [2, 3, 5]],
         [[[0, 1], [40, 41], [70, 71]], [[10, 11], [60, 61]], [[20, 21], [30, 31], [50, 51]]],
         [[0, 1], [10, 11], [20, 21], [30, 31], [40, 41], [50, 51], [60, 61], [70, 71]]),
        ("higher rank", [6, [4, 1], [[5, 2], [0, 3]]],
         [[61, 62], [[41, 42], [11, 12]], [[[51, 52], [21, 22]], [[1, 2], [31, 32]]]],
         [[1, 2], [11, 12], [21, 22], [31, 32], [41, 42], [51, 52], [61, 62]]),
    ]
    for name, indices, data, expected in published:
        _stitched(f, name, indices, [element(d) for d in data], REALS, gradient=True)
        if f.cases[-1]["outputs"][0]["values"] != np.ravel(expected).tolist():
            raise ValueError(f"DynamicStitch '{name}' is not what TensorFlow's test expects")
    _stitched(f, "the last of a list counts", [[0, 1, 0]], [numbers(3, 2)], REALS)
    _stitched(f, "later lists count", [[0, 1], [1, 2], [1]], [numbers(2, 2), numbers(2, 2), numbers(1, 2)], REALS)
    _stitched(f, "later strings count", [[0, 1], [1]], [strings(2), strings(1)], STRING)
    for name, indices, shapes in [
        ("no rows", [np.zeros(0), np.zeros(0)], [(0, 3), (0, 3)]),
        ("one list empty", [np.zeros(0), [1, 0]], [(0, 3), (2, 3)]),
        ("empty rows", [[1], [0]], [(1, 0), (1, 0)]),
        ("wide rows", [[2, 0], [1]], [(2, 17), (1, 17)]),
        ("many rows", [[i * 7 % 41 for i in range(20)], [i * 7 % 41 for i in range(20, 41)]], [(20, 3), (21, 3)]),
    ]:
        _stitched(f, name, indices, [fractions(*s) for s in shapes], FLOATS, gradient=True)
    # What TensorFlow leaves open is zero, or an empty string.
    source = f"{NUMPY}: rows that no index names are zero"
    for kind, make, types in KINDS:
        data = make(2, 2)
        merged = np.full((4, 2), "" if kind == "strings" else 0, data.array.dtype)
        merged[[3, 1]] = data.array
        f.case("DynamicStitch", f"rows between, {kind}", [fixed([3, 1]), data], [data._replace(array=merged)], types,
               source, attrs={"N": 1}, gradient=kind == "fractions")
    two = {"N": 2}
    f.error("DynamicStitch", "index negative", [fixed([0, 1]), fixed([2, -5]), numbers(2), numbers(2)], "run",
            attrs=two, match="indices[1][1] = -5 is negative")
    f.error("DynamicStitch", "rank 0", [fixed(-1), numbers()], "run", attrs={"N": 1}, match="indices[0] = -1")
    f.error("DynamicStitch", "other rows", [fixed([0]), fixed([1]), numbers(1, 2), numbers(1, 3)], "build", attrs=two)
    f.error("DynamicStitch", "rows of another rank", [fixed([0]), fixed([1]), numbers(1, 2), numbers(1)], "build",
            attrs=two)
    f.error("DynamicStitch", "another number of rows", [fixed([0]), fixed([1, 2]), numbers(1), numbers(1)], "build",
            attrs=two)
    f.error("DynamicStitch", "indices of higher rank", [fixed([[0]]), numbers(1)], "build", attrs={"N": 1})
    f.error("DynamicStitch", "no lists", [], "build", attrs={"N": 0})
    f.error("DynamicStitch", "lists of another number", [fixed([0]), fixed([1]), numbers(1)], "build", attrs=two)


def _stitch_gradients(f):
    for name, indices, shapes in [
        ("rows", [[0, 4], [1, 3, 2]], [(2, 2), (3, 2)]),
        ("higher rank", [5, [4, 1], [[3, 2], [0, 6]]], [(2,), (2, 2), (2, 2, 2)]),
        ("of rows that others replace", [[0, 1, 0], [1]], [(3, 2), (1, 2)]),
        ("one list empty", [np.zeros(0), [1, 0]], [(0, 2), (2, 2)]),
    ]:
        _stitched(f, f"gradient, {name}", indices, [fractions(*s) for s in shapes], FLOATS, with_gradients=True)
    z = [element(fractions(n).array + 0.5j, "complex128") for n in (2, 1)]
    _stitched(f, "gradient, complex", [[0, 2], [1]], z, COMPLEX, with_gradients=True)


def _shards(f):
    """By loops over the shards' rows: each row of the table in turn is the next one of its shard."""
    for rows, shards in [(12, 3), (10, 3), (11, 4), (3, 3), (2, 5), (7, 1)]:
        sizes = [rows // shards + (i < rows % shards) for i in range(shards)]
        places = {
            "mod": [(r % shards, r // shards) for r in range(rows)],
            "div": [(s, r) for s, size in enumerate(sizes) for r in range(size)],
        }
        ids = np.array([(i * 5 + 1) % rows for i in range(rows + 3)])
        for strategy, place in places.items():
            _shard(f, f"{rows} rows in {shards}, {strategy}", ids, place, rows, shards, strategy)
    _shard(f, "rank 0", np.array(4), [(r % 2, r // 2) for r in range(6)], 6, 2, "mod")
    _shard(f, "rank 2", np.array([[4, 0, 1], [5, 3, 3]]), [(r // 3, r % 3) for r in range(6)], 6, 2, "div")
    _shard(f, "no ids", np.zeros((2, 0)), [], 6, 2, "div")
    _shard(f, "no ids, no rows", np.zeros(0), [], 0, 2, "div")
    far = 2**40 + 5
    f.case("ShardOfRow", "more rows than int32 counts", [element([far], "int64")],
           [fixed([far % 3]), element([far // 3], "int64")], ["int64"], NUMPY,
           attrs={"num_rows": 2**41, "num_shards": 3})
    for strategy in ("mod", "div"):
        attrs = {"num_rows": 10, "num_shards": 3, "strategy": strategy}
        f.error("ShardOfRow", f"id too large, {strategy}", [fixed([3, 10])], "run", attrs=attrs,
                match="ids[1] = 10 is outside [0, 10)")
        f.error("ShardOfRow", f"id negative, {strategy}", [fixed([[3, -2]], "int64")], "run", attrs=attrs,
                match="ids[0,1] = -2 is outside [0, 10)")
    f.error("ShardOfRow", "no shards", [fixed([0])], "build", attrs={"num_rows": 10, "num_shards": 0})
    f.error("ShardOfRow", "fewer rows than none", [fixed([0])], "build", attrs={"num_rows": -1, "num_shards": 2})


def _shard(f, name, ids, place, rows, shards, strategy):
    found = np.array([place[int(i)] for i in ids.ravel()], "int64").reshape(ids.shape + (2,))
    attrs = {"num_rows": rows, "num_shards": shards, "strategy": strategy}
    f.case("ShardOfRow", name, [element(ids, "int64")], [fixed(found[..., 0]), element(found[..., 1], "int64")],
           [t for t in INTS if t in ("int32", "int64")], f"{NUMPY}: loops over the rows of the shards", attrs=attrs)
