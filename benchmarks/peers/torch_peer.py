"""PyTorch's side of a contest. usage: torch_peer.py training|kernels THREADS"""
import os
import sys

suite, threads = sys.argv[1], int(sys.argv[2])
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from contestant import Contestant  # noqa: E402

torch.set_num_threads(threads)
torch.manual_seed(1)
side = Contestant()

SHAPES = {"tiny": (8, 16), "mlp": (128, 784), "lenet": (64, 1, 28, 28)}


def model(name):
    if name == "tiny":
        return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 10))
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


def training_step(name, optimizer):
    def prepare():
        net, x = model(name), torch.randn(SHAPES[name])
        y = torch.randint(0, 10, (x.shape[0],))
        if x.dim() == 4:
            net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        update = (torch.optim.Adam(net.parameters(), 1e-4) if optimizer == "adam"
                  else torch.optim.SGD(net.parameters(), 0.01))

        def step():
            update.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            update.step()
            return loss.item()
        return step
    return prepare


def kernels():
    torch.set_grad_enabled(False)
    for n in (100_000,):
        for name, f in (("exp", torch.exp), ("tanh", torch.tanh), ("sigmoid", torch.sigmoid)):
            def elementary(f=f, n=n):
                x, y = torch.randn(n), torch.empty(n)
                return lambda: f(x, out=y)
            side.row(f"{name} {n}", elementary)

    def images(channels_last=True):
        x = torch.randn(32, 64, 56, 56)
        return x.contiguous(memory_format=torch.channels_last) if channels_last else x

    for suffix, channels_last in ((", channels last", True), ("", False)):
        def max_pool(channels_last=channels_last):
            x = images(channels_last)
            return lambda: F.max_pool2d(x, 2)
        side.row("max pool 2x2 [32,56,56,64]" + suffix, max_pool)

        def batch_norm(channels_last=channels_last):
            x = images(channels_last)
            scale, offset, mean, variance = torch.ones(64), torch.zeros(64), torch.zeros(64), torch.ones(64)
            return lambda: torch.native_batch_norm(x, scale, offset, mean, variance, True, 0.1, 1e-3)
        side.row("batch norm [32,56,56,64]" + suffix, batch_norm)

    def cross_entropy():
        x, y = torch.randn(512, 32000), torch.randint(0, 32000, (512,))
        weight = torch.tensor(512.0)

        def step():
            logs = torch.log_softmax(x, 1)
            F.nll_loss(logs, y)
            g = torch.ops.aten.nll_loss_backward(torch.tensor(1.0), logs, y, None, 1, -100, weight)
            torch.ops.aten._log_softmax_backward_data(g, logs, 1, torch.float32)
        return step
    side.row("softmax cross entropy, both ways [512,32000]", cross_entropy)

    def on_matrix(f):
        def prepare():
            x = torch.randn(4096, 1024)
            return lambda: f(x)
        return prepare
    side.row("row sums [4096,1024]", on_matrix(lambda x: x.sum(1)))
    side.row("column sums [4096,1024]", on_matrix(lambda x: x.sum(0)))
    side.row("row argmax [4096,1024]", on_matrix(lambda x: x.argmax(1)))
    side.row("column argmax [4096,1024]", on_matrix(lambda x: x.argmax(0)))

    def transpose():
        x = torch.randn(4096, 4096)
        y = torch.empty(4096, 4096)
        return lambda: y.copy_(x.t())
    side.row("transpose [4096,4096]", transpose)

    def to_nchw():
        x, y = images(), torch.empty(32, 64, 56, 56)
        return lambda: y.copy_(x)
    side.row("NHWC to NCHW [32,56,56,64]", to_nchw)

    def gather():
        table, indices = torch.randn(250_000, 64), torch.randint(0, 250_000, (4096,))
        y = torch.empty(4096, 64)
        return lambda: torch.index_select(table, 0, indices, out=y)
    side.row("gather 4096 of [250000,64]", gather)

    def scatter():
        table, indices = torch.randn(250_000, 64), torch.randint(0, 250_000, (4096,))
        x = torch.randn(4096, 64)
        return lambda: table.index_add_(0, indices, x)
    side.row("scatter add 4096 to [250000,64]", scatter)

    for n in (1_000_000, 10_000_000):
        def addition(n=n):
            x = torch.randn(n)
            return lambda: x + x
        side.row(f"addition {n}", addition)

        def squared(n=n):
            x = torch.randn(n)
            return lambda: (x - x).square_()
        side.row(f"square of a difference {n}", squared)


if suite == "training":
    for row in ("tiny sgd", "mlp sgd", "mlp adam", "lenet sgd"):
        side.row(row, training_step(*row.split()))
else:
    kernels()
side.serve()
