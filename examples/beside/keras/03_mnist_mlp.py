"""Trains a perceptron with one hidden layer on MNIST. Usage: 03_mnist_mlp.py DIRECTORY [EPOCHS]"""

import gzip
import sys

import keras
import numpy as np


def read_mnist(directory, part):
    with gzip.open(f"{directory}/{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28, 1) / np.float32(255)
    with gzip.open(f"{directory}/{part}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


if len(sys.argv) < 2:
    sys.exit("usage: 03_mnist_mlp.py DIRECTORY [EPOCHS]")
train_set, test_set = read_mnist(sys.argv[1], "train"), read_mnist(sys.argv[1], "t10k")
keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.layers.Flatten(),
    keras.layers.Dense(512, activation="relu"),
    keras.layers.Dense(10),
])
model.compile(
    keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(*train_set, batch_size=128, epochs=int(sys.argv[2]) if len(sys.argv) > 2 else 10)
_, accuracy = model.evaluate(*test_set, verbose=0)
print(f"test accuracy {accuracy:.4f}")
