"""Learns from a stream that does not stay as it is, through a queue that a thread fills."""

import math
import queue
import sys
import threading

import keras
import numpy as np

FEATURES, ROWS, BATCH = 8, 32000, 32
STEPS = ROWS // BATCH
STRETCH = STEPS // 8


def observe(stream):
    random = np.random.default_rng(1)
    for i in range(ROWS):
        turn = 2 * math.pi * i / ROWS
        x = random.standard_normal(FEATURES, np.float32)
        stream.put((x, math.cos(turn) * x[0] + math.sin(turn) * x[1] > 0.2 * random.standard_normal()))


def linear_model():
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((FEATURES,)), layer])
    model.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    return model


stream = queue.Queue(256)
threading.Thread(target=observe, args=(stream,), daemon=True).start()
model, kept = linear_model(), linear_model()
now = then = 0
for i in range(1, STEPS + 1):
    x, y = (np.stack(column) for column in zip(*(stream.get() for _ in range(BATCH))))
    y = y.astype(np.float32)[:, None]
    then += kept.test_on_batch(x, y)[1] / STRETCH
    now += model.train_on_batch(x, y)[1] / STRETCH  # of rows that the model has not learned from yet
    if i == STEPS // 4:
        kept.set_weights(model.get_weights())
    if i % STRETCH == 0:
        of_then = f", {100 * then:4.1f} % with what was known after {ROWS // 4}" if i > STEPS // 4 else ""
        print(f"{i * BATCH:6} rows: {100 * now:4.1f} % right{of_then}")
        last, now, then = now, 0, 0
sys.exit(last <= 0.85)
