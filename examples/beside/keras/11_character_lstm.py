"""Learns a text letter by letter with a recurrent network, and writes some of its own:
  11_character_lstm.py [FILE [STEPS]]
Without a file it learns a verse by heart.
"""

import math
import sys
from pathlib import Path

import keras
import numpy as np

STRETCH, BATCH = 32, 16
VERSE = (
    "The curfew tolls the knell of parting day, the lowing herd wind slowly o'er the lea, the plowman homeward plods "
    "his weary way, and leaves the world to darkness and to me. "
)

text = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else VERSE
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 200
alphabet = sorted(set(text))
letters = len(alphabet)
numbers = np.array([alphabet.index(letter) for letter in text])


def stretches():
    """Each letter and its successor, of `BATCH` stretches, evenly spread."""
    for step in range(steps):
        at = np.arange(BATCH)[:, None] * len(text) // BATCH + step * STRETCH + np.arange(STRETCH + 1)
        ids = numbers[at % len(text)]
        yield ids[:, :-1], ids[:, 1:]


keras.utils.set_random_seed(1)
lstm, out = keras.layers.LSTM(96, return_sequences=True), keras.layers.Dense(letters)
ids = keras.Input((STRETCH,), dtype="int32")
model = keras.Model(ids, out(lstm(keras.ops.one_hot(ids, letters))))
model.compile(
    keras.optimizers.Adam(5e-3, global_clipnorm=5.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
)
for x, y in stretches():
    loss = model.train_on_batch(x, y)

letter, state, wrote = np.array([letters - 1]), [np.zeros((1, 96), np.float32)] * 2, ""
for _ in range(160):
    output, state = lstm.cell(keras.ops.one_hot(letter, letters), state)
    letter = keras.random.categorical(out(output) * 2.0, 1)[0]
    wrote += alphabet[int(letter[0])]
print(f"{letters} letters, loss {loss:.3f} of ln {letters} = {math.log(letters):.3f}\n{wrote}")
