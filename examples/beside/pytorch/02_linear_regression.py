"""Fits y = 3 x - 2 by gradient descent on the mean squared error."""

import sys

import torch

x = torch.arange(100) / 50 - 1
y = 3 * x - 2 + 0.1 * torch.sin(37 * x)
slope = torch.tensor(0.0, requires_grad=True)
offset = torch.tensor(0.0, requires_grad=True)
optimizer = torch.optim.SGD([slope, offset], lr=0.2)
for i in range(200):
    loss = torch.nn.functional.mse_loss(x * slope + offset, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 40 == 0:
        print(f"step {i:3}  loss {loss.item():.5f}")
print(f"y = {slope.item():.3f} x + {offset.item():.3f}")
sys.exit(not (abs(slope.item() - 3) < 0.1 and abs(offset.item() + 2) < 0.1))
