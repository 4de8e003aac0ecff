"""Trains a perceptron with one hidden layer on MNIST. Usage: 03_mnist_mlp.py DIRECTORY [EPOCHS]"""

import gzip
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read_mnist(directory, part):
    with gzip.open(f"{directory}/{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28) / np.float32(255)
    with gzip.open(f"{directory}/{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))


if len(sys.argv) < 2:
    sys.exit("usage: 03_mnist_mlp.py DIRECTORY [EPOCHS]")
train_set, test_set = read_mnist(sys.argv[1], "train"), read_mnist(sys.argv[1], "t10k")
torch.manual_seed(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
    for images, labels in DataLoader(train_set, batch_size=128, shuffle=True, drop_last=True):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}  loss {loss.item():.4f}")
with torch.no_grad():
    images, labels = test_set.tensors
    accuracy = (model(images).argmax(1) == labels).float().mean().item()
print(f"test accuracy {accuracy:.4f}")
