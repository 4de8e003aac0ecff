"""Branches, loops, arrays and recurrent cells as TensorFlow runs and differentiates them.

Writes tests/oracle/programs/control_flow.json. A program is a function of tensors that gives a list of tensors. Each is run
by tf.function, which builds its control flow of functions (If, While), and in a graph of compat.v1 without those (Switch,
Merge, Enter, Exit, NextIteration): the writer stops where the two differ. tests/session/control_flow/control_flow_tensorflow_test.cpp has the same programs for
dflow, by name.
"""

import json

from case_file import TENSORFLOW, _number, _version_of_tensorflow, tf

import numpy as np

PROGRAMS = []


def eighths(*shape, phase=0):
    """Numbers that float32 holds, of either sign, none of them 0."""
    count = int(np.prod(shape))
    return ((((np.arange(count) * 7 + phase * 5) % 16) * 2 - 15) / 16).reshape(shape)


FUNCTIONS, FRAMES = "tf.function", "compat.v1 without control flow v2"


def program(name, *inputs, forms=(FUNCTIONS, FRAMES), second=True):
    """`inputs`: arrays; those of float64 are differentiated by. `forms`: what is run, the first of which is recorded;
    `second`: whether the gradient is differentiated, too."""

    def add(build):
        PROGRAMS.append((name, [np.asarray(value) for value in inputs], build, forms, second))
        return build

    return add


def while_loop(condition, body, first, shapes=None):
    return tf.while_loop(condition, body, first, shape_invariants=shapes)


def counted(count, body, *first):
    """The last values of what `body(i, ...)` makes of `first`, `count` times."""
    return while_loop(lambda i, *_: i < count, lambda i, *v: (i + 1, *body(i, *v)), (tf.constant(0), *first))[1:]


# ---- branches ----


def _exponential_or_cube(x, w):
    return [tf.cond(x > 0, lambda: tf.exp(w * x), lambda: w * w * x * x * x)]


program("branch, taken", 2.0, 0.5)(_exponential_or_cube)
program("branch, not taken", -2.0, 0.5)(_exponential_or_cube)


@program("branch that reads nothing", 0.5, 0.75)
def _(x, w):
    return [tf.cond(x > 0, lambda: tf.constant(2.0, x.dtype), lambda: x * w) * w]


def _one_of_three(k, x):
    return [tf.switch_case(k, [lambda: x * x, lambda: tf.sin(x) * x, lambda: tf.exp(x)])]


for _index in (0, 1, 2, 7):
    program(f"branch {_index} of three", np.int32(_index), eighths(3), forms=[FUNCTIONS])(_one_of_three)


@program("branch of two results in a branch", 0.625, eighths(2, 2))
def _(x, m):
    def inner():
        return tf.cond(x > 1, lambda: (m * x, m), lambda: (tf.matmul(m, m) * x, tf.sin(m)))

    return list(tf.cond(x > 0, inner, lambda: (m, m)))


# ---- loops ----


@program("loop to a limit", 1.5, 1.75)
def _(x, a):
    return [while_loop(lambda v: v < 100, lambda v: (v * a,), (x,))[0]]


@program("loop of products of matrices", eighths(2, 3), eighths(3, 3, phase=1), eighths(3, phase=2))
def _(h, w, b):
    return list(counted(4, lambda i, v: (tf.tanh(tf.matmul(v, w) + b),), h))


@program("loop of no iteration", eighths(2), eighths(2, phase=1))
def _(x, w):
    return list(counted(0, lambda i, v: (v * w,), x))


@program("loop that sums what it makes", eighths(3), eighths(3, phase=3))
def _(x, w):
    def body(i, power, total):
        following = power * tf.sin(w) + power
        return following, total + tf.reduce_sum(following * following)

    return list(counted(4, body, x, tf.constant(0.0, x.dtype)))


@program("loop in a loop", eighths(2))
def _(x):
    def body(i, total):
        inner = while_loop(
            lambda j, _: j < i + 1, lambda j, v: (j + 1, tf.tanh(v * x) + v / 2), (tf.constant(0), total + x)
        )[1]
        return (total + inner,)

    return list(counted(3, body, x))


