"""Learns a text letter by letter with a recurrent network, and writes some of its own:
  11_character_lstm.py [FILE [STEPS]]
Without a file it learns a verse by heart.
"""

import math
import sys
from pathlib import Path

import torch
from torch import nn

STRETCH, BATCH = 32, 16
VERSE = (
    "The curfew tolls the knell of parting day, the lowing herd wind slowly o'er the lea, the plowman homeward plods "
    "his weary way, and leaves the world to darkness and to me. "
)

text = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else VERSE
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 200
alphabet = sorted(set(text))
letters = len(alphabet)
numbers = torch.tensor([alphabet.index(letter) for letter in text])


def stretches():
    """Each letter and its successor, of `BATCH` stretches, evenly spread."""
    for step in range(steps):
        at = torch.arange(BATCH)[:, None] * len(text) // BATCH + step * STRETCH + torch.arange(STRETCH + 1)
        ids = numbers[at % len(text)]
        yield ids[:, :-1], ids[:, 1:]


def encoded(ids):
    return nn.functional.one_hot(ids, letters).float()


torch.manual_seed(1)
lstm, out = nn.LSTM(letters, 96, batch_first=True), nn.Linear(96, letters)
parameters = [*lstm.parameters(), *out.parameters()]
optimizer = torch.optim.Adam(parameters, lr=5e-3)
for x, y in stretches():
    loss = nn.functional.cross_entropy(out(lstm(encoded(x))[0]).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 5.0)
    optimizer.step()

letter, state, wrote = torch.tensor([letters - 1]), None, ""
with torch.no_grad():
    for _ in range(160):
        output, state = lstm(encoded(letter), state)
        letter = torch.distributions.Categorical(logits=2.0 * out(output)).sample()
        wrote += alphabet[letter.item()]
print(f"{letters} letters, loss {loss.item():.3f} of ln {letters} = {math.log(letters):.3f}\n{wrote}")
