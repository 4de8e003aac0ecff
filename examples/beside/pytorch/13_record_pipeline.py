"""Trains from files of digits: written once, then read, shuffled and batched by processes while the model trains:
  13_record_pipeline.py [FOLDER]
The folder keeps the files; without one they go at the end. The program tells how long training waited for its input.
"""

import itertools
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

PER_FILE, STRETCH = 1000, 28


def write_files(folder):
    rows = torch.from_numpy(
        np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
    )
    paths = []
    for i, part in enumerate(rows.split(PER_FILE)):
        paths.append(folder / f"digits-{i}.pt")
        if not paths[-1].exists():
            torch.save({"pixels": part[:, :64] / 16, "label": part[:, 64].long()}, paths[-1])
    return paths


def dataset_of(path):
    part = torch.load(path, mmap=True)
    return TensorDataset(part["pixels"], part["label"])


def run(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    rows = ConcatDataset([dataset_of(path) for path in write_files(folder)])
    batches = DataLoader(rows, batch_size=64, shuffle=True, num_workers=2, prefetch_factor=4, persistent_workers=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    waited = total = right = 0
    begin = time.perf_counter()
    for i, (images, labels) in enumerate(itertools.chain.from_iterable(batches for _ in range(6)), 1):
        got = time.perf_counter()
        logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == labels).float().mean().item() / STRETCH
        end = time.perf_counter()
        if i > 1:  # the first batch waits for the processes to start
            waited += got - begin
            total += end - begin
        begin = end
        if i % STRETCH == 0:
            print(f"{i:4} batches: {100 * right:.1f} % right")
            last, right = right, 0
    print(f"waited for input {100 * waited / total:.1f} % of the time")
    return last > 0.85


if __name__ == "__main__":
    if len(sys.argv) > 1:
        is_good = run(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            is_good = run(Path(folder))
    sys.exit(not is_good)
