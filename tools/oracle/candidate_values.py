"""Prints what TensorFlow draws and computes for tests/ops/candidates_test.cpp and tests/ops/sampled_losses_test.cpp.

venv/bin/python tools/oracle/candidate_values.py
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

SEEDS = {"seed": 301, "seed2": 17}
CLASSES = np.array([[0, 2], [5, 1], [3, 3]], np.int64)


def show(name, build, runs=2):
    """The results of the first runs of a session, on one thread."""
    one_thread = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default():
        outputs = build()
        with tf.compat.v1.Session(config=one_thread) as session:
            for i in range(runs):
                print(f"{name}, run {i}:", *(np.asarray(x).ravel().tolist() for x in session.run(outputs)), sep="\n    ")


def draws():
    logits = np.array([[0.5, -1, 2, 0, -np.inf], [1, 1, 1, 1, 1], [-3, 4, 0, np.nan, 2]])
    for dtype in (np.float32, np.float64):
        show("Multinomial", lambda: [tf.raw_ops.Multinomial(logits=logits.astype(dtype), num_samples=7, **SEEDS)])
    common = {"true_classes": CLASSES, "num_true": 2, **SEEDS}
    for op in ("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler"):
        sampler = getattr(tf.raw_ops, op)
        for unique, range_max in ((True, 7), (False, 7), (False, 1000)):
            attrs = {"num_sampled": 6, "unique": unique, "range_max": range_max}
            show(f"{op} {attrs}", lambda: list(sampler(**attrs, **common)))
    weights = {"unigrams": [1.0, 0.5, 4.0, 0.0, 3.0], "num_reserved_ids": 2, "distortion": 0.75, "range_max": 7}
    for unique in (True, False):
        attrs = {"num_sampled": 4, "unique": unique, **weights}
        show(f"Fixed {attrs}", lambda: list(tf.raw_ops.FixedUnigramCandidateSampler(**attrs, **common)))


def losses():
    classes, dim, batch = 7, 3, 4
    weights = ((np.arange(classes * dim) * 5 % 13 - 6) / 8).reshape(classes, dim)
    biases = (np.arange(classes) % 3 - 1) / 4
    inputs = ((np.arange(batch * dim) * 7 % 11 - 5) / 4).reshape(batch, dim)
    labels = np.array([[0, 2], [5, 1], [3, 3], [6, 4]], np.int64)
    sampled = np.array([2, 6, 3, 2, 0], np.int64)
    true_counts = (np.arange(batch * 2) + 1).reshape(batch, 2) / 8
    counts = np.array([0.5, 1.5, 0.25, 0.5, 2])
    for name, loss, options in (
        ("nce_loss", tf.nn.nce_loss, {}),
        ("nce_loss without hits", tf.nn.nce_loss, {"remove_accidental_hits": True}),
        ("sampled_softmax_loss", tf.nn.sampled_softmax_loss, {}),
        ("sampled_softmax_loss with hits", tf.nn.sampled_softmax_loss, {"remove_accidental_hits": False}),
    ):
        variables = [tf.constant(x, tf.float64) for x in (weights, biases, inputs)]
        with tf.GradientTape() as tape:
            tape.watch(variables)
            values = loss(
                weights=variables[0],
                biases=variables[1],
                inputs=variables[2],
                labels=labels,
                num_sampled=5,
                num_classes=classes,
                num_true=2,
                sampled_values=(sampled, tf.constant(true_counts), tf.constant(counts)),
                **options,
            )
        slopes = [tf.convert_to_tensor(x) for x in tape.gradient(values, variables)]
        print(f"{name}:", *(x.numpy().ravel().tolist() for x in [values, *slopes]), sep="\n    ")


draws()
losses()
