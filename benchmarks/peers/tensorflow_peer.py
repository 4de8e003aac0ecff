"""TensorFlow's side of a contest. usage: tensorflow_peer.py dispatch|training|input|kernels|ops|cluster THREADS [xla]"""
import os
import sys

suite, threads = sys.argv[1], int(sys.argv[2])
xla = sys.argv[3:] == ["xla"]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[name] = str(threads)
if threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import random  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from contestant import Contestant  # noqa: E402

tf1 = tf.compat.v1
side = Contestant()


def null_graph(kind, size):
    chooser = random.Random(1)
    nodes = []
    for i in range(size):
        after = []
        if kind == "chain":
            after = nodes[-1:]
        elif kind == "fan-out":
            after = nodes[:1]
        elif i > 0:
            after = [nodes[chooser.randrange(max(0, i - 1000), i)] for _ in range(min(2, i))]
        with tf1.control_dependencies(after):
            nodes.append(tf.raw_ops.NoOp())
    with tf1.control_dependencies(nodes[1:] if kind == "fan-out" else nodes[-1000:]):
        return tf.raw_ops.NoOp()


def session(graph):
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    return tf1.Session(graph=graph, config=config)


def null_steps(kind, size):
    def prepare():
        graph = tf1.Graph()
        with graph.as_default():
            last = null_graph(kind, size)
        return session(graph).make_callable(last)
    return prepare


def first_run(size):
    graph = tf1.Graph()
    with graph.as_default():
        last = null_graph("random", size)

    def measure():
        with session(graph) as fresh:
            start = time.perf_counter()
            fresh.run(last)
            return time.perf_counter() - start
    return measure


def additions(count):
    def prepare():
        graph = tf1.Graph()
        with graph.as_default():
            x = tf1.placeholder(tf.float32, [])
            total = x
            for _ in range(count):
                total = tf.raw_ops.Add(x=total, y=x)
        call = session(graph).make_callable(total, [x])
        return lambda: call(1.0)
    return prepare


def loop(iterations):
    """Switch, Merge and what belongs to them, as TensorFlow 1 builds loops and lowers those of TensorFlow 2."""
    def prepare():
        tf1.disable_control_flow_v2()
        graph = tf1.Graph()
        with graph.as_default():
            limit = tf1.placeholder(tf.int32, [])
            count = tf1.while_loop(lambda i: i < limit, lambda i: i + 1, [tf.constant(0)], parallel_iterations=1)
        call = session(graph).make_callable(count, [limit])
        return lambda: call(iterations)
    return prepare


def dispatch():
    tf1.disable_eager_execution()
    for size in (10_000, 100_000):
        for kind in ("chain", "fan-out", "random"):
            # dflow's graphs with an asynchronous node in them are measured beside the same ones without.
            for beside in ("", ", one asynchronous", ", one received"):
                side.row(f"{kind} {size}{beside}", null_steps(kind, size))
        made = []

        def measure(size=size, made=made):
            if not made:
                made.append(first_run(size))
            return made[0]()
        side.timed(f"first run {size}", measure)
    side.row("scalar additions 10000", additions(10_000))
    side.row("step of one addition", additions(1))
    side.row("loop of 10000 iterations", loop(10_000))


def model(name):
    weights = []

    def variable(*shape):
        fan_in = max(1, int(np.prod(shape[:-1])))
        weights.append(tf.Variable(tf.random.normal(shape, stddev=(2 / fan_in) ** 0.5)))
        return weights[-1]

    def zeros(size):
        weights.append(tf.Variable(tf.zeros([size])))
        return weights[-1]

    def dense(inputs, outputs):
        w, b = variable(inputs, outputs), zeros(outputs)
        return lambda v: tf.nn.bias_add(tf.matmul(v, w), b)

    def conv(window, inputs, outputs):
        w, b = variable(window, window, inputs, outputs), zeros(outputs)
        return lambda v: tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(v, w, 1, "SAME"), b))

    def pool(v):
        return tf.nn.max_pool2d(v, 2, 2, "SAME")

    if name == "tiny":
        a, b = dense(16, 16), dense(16, 10)
        return weights, (8, 16), lambda v: b(tf.nn.relu(a(v)))
    if name == "mlp":
        a, b, c = dense(784, 512), dense(512, 512), dense(512, 10)
        return weights, (128, 784), lambda v: c(tf.nn.relu(b(tf.nn.relu(a(v)))))
    a, b, c, d = conv(5, 1, 32), conv(5, 32, 64), dense(3136, 512), dense(512, 10)
    return (weights, (64, 28, 28, 1),
            lambda v: d(tf.nn.relu(c(tf.reshape(pool(b(pool(a(v)))), [-1, 3136])))))


