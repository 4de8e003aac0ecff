"""Trains from record files: written once, then read, parsed, shuffled and batched while the model trains:
  13_record_pipeline.py [FOLDER]
The folder keeps the files; without one they go at the end. The program tells how long training waited for its input.
"""

import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

PER_FILE, STRETCH = 1000, 28
FEATURES = {"pixels": tf.io.FixedLenFeature([64], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}


def write_records(folder):
    rows = np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
    paths = []
    for begin in range(0, len(rows), PER_FILE):
        paths.append(str(folder / f"digits-{begin // PER_FILE}.tfrecord"))
        if Path(paths[-1]).exists():
            continue
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for row in rows[begin : begin + PER_FILE]:
                pixels = tf.train.Feature(float_list=tf.train.FloatList(value=row[:64] / 16))
                label = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(row[64])]))
                features = tf.train.Features(feature={"pixels": pixels, "label": label})
                writer.write(tf.train.Example(features=features).SerializeToString())
    return paths


def parsed(record):
    features = tf.io.parse_single_example(record, FEATURES)
    return features["pixels"], features["label"]


def run(folder):
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(1)
    rows = (
        tf.data.Dataset.from_tensor_slices(write_records(folder))
        .shuffle(16)
        .interleave(tf.data.TFRecordDataset, cycle_length=4)
        .repeat(6)
        .shuffle(500)
        .map(parsed, num_parallel_calls=2)
        .batch(64)
        .prefetch(8)
    )
    model = keras.Sequential([
        keras.Input((64,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(10),
    ])
    model.compile(
        keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    waited = total = right = 0
    begin = time.perf_counter()
    for i, (images, labels) in enumerate(rows, 1):
        got = time.perf_counter()
        right += model.train_on_batch(images, labels)[1] / STRETCH
        end = time.perf_counter()
        if i > 1:  # the first batch waits for the records to choose from
            waited += got - begin
            total += end - begin
        begin = end
        if i % STRETCH == 0:
            print(f"{i:4} batches: {100 * right:.1f} % right")
            last, right = right, 0
    print(f"waited for input {100 * waited / total:.1f} % of the time")
    return last > 0.85


if len(sys.argv) > 1:
    is_good = run(Path(sys.argv[1]))
else:
    with tempfile.TemporaryDirectory() as folder:
        is_good = run(Path(folder))
sys.exit(not is_good)
