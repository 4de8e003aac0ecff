"""Ops of models with many classes: the largest elements of rows, and candidates that were drawn."""

import numpy as np

from case_file import NUMPY, element, fixed
from element_types import FLOATS, INTS, REALS


def add(f):
    _top_k(f)
    _in_top_k(f)
    _candidates(f)


def _distinct(*shape, step=7):
    """Whole numbers from 0 to 99, no two of a row alike, in an order that looks like none."""
    count = int(np.prod(shape, dtype=int))
    return ((np.arange(count) * step * 5 + 3) % 97).reshape(shape)


def _top_k(f):
    def add_row(name, x, k, types, wide="float64", gradient=True, **attrs):
        arguments = {"input": element(x, wide), "k": fixed(k)}
        f.raw("TopKV2", name, arguments, types, attrs={"sorted": True} | attrs, gradient=gradient)

    for name, shape, k in [
        ("a vector", (9,), 3),
        ("a matrix", (4, 6), 2),
        ("rank 3", (2, 3, 5), 4),
        ("rank 5", (2, 1, 2, 1, 3), 2),
        ("one", (3, 5), 1),
        ("all", (3, 5), 5),
        ("none", (3, 5), 0),
        ("no rows", (0, 5), 2),
        ("rows of no elements", (3, 0), 0),
        ("one element", (1,), 1),
        ("rows of several blocks", (2, 41), 17),
    ]:
        add_row(name, _distinct(*shape), k, REALS, wide="int64" if 0 in shape else "float64")
    long = (np.arange(700) * 263 % 701) - 350
    add_row("more than a block of keys", long, 20, ["float64", "float32", "int64", "int32", "int16"])
    add_row("many of many", long, 600, ["float64", "float32", "int64", "int32", "int16"])
    ascending = np.arange(1000)
    add_row("ascending", ascending, 3, ["float64", "float32", "int32", "uint16"])
    ties = np.array([[2, 5, 5, 1, 5], [3, 3, 3, 3, 3], [-1, -2, -1, -2, 0]])
    add_row("ties go to the lower position", ties, 3, FLOATS + ["int64", "int32", "int16", "int8"], gradient=False)
    add_row("zeros of either sign are alike", [-0.0, 0.0, -0.0, 0.0], 3, FLOATS, gradient=False)
    add_row("infinities", [[-np.inf, 1, np.inf, 2], [-np.inf, -np.inf, -np.inf, 0]], 3, FLOATS, gradient=False)
    add_row("fractions", np.array([[0.5, -0.25, 0.125, -8], [1.5, 1.25, 1.75, 1]]), 2, FLOATS)
    for t in INTS:
        ends = np.iinfo(t)
        x = np.array([ends.min, ends.max, 0, 1, ends.max - 1, ends.min + 1], dtype=t)
        wide = "uint64" if t == "uint64" else "int64"
        order = sorted(range(x.size), key=lambda i: -int(x[i]))[:4]
        outputs = [element(x[order], wide), fixed(order)]
        f.case("TopKV2", f"ends of {t}", [element(x, wide), fixed(4)], outputs, [t], NUMPY, attrs={"sorted": True})
    x = np.array([3, 9, 1, 7, 8, 2])
    outputs = [element(x[[1, 3, 4]]), fixed([1, 3, 4])]
    f.case("TopKV2", "not sorted", [element(x), fixed(3)], outputs, REALS, NUMPY, attrs={"sorted": False}, gradient=True)
    x = np.array([[1, np.nan, np.inf, np.nan], [np.nan, -np.inf, 2, 3]])
    outputs = [element([[np.nan, np.nan, np.inf], [np.nan, 3, 2]]), fixed([[1, 3, 2], [0, 3, 2]])]
    f.case("TopKV2", "not a number is the largest", [element(x), fixed(3)], outputs, FLOATS, NUMPY, attrs={"sorted": True})
    f.error("TopKV2", "more than there are", [element(_distinct(2, 3)), fixed(4)], "run", match="k = 4 is more than the 3")
    f.error("TopKV2", "a negative number", [element(_distinct(2, 3)), fixed(-1)], "run", match="k = -1 is negative")
    f.error("TopKV2", "a scalar", [element(1), fixed(1)], "build")
    f.error("TopKV2", "several numbers", [element(_distinct(3)), fixed([1, 2])], "build")


