"""Trains a model on handwritten digits: by default on the 1,797 small ones that come along, with --data on MNIST."""

import argparse
import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def read_mnist(directory, part):
    with gzip.open(f"{directory}/{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28) / np.float32(255)
    with gzip.open(f"{directory}/{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))


def read_digits():
    rows = np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
    rows = torch.from_numpy(rows)
    return random_split(TensorDataset(rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()), [0.8, 0.2])


def model_of(name):
    if name == "softmax":
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding="same"),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding="same"),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LazyLinear(128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


parser = argparse.ArgumentParser(description="Trains a model on handwritten digits and prints its accuracy on others.")
parser.add_argument("--data", help="directory of the MNIST IDX files, gzip-compressed")
parser.add_argument("--trace", help="file to write the Chrome trace of one step to")
parser.add_argument("--model", choices=["softmax", "mlp", "conv"], default="conv")
parser.add_argument("--epochs", type=int, default=0, help="times to go through the training images")
parser.add_argument("--batch", type=int, default=64, help="images per step")
parser.add_argument("--seed", type=int, default=1, help="of variables, order and split")
parser.add_argument("--threads", type=int, default=0, help="0 for all cores")
flags = parser.parse_args()
if flags.threads:
    torch.set_num_threads(flags.threads)
torch.manual_seed(flags.seed)
if flags.data:
    train_set, test_set = read_mnist(flags.data, "train"), read_mnist(flags.data, "t10k")
else:
    train_set, test_set = read_digits()
epochs = flags.epochs or (8 if flags.data else 40)
batches = DataLoader(train_set, batch_size=flags.batch, shuffle=True, drop_last=True)
model = model_of(flags.model)
model(train_set[0][0][None])  # gives the lazy layers their shapes
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(batches))


def step(images, labels):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss.item()


for epoch in range(epochs):
    for images, labels in batches:
        loss = step(images, labels)
    print(f"epoch {epoch + 1}  loss {loss:.4f}")
if flags.trace:
    with torch.profiler.profile() as profile:
        step(*next(iter(batches)))
    profile.export_chrome_trace(flags.trace)
    print(f"wrote {flags.trace}")
model.eval()
hits = 0
with torch.no_grad():
    for images, labels in DataLoader(test_set, batch_size=1000):
        hits += (model(images).argmax(1) == labels).sum().item()
print(f"test accuracy {hits / len(test_set):.4f}")