@program("loop in a branch in a loop", 0.75)
def _(x):
    def body(i, v):
        return (tf.cond(v > 1, lambda: v / x, lambda: counted(2, lambda j, u: (u + x * u * u,), v)[0]),)

    return list(counted(4, body, x / 2))


@program("branches in a loop", eighths(2))
def _(x):
    def body(i, y):
        return (tf.cond(tf.equal(i % 2, 0), lambda: y * tf.exp(x / 4), lambda: tf.sin(y) + x),)

    return list(counted(4, body, x))


@program("loop that stops a gradient", eighths(2), eighths(2, phase=1))
def _(x, w):
    return list(counted(3, lambda i, v: (v * w + tf.stop_gradient(v * v),), x))


@program("loop that gathers rows", eighths(5, 2), np.array([1, 4, 1, 0], np.int32))
def _(table, ids):
    def body(i, total):
        return (tf.tanh(total + tf.gather(table, tf.gather(ids, i))) * 1.5,)

    return list(counted(4, body, tf.zeros([2], table.dtype)))


@program("loop of a variable that grows", eighths(1, 2), forms=[FUNCTIONS], second=False)
def _(x):
    """Frames refuse its gradient, functions that of its gradient."""
    any_rows = tf.TensorShape([None, 2])
    rows = while_loop(
        lambda i, _: i < 3,
        lambda i, rows: (i + 1, tf.concat([tf.sin(rows) * 2, x * x], 0)),
        (tf.constant(0), tf.identity(x)),
        (tf.TensorShape([]), any_rows),
    )[1]
    return [rows]


@program("loop that descends by gradients", eighths(3), eighths(3, phase=1), 0.125, forms=[FUNCTIONS])
def _(w, x, rate):
    def body(i, v):
        loss = tf.reduce_sum(tf.square(tf.tanh(v * x) - 0.5))
        return (v - rate * tf.gradients(loss, v)[0],)

    return list(counted(3, body, w))


@program("function called in a loop", eighths(2), eighths(2, phase=1), forms=[FUNCTIONS])
def _(x, w):
    scaled = tf.function(lambda v: tf.sin(v) * w)
    return list(counted(3, lambda i, v: (scaled(scaled(v)) + v,), x))


@program("recursion, unrolled", 1.5, np.int32(4))
def _(x, n):
    def power(k):
        return tf.cond(n < 5 - k, lambda: tf.ones_like(x), lambda: x * power(k - 1)) if k > 0 else tf.ones_like(x)

    return [power(4) * tf.sin(x)]


# ---- rows ----


@program("map of two to two", eighths(3, 2), eighths(3, phase=1))
def _(x, k):
    def each(row):
        return tf.reduce_sum(row[0]) * row[1], tf.sin(row[0]) * row[1]

    return list(tf.map_fn(each, (x, k), fn_output_signature=(x.dtype, x.dtype)))


@program("map that reads all rows", eighths(3, 2))
def _(x):
    return [tf.map_fn(lambda row: tf.tanh(row * tf.reduce_sum(x * x)), x)]


@program("map in a map", eighths(2, 3))
def _(x):
    def each(row):
        return tf.reduce_sum(tf.map_fn(lambda element: tf.sin(element) * tf.reduce_sum(row), row))

    return [tf.map_fn(each, x)]


@program("folds", eighths(3, 2), eighths(2, phase=1))
def _(x, first):
    left = tf.foldl(lambda state, row: tf.sin(state) + row * state, x, first)
    return [left, tf.foldr(lambda state, row: state * row + row, x, first)]


@program("scans", eighths(3, 2), eighths(2, phase=1))
def _(x, first):
    forward = tf.scan(lambda state, row: tf.tanh(state * row) + row, x, first)
    return [forward, tf.scan(lambda state, row: state * 2 + row * row * state, x, first, reverse=True)]


@program("scan of two states", eighths(4), 0.5)
def _(x, first):
    def step(state, element):
        return tf.sin(state[1] + element), state[0] * element

    return list(tf.scan(step, x, (first, first * 2)))


# ---- arrays ----


def array(of, size, shape=None):
    return tf.TensorArray(of.dtype, size, element_shape=shape, clear_after_read=False)


