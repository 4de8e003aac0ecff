"""Learns from a stream that does not stay as it is, through a queue that a thread fills."""

import math
import queue
import sys
import threading

import torch

FEATURES, ROWS, BATCH = 8, 32000, 32
STEPS = ROWS // BATCH
STRETCH = STEPS // 8


def observe(stream):
    random = torch.Generator().manual_seed(1)
    for i in range(ROWS):
        turn = 2 * math.pi * i / ROWS
        x = torch.randn(FEATURES, generator=random)
        stream.put((x, math.cos(turn) * x[0] + math.sin(turn) * x[1] > 0.2 * torch.randn((), generator=random)))


def share_right(logits, y):
    return ((logits > 0) == (y > 0.5)).float().mean().item()


stream = queue.Queue(256)
threading.Thread(target=observe, args=(stream,), daemon=True).start()
weights = torch.zeros(FEATURES, requires_grad=True)
kept = torch.zeros(FEATURES)
optimizer = torch.optim.SGD([weights], lr=0.5)
now = then = 0
for i in range(1, STEPS + 1):
    x, y = (torch.stack(column).float() for column in zip(*(stream.get() for _ in range(BATCH))))
    logits = x @ weights
    now += share_right(logits, y) / STRETCH  # of rows that the model has not learned from yet
    then += share_right(x @ kept, y) / STRETCH
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i == STEPS // 4:
        kept = weights.detach().clone()
    if i % STRETCH == 0:
        of_then = f", {100 * then:4.1f} % with what was known after {ROWS // 4}" if i > STEPS // 4 else ""
        print(f"{i * BATCH:6} rows: {100 * now:4.1f} % right{of_then}")
        last, now, then = now, 0, 0
sys.exit(last <= 0.85)
