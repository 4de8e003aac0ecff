"""Connectionist temporal classification, its decoders, and distances of sequences."""

import itertools

import numpy as np

from case_file import NUMPY, TENSORFLOW, element, fixed, tf
from element_types import COMPLEX, FLOATS, INTS

TYPES = ["float64", "float32"]


def add(f):
    _losses(f)
    _loss_errors(f)
    _greedy(f)
    _beams(f)
    _distances(f)


def logits(time, batch, classes, phase=0):
    """Multiples of 1/8 in [-3, 3], of no short period."""
    count = time * batch * classes
    at = np.arange(count) + 17 * phase
    return ((at * at * 7 + at * 11) % 49 - 24).reshape(time, batch, classes) / 8


def unlike(time, batch, classes):
    """Logits of 1/8192 in [-4, 4), so that no two sequences of labels are equally likely."""
    at = np.arange(time * batch * classes)
    return ((at * at * 7919 + at * 104729) % 65521).reshape(time, batch, classes) / 8192 - 4


def sparse(rows):
    """Indices and values of a sparse matrix with these rows."""
    indices = [[b, i] for b, row in enumerate(rows) for i in range(len(row))]
    return np.array(indices, np.int64).reshape(-1, 2), [v for row in rows for v in row]


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _labels_of(row, blank, collapse):
    row = [v for i, v in enumerate(row) if not (collapse and i and row[i - 1] == v)]
    return [v for v in row if v != blank]


def _transitions(states, blank, merge):
    """Whether a path goes from one state to another in a step: log of 1 or 0, [from, to]."""
    count = len(states)
    steps = np.full((count, count), -np.inf, np.longdouble)
    for u in range(count):
        if merge or states[u] == blank:
            steps[u, u] = 0
        if u > 0:
            steps[u - 1, u] = 0
        if u > 1 and states[u] != blank and not (merge and states[u] == states[u - 2]):
            steps[u - 2, u] = 0
    return steps


def _item(x, row, collapse, merge):
    """Loss and gradient of one item by its logits [time, classes]: the sums over all states in logarithms, in 80 bits."""
    x = x.astype(np.longdouble)
    time, blank = len(x), x.shape[1] - 1
    labels = _labels_of(row, blank, collapse)
    states = [blank] + [v for label in labels for v in (label, blank)]
    if time == 0:
        return 0.0, np.zeros_like(x)
    y = log_softmax(x)
    steps = _transitions(states, blank, merge)
    before = np.full((time, len(states)), -np.inf, np.longdouble)
    after = before.copy()
    before[0, :2] = y[0, states[:2]]
    after[-1, -2:] = 0
    with np.errstate(divide="ignore"):
        for t in range(1, time):
            before[t] = np.logaddexp.reduce(before[t - 1][:, None] + steps, 0) + y[t, states]
        for t in reversed(range(time - 1)):
            after[t] = np.logaddexp.reduce(steps + (after[t + 1] + y[t + 1, states])[None], 1)
        total = np.logaddexp.reduce(before[-1, -2:])
        gradient = np.exp(y)
        if total > -np.inf:
            for u, state in enumerate(states):
                gradient[:, state] -= np.exp(before[:, u] + after[:, u] - total)
    return 0 - total, gradient


def _enumerated(x, row, collapse):
    """The loss by the sum over all paths, which are merged."""
    labels = _labels_of(row, x.shape[1] - 1, collapse)
    y, total = np.exp(log_softmax(x)), 0.0
    for path in itertools.product(range(x.shape[1]), repeat=len(x)):
        merged = [v for v, _ in itertools.groupby(path) if v != x.shape[1] - 1]
        if merged == labels:
            total += np.prod(y[range(len(x)), path])
    return -np.log(total) if total > 0 else np.inf


