"""Trains a model on handwritten digits: by default on the 1,797 small ones that come along, with --data on MNIST."""

import argparse
import gzip
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def read_mnist(directory, part):
    with gzip.open(f"{directory}/{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28, 1) / np.float32(255)
    with gzip.open(f"{directory}/{part}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


def read_digits(seed):
    rows = np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
    np.random.default_rng(seed).shuffle(rows)
    images, labels = rows[:, :64].reshape(-1, 8, 8, 1) / 16, rows[:, 64]
    split = len(rows) * 4 // 5
    return (images[:split], labels[:split]), (images[split:], labels[split:])


def layers_of(model):
    if model == "softmax":
        return [layers.Flatten(), layers.Dense(10)]
    if model == "mlp":
        return [layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dense(10)]
    return [
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.5),
        layers.Dense(10),
    ]


parser = argparse.ArgumentParser(description="Trains a model on handwritten digits and prints its accuracy on others.")
parser.add_argument("--data", help="directory of the MNIST IDX files, gzip-compressed")
parser.add_argument("--trace", help="folder to write the trace of one step to, for TensorBoard")
parser.add_argument("--model", choices=["softmax", "mlp", "conv"], default="conv")
parser.add_argument("--epochs", type=int, default=0, help="times to go through the training images")
parser.add_argument("--batch", type=int, default=64, help="images per step")
parser.add_argument("--seed", type=int, default=1, help="of variables, order and split")
parser.add_argument("--threads", type=int, default=0, help="0 for all cores")
flags = parser.parse_args()
tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
keras.utils.set_random_seed(flags.seed)
if flags.data:
    (x, y), test_set = read_mnist(flags.data, "train"), read_mnist(flags.data, "t10k")
else:
    (x, y), test_set = read_digits(flags.seed)
epochs = flags.epochs or (8 if flags.data else 40)
rate = keras.optimizers.schedules.CosineDecay(2e-3, epochs * -(-len(x) // flags.batch))
model = keras.Sequential(layers_of(flags.model))
model.compile(
    keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(x, y, batch_size=flags.batch, epochs=epochs)
if flags.trace:
    with tf.profiler.experimental.Profile(flags.trace):
        model.train_on_batch(x[: flags.batch], y[: flags.batch])
    print(f"wrote {flags.trace}")
_, accuracy = model.evaluate(*test_set, verbose=0)
print(f"test accuracy {accuracy:.4f}")