@program("array that a loop writes", eighths(2))
def _(x):
    def body(i, rows):
        return (rows.write(i, tf.sin(x * tf.cast(i + 1, x.dtype))),)

    rows = counted(5, body, array(x, 5, [2]))[0]
    return [rows.stack(), rows.gather([4, 0]), rows.read(3)]


@program("array gathered twice at a place", eighths(3, 2), forms=[FRAMES], second=False)
def _(x):
    """As functions the gradient is wrong: of what is gathered twice it has the last gradient, not the sum."""
    return [array(x, 3, [2]).unstack(x * x).gather([2, 0, 2])]


@program("array that a loop reads and writes", 0.75, 1.25)
def _(x, w):
    rows = array(x, 6, []).write(0, x).write(1, w)

    def body(i, rows):
        return (rows.write(i + 2, rows.read(i + 1) * tf.sin(rows.read(i)) + rows.read(i)),)

    return [counted(4, body, rows)[0].stack()]


@program("array of rows, from the last to the first", eighths(4, 2), eighths(2, phase=1))
def _(x, first):
    rows = array(x, 4, [2]).unstack(x)
    return list(counted(4, lambda i, state: (tf.tanh(state + rows.read(3 - i)) * state,), first))


@program("array of scattered rows", eighths(3, 2), np.array([2, 0, 1], np.int32))
def _(x, places):
    rows = array(x, 3, [2]).scatter(places, x * x)
    return [rows.stack(), rows.read(0) * rows.read(2)]


# ---- recurrent cells: Keras' layers, given kernels as dflow lays them out ----


def _layer(kind, **options):
    """Of two units over [2, 4, 3]; its variables are there for others to take their places."""
    layer = kind(2, return_sequences=True, return_state=True, dtype="float64", **options)
    layer.build((2, 4, 3))
    return layer


def _run_layer(layer, weights, x, mask=None):
    """Outputs and last states."""
    return layer.stateless_call(weights, [v.value for v in layer.non_trainable_variables], x, mask=mask)[0]


def _lstm(backwards=False):
    """Of a kernel [inputs + units, 4 units] and a bias, of the gates i, j, f, o, to the third of which 1 is added."""
    layer = _layer(tf.keras.layers.LSTM, go_backwards=backwards, zero_output_for_mask=True)

    def build(x, kernel, bias, lengths=None):
        i, j, f, o = tf.split(kernel, 4, axis=1)
        b_i, b_j, b_f, b_o = tf.split(bias, 4)
        ordered = tf.concat([i, f, j, o], 1)
        weights = [ordered[: x.shape[2]], ordered[x.shape[2] :], tf.concat([b_i, b_f + 1, b_j, b_o], 0)]
        mask = None if lengths is None else tf.sequence_mask(lengths, x.shape[1])
        outputs, h, c = _run_layer(layer, weights, x, mask)
        return [tf.reverse(outputs, [1]) if backwards else outputs, c, h]

    return build


_LSTM = (eighths(2, 4, 3), eighths(5, 8, phase=1), eighths(8, phase=2))
program("LSTM", *_LSTM, forms=[FUNCTIONS])(_lstm())
program("LSTM, backwards", *_LSTM, forms=[FUNCTIONS])(_lstm(backwards=True))
program("LSTM with lengths", *_LSTM, np.array([4, 2], np.int32), forms=[FUNCTIONS])(_lstm())


def _gru():
    """Of kernels [inputs + units, ...] of the gates r, u and of the candidate."""
    layer = _layer(tf.keras.layers.GRU, reset_after=False)

    def build(x, gates, gate_bias, candidate, bias):
        r, u = tf.split(gates, 2, axis=1)
        b_r, b_u = tf.split(gate_bias, 2)
        ordered = tf.concat([u, r, candidate], 1)
        weights = [ordered[: x.shape[2]], ordered[x.shape[2] :], tf.concat([b_u, b_r, bias], 0)]
        return list(_run_layer(layer, weights, x))

    return build


_GRU = (eighths(2, 4, 3), eighths(5, 4, phase=1), eighths(4, phase=2), eighths(5, 2, phase=3), eighths(2))
program("GRU", *_GRU, forms=[FUNCTIONS])(_gru())


# ---- running them ----


