"""Reads handwritten digits in one process."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
images, labels = torch.from_numpy(rows[:, :64]).reshape(-1, 1, 8, 8) / 16, torch.from_numpy(rows[:, 64]).long()
split = len(rows) * 4 // 5
torch.manual_seed(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
batches = DataLoader(TensorDataset(images[:split], labels[:split]), batch_size=64, shuffle=True, drop_last=True)
for _ in range(20):
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    accuracy = (model(images[split:]).argmax(1) == labels[split:]).float().mean().item()
print(f"test accuracy {accuracy:.4f}")