def _loss(f, name, x, rows, lengths, collapse=False, merge=True, in_tensorflow=True, gradient=True):
    x = np.asarray(x, float)
    loss, slope = np.zeros(x.shape[1]), np.zeros_like(x)
    for b, (row, length) in enumerate(zip(rows, lengths)):
        loss[b], slope[:length, b] = _item(x[:length, b], row, collapse, merge)
        if merge and 0 < x.shape[2] ** length <= 5000:
            np.testing.assert_allclose(loss[b], _enumerated(x[:length, b], row, collapse), rtol=1e-12, atol=1e-12)
    slope += 0.0  # no -0
    indices, values = sparse(rows)
    attrs = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge}
    if in_tensorflow:
        theirs = tf.raw_ops.CTCLoss(inputs=tf.constant(x), labels_indices=indices, labels_values=np.array(values, np.int32),
                                    sequence_length=np.array(lengths, np.int32), **attrs)
        np.testing.assert_allclose(theirs.loss, loss, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(theirs.gradient, slope, rtol=2e-6, atol=2e-6)
    source = f"{NUMPY} sums over all states in logarithms of 80 bits"
    source += f"; {TENSORFLOW} raw_ops.CTCLoss, whose logarithms are floats, agrees within 2e-6" if in_tensorflow else ""
    f.case("CTCLoss", name, [element(x), fixed(indices, "int64"), fixed(values), fixed(lengths)],
           [element(loss), element(slope)], TYPES, source, attrs={k: v for k, v in attrs.items() if v != (k[0] == "c")},
           gradient=gradient, gradient_outputs=[0], tolerance_scale=16, terms=1)


def _losses(f):
    rows = [[0, 1], [2], [3, 0, 1]]
    _loss(f, "three items", logits(5, 3, 5), rows, [5, 3, 5])
    _loss(f, "three items, nothing merged", logits(5, 3, 5), rows, [5, 3, 5], merge=False)
    _loss(f, "as many labels as steps", logits(3, 2, 4), [[0, 1, 2], [2, 1]], [3, 2])
    _loss(f, "repeated labels", logits(6, 2, 3), [[0, 0, 1], [1, 1]], [6, 4])
    _loss(f, "repeated labels, nothing merged", logits(6, 2, 3), [[0, 0, 1], [1, 1, 1]], [6, 3], merge=False)
    _loss(f, "repeated labels are one", logits(6, 2, 3), [[0, 0, 1, 1], [1, 1]], [6, 4], collapse=True)
    _loss(f, "repeated labels are one, nothing merged", logits(6, 1, 3), [[0, 0, 1, 0]], [6], collapse=True, merge=False)
    _loss(f, "no path has the labels", logits(3, 2, 3), [[0, 0, 0], [1]], [3, 3], gradient=False)
    _loss(f, "blanks at the end", logits(4, 2, 3), [[1, 2, 2], [0, 1]], [4, 4])
    _loss(f, "one step", logits(1, 2, 3), [[0], [1]], [1, 1])
    _loss(f, "one class beside the blank", logits(5, 1, 2), [[0, 0]], [5])
    _loss(f, "sure of the labels", logits(4, 1, 3) / 8 + 20 * np.eye(3)[[0, 2, 1, 2]][:, None], [[0, 1]], [4])
    _loss(f, "sure of others", 12 * logits(12, 2, 4), [[0, 1, 2], [2, 2, 0, 1]], [12, 11])
    _loss(f, "long", logits(60, 2, 7), [[0, 1, 2, 3, 4, 5] * 3, [5, 5, 3, 3, 0]], [60, 41])
    _loss(f, "no labels", logits(4, 2, 3), [[], [1]], [4, 3], in_tensorflow=False)
    _loss(f, "no labels and no steps", logits(4, 3, 3), [[], [1], []], [0, 3, 0], in_tensorflow=False)
    _loss(f, "only blanks", logits(3, 2, 1), [[], []], [3, 1], in_tensorflow=False)
    _loss(f, "an empty batch", logits(3, 0, 4), [], [], in_tensorflow=False)
    # Far below the smallest double: the logarithms of TensorFlow's softmax are -infinity.
    _loss(f, "less likely than any double", 1000 * logits(9, 1, 3), [[0, 1, 0]], [9], in_tensorflow=False, gradient=False)
    nan = fixed(np.nan, "float64").array
    x = logits(3, 2, 3)
    x[2, 0, 1] = nan
    loss, slope = _item(x[:, 1], [0], False, True)
    both = np.full_like(x, np.nan)
    both[:, 1] = slope
    indices, values = sparse([[1], [0]])
    f.case("CTCLoss", "not a number", [element(x), fixed(indices, "int64"), fixed(values), fixed([3, 3])],
           [element([np.nan, loss]), element(both)], TYPES, "the definition", terms=1, tolerance_scale=16)


def _loss_errors(f):
    def error(name, when, match="CTCLoss", x=np.ones((4, 2, 3)), indices=((0, 0), (1, 0)), values=(0, 1), lengths=(4, 3)):
        f.error("CTCLoss", name, [fixed(x, "float32"), fixed(np.array(indices).reshape(-1, np.shape(indices)[-1]), "int64"),
                                  fixed(values), fixed(lengths)], when, match=match)

    error("a length beyond max_time", "run", "sequence_length[1] = 5", lengths=(4, 5))
    error("a negative length", "run", "sequence_length[0] = -1", lengths=(-1, 3))
    error("a label beyond the classes", "run", "labels_values[1] = 3", values=(0, 3))
    error("a negative label", "run", "labels_values[0] = -1", values=(-1, 0))
    error("a label behind a blank", "run", "labels_values[1] = 0", indices=((0, 0), (0, 1)), values=(2, 0))
    error("more labels than steps", "run", "item 1 has 3 labels", indices=((1, 0), (1, 1), (1, 2)), values=(0, 1, 0),
          lengths=(4, 2))
    error("labels and no steps", "run", "item 1 has 1 labels", lengths=(4, 0))
    error("an item beyond the batch", "run", "labels_indices[1] = (2, 0)", indices=((0, 0), (2, 0)))
    error("a negative item", "run", "labels_indices[0] = (-1, 0)", indices=((-1, 0), (1, 0)))
    error("a negative column", "run", "labels_indices[0] = (0, -3)", indices=((0, -3), (1, 0)))
    error("items out of order", "run", "labels_indices[1] = (0, 0)", indices=((1, 0), (0, 0)))
    error("a label twice", "run", "labels_indices[1] = (0, 0)", indices=((0, 0), (0, 0)))
    error("another number of indices", "build", values=(0,))
    error("indices of three columns", "build", indices=((0, 0, 0), (1, 0, 0)))
    error("indices of rank 1", "build", indices=(0, 1))
    error("lengths of another batch", "build", lengths=(4, 3, 2))
    error("lengths of rank 0", "build", lengths=4)
    error("inputs of rank 2", "build", x=np.ones((4, 3)))
    error("no classes", "build", x=np.ones((4, 2, 0)))


def _decoder_errors(f, op, attrs=None):
    x = fixed(np.ones((4, 2, 3)), "float32")
    f.error(op, "a length beyond max_time", [x, fixed([5, 3])], "run", match="sequence_length[0] = 5", attrs=attrs)
    f.error(op, "a negative length", [x, fixed([4, -1])], "run", match="sequence_length[1] = -1", attrs=attrs)
    f.error(op, "lengths of another batch", [x, fixed([4])], "build", attrs=attrs)
    f.error(op, "lengths of rank 2", [x, fixed([[4, 3]])], "build", attrs=attrs)
    f.error(op, "inputs of rank 2", [fixed(np.ones((4, 3)), "float32"), fixed([4])], "build", attrs=attrs)
    f.error(op, "no classes", [fixed(np.ones((4, 2, 0)), "float32"), fixed([4, 4])], "build", attrs=attrs)


def _greedy(f):
    for name, x, lengths in [
        ("three items", logits(7, 3, 4), [7, 4, 0]),
        ("runs of classes", np.repeat(logits(5, 2, 3, 3), 2, 0), [10, 9]),
        ("the first of equals", np.zeros((3, 1, 3)), [3]),
        ("one class", logits(3, 2, 1), [3, 2]),
        ("one step", logits(1, 1, 4), [1]),
        ("many classes", logits(6, 2, 67), [6, 5]),
    ]:
        for merge in (False, True):
            f.raw("CTCGreedyDecoder", name + ", merged" * merge, {"inputs": element(x), "sequence_length": fixed(lengths)},
                  TYPES, attrs={"merge_repeated": merge}, tolerance_scale=8, terms=20)
    none = [fixed(np.zeros((0, 2)), "int64"), fixed([], "int64"), fixed([0, 0], "int64"), element(np.zeros((0, 1)))]
    f.case("CTCGreedyDecoder", "an empty batch", [element(np.zeros((3, 0, 4))), fixed([])], none, TYPES, "the definition")
    _decoder_errors(f, "CTCGreedyDecoder")


def _beam_rows(f, name, x, lengths, width, paths, merge):
    attrs = {"beam_width": width, "top_paths": paths, "merge_repeated": merge}
    for dtype, scale in (("float32", 16), ("float64", 4e9)):  # TensorFlow's logarithms of doubles are those of floats
        indices, values, shapes, scores = tf.raw_ops.CTCBeamSearchDecoder(
            inputs=tf.constant(x, dtype), sequence_length=np.array(lengths, np.int32), **attrs)
        decoded = [fixed(t.numpy(), "int64") for part in (indices, values, shapes) for t in part]
        f.case("CTCBeamSearchDecoder", f"{name}, {dtype}", [element(x), fixed(lengths)],
               [*decoded, element(scores.numpy().astype(np.float64))], [dtype],
               f"{TENSORFLOW} raw_ops.CTCBeamSearchDecoder {dtype}", attrs=attrs, tolerance_scale=scale, terms=1)


def _beams(f):
    for name, x, lengths, width, paths in [
        ("three items", unlike(7, 3, 4), [7, 4, 2], 100, 3),
        ("a narrow beam", unlike(12, 2, 5), [12, 9], 3, 2),
        ("a narrow beam for long", unlike(60, 2, 9), [60, 53], 4, 2),
        ("a beam of two", unlike(50, 1, 3), [50], 2, 2),
        ("a beam of one", unlike(9, 2, 5), [9, 7], 1, 1),
        ("a narrow beam over many classes", unlike(9, 2, 31), [9, 9], 8, 4),
        ("long", unlike(40, 1, 6), [40], 12, 2),
        ("an empty sequence", unlike(3, 2, 4), [0, 3], 10, 1),
        ("only blanks", unlike(3, 1, 1), [3], 4, 1),
        ("far apart", 4 * unlike(6, 2, 4), [6, 6], 20, 2),
    ]:
        for merge in (False, True):
            _beam_rows(f, name + ", merged" * merge, x, lengths, width, paths, merge)
    op, one = "CTCBeamSearchDecoder", {"beam_width": 4, "top_paths": 1}
    _decoder_errors(f, op, one)
    x, lengths = fixed(np.ones((4, 2, 3)), "float32"), fixed([4, 0])
    f.error(op, "too few sequences", [x, lengths], "run", match="item 1 has 1 sequences",
            attrs={"beam_width": 4, "top_paths": 2})
    f.error(op, "more paths than the beam", [x, lengths], "build", match="top_paths = 3",
            attrs={"beam_width": 2, "top_paths": 3})
    f.error(op, "no paths", [x, lengths], "build", match="top_paths = 0", attrs={"beam_width": 2, "top_paths": 0})
    f.error(op, "no beam", [x, lengths], "build", match="beam_width = 0", attrs={"beam_width": 0, "top_paths": 1})
    f.error(op, "too wide a beam", [x, lengths], "build", match="beam_width = 1048577",
            attrs={"beam_width": 2**20 + 1, "top_paths": 1})
    bad = np.ones((4, 2, 3))
    bad[2, 1, 0] = np.nan
    f.error(op, "not a number", [fixed(bad, "float32"), fixed([4, 4])], "run", match="inputs[2, 1]", attrs=one)
    f.error(op, "an infinite logit", [fixed(np.full((1, 1, 2), np.inf), "float32"), fixed([1])], "run",
            match="inputs[0, 0]", attrs=one)


def _distances(f):
    texts = [
        ("two rows", [[0, 1, 2], [3]], [[0, 2, 2, 1], [3]]),
        ("missing rows", [[1, 2], [], [3, 1]], [[], [2], [1, 1, 3]]),
        ("a truth more", [[2, 3]], [[2, 3], [1]]),
        ("a hypothesis more", [[2, 3], [1, 1]], [[2]]),
        ("empty", [[], []], [[], []]),
        ("long", [list(np.arange(40) * 7 % 4)], [list(np.arange(33) * 5 % 4)]),
    ]

    def arguments(prefix, rows, dtype, numbers, dense=None):
        indices, values = sparse(rows)
        dense = [len(rows), max(map(len, rows))] if dense is None else dense
        values = [numbers[v] for v in values]
        return {f"{prefix}_indices": fixed(indices, "int64"), f"{prefix}_values": element(values, dtype),
                f"{prefix}_shape": fixed(dense, "int64")}

    kinds = [("float64", FLOATS, [0.5, -0.0, 0.0, 2.25]), ("int64", INTS, [0, 1, 127, 3]),
             ("complex128", COMPLEX, [1j, 1, 0, 1 + 1j]), ("bool", ["bool"], [False, True, True, False]),
             ("string", ["string"], ["", "a", "ab", "b"])]
    for name, hypothesis, truth in texts:
        for dtype, types, numbers in kinds:
            for normalize in (True, False):
                if dtype == "int64" or normalize:
                    f.raw("EditDistance", f"{name}, {dtype}{', normalized' * normalize}",
                          {**arguments("hypothesis", hypothesis, dtype, numbers), **arguments("truth", truth, dtype, numbers)},
                          types, attrs={"normalize": normalize})
    nan = {"dtype": "float64", "numbers": [1, np.nan, 2]}
    f.raw("EditDistance", "not a number is equal to none",
          {**arguments("hypothesis", [[0, 1]], **nan), **arguments("truth", [[0, 1]], **nan)}, FLOATS)
    f.raw("EditDistance", "rank 3",
          {"hypothesis_indices": fixed([[0, 0, 0], [0, 1, 2], [1, 0, 0], [1, 0, 3]], "int64"),
           "hypothesis_values": element([1, 2, 3, 4], "int64"), "hypothesis_shape": fixed([2, 2, 4], "int64"),
           "truth_indices": fixed([[0, 0, 1], [1, 0, 0], [1, 0, 1], [1, 2, 0]], "int64"),
           "truth_values": element([1, 4, 3, 2], "int64"), "truth_shape": fixed([2, 3, 2], "int64")}, INTS)
    none = [fixed(np.zeros((0, 2)), "int64"), element([], "int64"), fixed([0, 0], "int64")]
    f.case("EditDistance", "no rows", [*none, *none], [fixed([], "float32")], INTS, "the definition")

    def error(name, when, match="EditDistance", indices=((0, 0), (0, 1)), values=(1, 2), shape=(1, 2), in_truth=False):
        good = [fixed([[0, 0]], "int64"), fixed([1]), fixed([1, 1], "int64")]
        bad = [fixed(np.array(indices), "int64"), fixed(values), fixed(shape, "int64")]
        f.error("EditDistance", name + " of the truth" * in_truth, good + bad if in_truth else bad + good, when, match=match)

    for in_truth in (False, True):
        side = "truth" if in_truth else "hypothesis"
        error("an index out of the shape", "run", f"{side}_indices[1, 1] = 2", ((0, 0), (0, 2)), in_truth=in_truth)
        error("a negative index", "run", f"{side}_indices[0, 0] = -1", ((-1, 0), (0, 1)), in_truth=in_truth)
        error("an index twice", "run", f"{side}_indices[1]", ((0, 1), (0, 1)), in_truth=in_truth)
        error("indices out of order", "run", f"{side}_indices[1]", ((0, 1), (0, 0)), in_truth=in_truth)
        error("a negative shape", "run", f"{side}_shape[1] = -2", shape=(1, -2), in_truth=in_truth)
        error("another number of values", "build", values=(1,), in_truth=in_truth)
        error("a shape of another rank", "build", shape=(1, 2, 3), in_truth=in_truth)
        error("values of rank 2", "build", values=((1, 2),), in_truth=in_truth)
    vector = [fixed([[0]], "int64"), fixed([1]), fixed([1], "int64")]
    f.error("EditDistance", "rank 1", [*vector, *vector], "build")
    f.error("EditDistance", "other ranks", [*vector, fixed([[0, 0]], "int64"), fixed([1]), fixed([1, 1], "int64")], "build")