def _directions(count_of, shapes):
    return [
        ((((np.arange(int(np.prod(shape))) * 5 + 3 * (k + count_of)) % 13) - 6.5) / 8).reshape(shape)
        for k, shape in enumerate(shapes)
    ]


def _build(build, inputs, second):
    """Results, the gradients of their sum weighted by `dy`, and those of the sum of these weighted by `direction`."""
    results = [tf.convert_to_tensor(r) for r in build(*inputs)]
    wanted = [x for x in inputs if x.dtype == tf.float64]
    dy = _directions(1, [_shape_of(r) for r in results])
    slopes = tf.gradients(results, wanted, grad_ys=[tf.constant(each, tf.float64) for each in dy])
    directions = _directions(2, [x.shape.as_list() for x in wanted])
    again = [None] * len(wanted)
    if second:
        terms = [tf.reduce_sum(g * d) for g, d in zip(map(_dense, slopes), directions) if g is not None]
        again = tf.gradients(tf.add_n(terms), wanted) if terms else again
    return results, dy, [_dense(g) for g in slopes], directions, [_dense(g) for g in again]


def _shape_of(result):
    # What grows is known by the program alone.
    return [4 if size is None else size for size in result.shape.as_list()]


def _dense(gradient):
    return None if gradient is None else tf.convert_to_tensor(gradient)


def _run_as_functions(inputs, build, second):
    kept = {}

    @tf.function(autograph=False)
    def run(*tensors):
        results, kept["dy"], slopes, kept["direction"], again = _build(build, tensors, second)
        kept["has"] = [[g is not None for g in each] for each in (slopes, again)]
        return results, [g for g in slopes if g is not None], [g for g in again if g is not None]

    results, slopes, again = run(*[tf.constant(value) for value in inputs])
    dense = [
        [next(some).numpy() if there else None for there in has]
        for some, has in zip((iter(slopes), iter(again)), kept["has"])
    ]
    return [r.numpy() for r in results], kept["dy"], dense[0], kept["direction"], dense[1]


def _run_as_frames(inputs, build, _):
    """Loops of this form are not differentiated twice."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        results, dy, slopes, _, _ = _build(build, [tf.constant(value) for value in inputs], second=False)
        ops = {op.type for op in session.graph.get_operations()}
        assert not ops & {"While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"}, ops
        results, known = session.run([results, [g for g in slopes if g is not None]])
        known = iter(known)
        return results, dy, [None if g is None else next(known) for g in slopes], None, None


RUN = {FUNCTIONS: _run_as_functions, FRAMES: _run_as_frames}


def _agree(some, others):
    """What is None in one form is zero in the other, or None."""
    zeros = [(0 if a is None else a, 0 if b is None else b) for a, b in zip(some, others)]
    return all(np.allclose(a, b, rtol=1e-13, atol=1e-13) for a, b in zeros)


def _tensor(array):
    if array is None:
        return None
    array = np.asarray(array)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": [_number(v) for v in array.ravel().tolist()]}


def write(folder):
    tf.compat.v1.disable_control_flow_v2()
    records = []
    for name, inputs, build, forms, second in PROGRAMS:
        all_forms = [RUN[form](inputs, build, second) for form in forms]
        results, dy, slopes, directions, again = all_forms[0]
        for other in all_forms[1:]:
            if not _agree(results, other[0]) or not _agree(slopes, other[2]):
                raise ValueError(f"{name}: {TENSORFLOW} computes {results}, {slopes} and {other[0]}, {other[2]}")
        tensors = {"inputs": inputs, "outputs": results, "dy": dy, "dx": slopes}
        if second:
            tensors.update(direction=directions, ddx=again)
        record = {"name": name, **{key: [_tensor(v) for v in value] for key, value in tensors.items()}}
        record["source"] = f"{TENSORFLOW} {' and '.join(forms)}, float64"
        records.append(record)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "control_flow.json"
    lines = ",\n".join(json.dumps(record, separators=(",", ":"), allow_nan=False) for record in records)
    versions = json.dumps({"tensorflow": _version_of_tensorflow(), "numpy": np.__version__})
    path.write_text('{"source_versions": ' + versions + ',\n"programs": [\n' + lines + "\n]}\n", encoding="utf-8")
    print(f"programs: {len(records)} of control flow, {path.stat().st_size / 1024:.0f} KiB")