def _in_top_k(f):
    x = np.array([[1, 5, 3, 2], [7, 7, 6, 8], [0.5, 0.25, -1, 2], [4, 4, 4, 4]])
    for k in range(0, 6):
        for targets in ([1, 0, 2, 3], [2, 2, 0, 0]):
            _in_top_k_row(f, f"k = {k}, targets {targets}", x, targets, k, FLOATS)
    _in_top_k_row(f, "targets of int64", x, np.array([3, 3, 3, 3]), 2, FLOATS, "int64")
    _in_top_k_row(f, "targets outside", x, [4, -1, 2**31 - 1, -(2**31)], 5, FLOATS)
    odd = np.array([[1, np.inf, 3], [1, np.nan, 3], [1, -np.inf, 3], [1, 2, 3]])
    _in_top_k_row(f, "predictions that are not finite", odd, [0, 0, 0, 0], 3, FLOATS)
    _in_top_k_row(f, "no rows", np.zeros((0, 3)), np.zeros(0, int), 1, FLOATS)
    _in_top_k_row(f, "no classes", np.zeros((2, 0)), [0, 0], 1, FLOATS)
    _in_top_k_row(f, "more than a block of keys", _distinct(3, 97), [5, 50, 96], 40, FLOATS)
    f.error("InTopK", "another number of targets", [element(x), fixed([1, 2])], "build", attrs={"k": 1})
    f.error("InTopK", "a negative k", [element(x), fixed([1, 2, 3, 0])], "build", attrs={"k": -1}, match="k = -1 is negative")
    f.error("InTopK", "a vector of predictions", [element([1, 2]), fixed([1])], "build", attrs={"k": 1})


def _in_top_k_row(f, name, x, targets, k, types, dtype="int32"):
    """Expected values by TensorFlow, which takes float32 alone."""
    import tensorflow as tf

    result = tf.raw_ops.InTopKV2(
        predictions=tf.constant(x, tf.float32), targets=tf.constant(targets, dtype), k=tf.constant(k, dtype)
    ).numpy()
    source = f"tensorflow {tf.__version__} raw_ops.InTopKV2 float32"
    f.case("InTopK", name, [element(x), fixed(targets, dtype)], [fixed(result, "bool")], types, source, attrs={"k": k})


