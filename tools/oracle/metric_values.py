#!/usr/bin/env python3
"""Prints TensorFlow's streaming metrics of 100,000 rows in 100 batches, as the table of tests/train/metrics_test.cpp.

The rows come from a linear congruential generator, which the test has too. Scores are multiples of 2^-24, weights
multiples of 1/4, so both programs have the same bits.

Usage: PYTHON tools/oracle/metric_values.py     (with TensorFlow, tools/oracle/requirements.txt)
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

BATCHES, ROWS, CLASSES = 100, 1000, 10


class Draws:
    """24 random bits at a time."""

    def __init__(self):
        self.state = 1

    def __call__(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.state >> 8


def batch(draw):
    truth, score, label, predicted, weight = [], [], [], [], []
    class_scores = np.zeros((ROWS, CLASSES), np.float32)
    for i in range(ROWS):
        at = draw()
        truth.append(at + draw() > 1 << 24)
        score.append(at / 2**24)
        label.append(draw() % CLASSES)
        other = draw()
        predicted.append(label[-1] if other % 4 else other // 4 % CLASSES)
        weight.append(draw() % 8 / 4)
        for k in range(CLASSES):
            class_scores[i, k] = draw() / 2**24
        if draw() % 2:
            class_scores[i, label[-1]] += np.float32(0.5)
    return (np.array(truth), np.array(score, np.float32), np.array(label, np.int64), np.array(predicted, np.int64),
            np.array(weight, np.float32), class_scores)


def main():
    kinds = [tf.bool, tf.float32, tf.int64, tf.int64, tf.float32]
    feeds = [tf.compat.v1.placeholder(kind, [None]) for kind in kinds]
    feeds.append(tf.compat.v1.placeholder(tf.float32, [None, CLASSES]))
    truth, score, label, predicted, weight, class_scores = feeds
    real, high = tf.cast(truth, tf.float32), score > 0.5
    of = tf.compat.v1.metrics
    made = {}
    for suffix, weights in (("", None), ("_weighted", weight)):
        made["mean" + suffix] = of.mean(score, weights)
        made["accuracy" + suffix] = of.accuracy(label, predicted, weights)
        made["mean_squared_error" + suffix] = of.mean_squared_error(real, score, weights)
        made["root_mean_squared_error" + suffix] = of.root_mean_squared_error(real, score, weights)
        made["precision" + suffix] = of.precision(truth, high, weights)
        made["recall" + suffix] = of.recall(truth, high, weights)
        made["auc_roc" + suffix] = of.auc(truth, score, weights)
        made["auc_pr" + suffix] = of.auc(truth, score, weights, curve="PR", summation_method="trapezoidal")
        made["auc_roc_7" + suffix] = of.auc(truth, score, weights, num_thresholds=7)
        made["recall_at_1" + suffix] = of.recall_at_k(label, class_scores, 1, weights=weights)
        made["recall_at_3" + suffix] = of.recall_at_k(label, class_scores, 3, weights=weights)
        made["mean_iou" + suffix] = of.mean_iou(label, predicted, CLASSES, weights)
    draw = Draws()
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.local_variables_initializer())
        for _ in range(BATCHES):
            session.run([update for _, update in made.values()], dict(zip(feeds, batch(draw))))
        values = session.run({name: value for name, (value, _) in made.items()})
    for name in sorted(values):
        print(f'    {{"{name}", {float(values[name]):.9g}}},')


if __name__ == "__main__":
    main()