def training_step(name, optimizer):
    def prepare():
        weights, shape, forward = model(name)
        rng = np.random.default_rng(1)
        x = tf.constant(rng.standard_normal(shape, dtype=np.float32))
        y = tf.constant(rng.integers(0, 10, shape[0]).astype(np.int64))
        m = [tf.Variable(tf.zeros_like(w)) for w in weights]
        v = [tf.Variable(tf.zeros_like(w)) for w in weights]

        @tf.function(jit_compile=xla)
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, forward(x)))
            for i, (w, g) in enumerate(zip(weights, tape.gradient(loss, weights))):
                if optimizer == "sgd":
                    w.assign_sub(0.01 * g)
                elif xla:
                    m[i].assign(0.9 * m[i] + 0.1 * g)
                    v[i].assign(0.999 * v[i] + 0.001 * g * g)
                    w.assign_sub(1e-4 * m[i] / (tf.sqrt(v[i]) + 1e-8))
                else:
                    tf.raw_ops.ResourceApplyAdam(var=w.handle, m=m[i].handle, v=v[i].handle, beta1_power=0.9,
                                                 beta2_power=0.999, lr=1e-4, beta1=0.9, beta2=0.999, epsilon=1e-8,
                                                 grad=g)
            return loss
        return lambda: step().numpy()
    return prepare


def training():
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    for row in ("tiny sgd", "mlp sgd", "mlp adam", "lenet sgd"):
        side.row(row, training_step(*row.split()))


def input_pipeline():
    """Records from a file of the same form, by tf.data."""
    import tempfile
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    rng = np.random.default_rng(1)
    folder = tempfile.TemporaryDirectory()
    path = folder.name + "/records"
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(20000):
            feature = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[rng.bytes(784)])),
                       "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rng.integers(0, 10))]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def parsed(record):
        features = tf.io.parse_single_example(record, spec)
        image = tf.cast(tf.io.decode_raw(features["image"], tf.uint8), tf.float32) / 255.0
        return tf.ensure_shape(image, [784]), features["label"]

    def batches():
        return iter(tf.data.TFRecordDataset(path).repeat().shuffle(2000).map(parsed)
                    .batch(64, drop_remainder=True).prefetch(4))

    def alone():
        iterator, _ = batches(), folder
        return lambda: next(iterator)

    def training():
        iterator = batches()
        weights, _, forward = model("mlp")

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, forward(x)))
            for w, g in zip(weights, tape.gradient(loss, weights)):
                w.assign_sub(0.01 * g)
            return loss
        return lambda: step(*next(iterator)).numpy()
    side.row("batches of 64 records", alone)
    side.row("mlp sgd from records", training)


def on_variables(build):
    """A step that computes what `build(variable)` gives: it stays in the graph, in memory that TensorFlow allocates each time."""
    def prepare():
        graph = tf1.Graph()
        with graph.as_default():
            held = []

            def variable(value):
                fed = tf1.placeholder(value.dtype, value.shape)
                held.append((tf1.get_variable(f"v{len(held)}", initializer=fed, use_resource=True), fed, value))
                return held[-1][0].read_value()
            outputs = build(variable)
            with tf1.control_dependencies(outputs):
                last = tf.raw_ops.NoOp()
        steps = session(graph)
        for v, fed, value in held:
            steps.run(v.initializer, {fed: value})
        return steps.make_callable(last)
    return prepare


def kernels():
    """Ops by their kernels alone."""
    tf1.disable_eager_execution()
    rng = np.random.default_rng(1)
    op = on_variables

    def cross_entropy(variable):
        x = variable(rng.standard_normal((512, 32000), dtype=np.float32))
        labels = variable(rng.integers(0, 32000, 512))
        return list(tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=labels))
    side.row("softmax cross entropy, both ways [512,32000], by a step", op(cross_entropy))

    def on_matrix(f):
        return op(lambda variable: [f(variable(rng.standard_normal((4096, 1024), dtype=np.float32)))])
    for name, axis in (("row", 1), ("column", 0)):
        side.row(f"{name} sums [4096,1024]", on_matrix(lambda x, axis=axis: tf.raw_ops.Sum(input=x, axis=axis)))
        side.row(f"{name} argmax [4096,1024]", on_matrix(lambda x, axis=axis: tf.raw_ops.ArgMax(input=x, dimension=axis)))
    for n in (1_000_000, 10_000_000):
        def addition(variable, n=n):
            x = variable(rng.standard_normal(n, dtype=np.float32))
            return [tf.raw_ops.AddV2(x=x, y=x)]

        def squared(variable, n=n):
            x = variable(rng.standard_normal(n, dtype=np.float32))
            return [tf.raw_ops.SquaredDifference(x=x, y=x)]
        side.row(f"addition {n}, by a step", op(addition))
        side.row(f"square of a difference {n}, by a step", op(squared))


def ops():
    """The rows of tensorflow_ops.py, of two sizes."""
    from tensorflow_ops import ROWS, Inputs
    tf1.disable_eager_execution()

    def outputs_of(build, n):
        def outputs(variable):
            result = build(Inputs(n, variable))
            return list(result) if isinstance(result, (list, tuple)) else [result]
        return outputs
    for n in (1_000, 1_000_000):
        for name, build in ROWS.items():
            side.row(f"{name} {n}", on_variables(outputs_of(build, n)))


def cluster():
    """Tasks in processes of their own; as many as fit into a small machine."""
    from tensorflow_cluster import Cluster
    for kind in ("scalar", "dense", "sparse"):
        for n in (1, 4, 8):
            side.measured(f"null step, {kind}, {n} x {n}", lambda kind=kind, n=n: Cluster(kind, n, n, threads))


{"dispatch": dispatch, "training": training, "input": input_pipeline, "kernels": kernels, "ops": ops, "cluster": cluster}[suite]()
side.serve()