def _candidates(f):
    def add_row(op, name, arguments, attrs):
        ids = {key: fixed(np.array(value, dtype=np.int64), "int64") for key, value in arguments.items()}
        f.raw(op, name, ids, ["float64"], attrs=attrs, output_roles=["fixed"] * 3)

    def hits(name, classes, candidates):
        arguments = {"true_classes": classes, "sampled_candidates": candidates}
        add_row("ComputeAccidentalHits", name, arguments, {"num_true": np.shape(classes)[1]})

    hits("some", [[0, 3], [5, 5], [7, 2]], [5, 9, 0, 2, 11])
    hits("none", [[0, 3], [5, 5]], [1, 2])
    hits("candidates that repeat", [[4], [2], [4]], [4, 2, 4, 2, 3])
    hits("no rows", np.zeros((0, 2)), [1, 2])
    hits("no candidates", [[1, 2]], np.zeros(0))
    hits("any numbers", [[-1], [2**62], [0]], [2**62, -1])
    for name, classes, num_sampled in [("all", [[0, 3], [1, 1]], 4), ("one", [[0]], 1), ("no rows", np.zeros((0, 3)), 5)]:
        attrs = {"num_true": np.shape(classes)[1], "num_sampled": num_sampled, "unique": True}
        add_row("AllCandidateSampler", name, {"true_classes": classes}, attrs)

    def bad(op, name, classes, when, match, **attrs):
        attrs = {"num_true": 1, "num_sampled": 2, "unique": True, "range_max": 4, "seed": 3} | attrs
        if op == "AllCandidateSampler":
            del attrs["range_max"]
        f.error(op, name, [fixed(np.array(classes, dtype=np.int64), "int64")], when, attrs=attrs, match=match)

    samplers = ["UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
                "ThreadUnsafeUnigramCandidateSampler"]  # fmt: skip
    for op in samplers:
        bad(op, "more than there are", [[1]], "build", "num_sampled = 5 unique candidates are more than range_max = 4", num_sampled=5)
        bad(op, "no classes", [[1]], "build", "range_max = 0: there are no classes", range_max=0)
        bad(op, "a class beyond the range", [[1], [4]], "run", "true_classes[1,0] = 4 is outside [0, 4)")
        bad(op, "a negative class", [[1, -1]], "run", "true_classes[0,1] = -1 is outside [0, 4)", num_true=2)
    for op in [*samplers, "AllCandidateSampler"]:
        bad(op, "no candidates", [[1]], "build", "num_sampled = 0 is below 1", num_sampled=0)
        bad(op, "another number of true classes", [[1, 2]], "build", op, num_true=3)
        bad(op, "a vector", [1], "build", op)
        bad(op, "true classes of none", np.zeros((2, 0)), "build", "num_true = 0 is below 1", num_true=0)
    bad("AllCandidateSampler", "a class beyond the range", [[1], [2]], "run", "true_classes[1,0] = 2 is outside [0, 2)")
    op, weights = "FixedUnigramCandidateSampler", {"unigrams": [1.0, 0.0, 2.0, 0.5]}
    bad(op, "no weights", [[1]], "build", "either unigrams or a vocab_file")
    bad(op, "weights and a file", [[1]], "build", "either unigrams or a vocab_file", vocab_file="words", **weights)
    bad(op, "a shard beyond the shards", [[1]], "build", "shard = 2 is outside", shard=2, num_shards=2, **weights)
    bad(op, "no shards", [[1]], "build", "num_shards = 0", num_shards=0, **weights)
    bad(op, "a negative number of reserved classes", [[1]], "build", "num_reserved_ids = -1", num_reserved_ids=-1, **weights)
    bad(op, "too few weights", [[1]], "run", "range_max = 4 is not the number", unigrams=[1.0, 2.0])
    bad(op, "too many weights", [[1]], "run", "range_max = 4 is not the number", num_reserved_ids=1, **weights)
    bad(op, "very many reserved classes", [[1]], "run", "range_max = 4 is not", num_reserved_ids=2**63 - 1, num_shards=3, **weights)
    bad(op, "a negative weight", [[1]], "run", "unigrams[1] = -1 is no weight", unigrams=[1.0, -1.0, 1.0, 1.0])
    bad(op, "an infinite weight", [[1]], "run", "unigrams[1] = 0 is no weight", distortion=-1.0, **weights)
    bad(op, "no weight above 0", [[1]], "run", "no class has a weight above 0", unigrams=[0.0, 0.0, 0.0, 0.0])
    bad(op, "more than have a weight", [[1]], "run", "more than the 3 classes with a weight", num_sampled=4, **weights)
    bad(op, "a class beyond the range", [[4]], "run", "true_classes[0,0] = 4 is outside [0, 4)", **weights)
    logits = element([[0.5, 1, -1], [2, 2, 2]])
    f.error("Multinomial", "a negative number", [logits, fixed(-1)], "run", match="num_samples = -1 is negative")
    f.error("Multinomial", "no classes", [element(np.zeros((2, 0))), fixed(1)], "build", match="there are no classes")
    f.error("Multinomial", "a vector of logits", [element([1, 2]), fixed(1)], "build")
    lost = element([[0.5, 1], [-np.inf, np.nan]])
    f.error("Multinomial", "a row without a finite logit", [lost, fixed(3)], "run", match="row 1 of logits has no number that is finite")
