"""Reads handwritten digits in one process."""

from pathlib import Path

import keras
import numpy as np

rows = np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
images, labels = rows[:, :64].reshape(-1, 8, 8, 1) / 16, rows[:, 64]
split = len(rows) * 4 // 5
keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.layers.Flatten(),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dense(10),
])
model.compile(
    keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(images[:split], labels[:split], batch_size=64, epochs=20, verbose=0)
_, accuracy = model.evaluate(images[split:], labels[split:], verbose=0)
print(f"test accuracy {accuracy:.4f}")
