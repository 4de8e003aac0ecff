"""Fits y = 3 x - 2 by gradient descent on the mean squared error."""

import sys

import keras
import numpy as np


def log(epoch, logs):
    if epoch % 40 == 0:
        print(f"step {epoch:3}  loss {logs['loss']:.5f}")


x = np.arange(100, dtype=np.float32) / 50 - 1
y = 3 * x - 2 + 0.1 * np.sin(37 * x)
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(keras.optimizers.SGD(0.2), "mse")
model.fit(x, y, batch_size=100, epochs=200, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=log)])
slope, offset = (weight.item() for weight in model.get_weights())
print(f"y = {slope:.3f} x + {offset:.3f}")
sys.exit(not (abs(slope - 3) < 0.1 and abs(offset + 2) < 0.1))
