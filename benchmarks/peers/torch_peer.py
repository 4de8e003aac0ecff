"""PyTorch's side of a contest: eager, and Adam as one function per parameter group (not fused=True).

Kernels write into memory that was given to them before, by `out=`, but in rows whose names end in "by a step".

usage: torch_peer.py training|kernels|gpu THREADS
"""
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

SHAPES = {"tiny": (8, 16), "mlp": (128, 784), "lenet": (64, 1, 28, 28), "lstm": (32, 32, 256)}


class LastOfLstm(nn.Module):
    """Of x [time, batch, inputs]."""
    def __init__(self):
        super().__init__()
        self.recurrent, self.out = nn.LSTM(256, 256), nn.Linear(256, 10)

    def forward(self, x):
        return self.out(self.recurrent(x)[0][-1])


def model(name):
    if name == "tiny":
        return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 10))
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    if name == "lstm":
        return LastOfLstm()
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


def training_step(name, optimizer, device="cpu"):
    def prepare():
        net, x = model(name).to(device), torch.randn(SHAPES[name])
        y = torch.randint(0, 10, (x.shape[0],))
        if x.dim() == 4:
            net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        update = (torch.optim.Adam(net.parameters(), 1e-4) if optimizer == "adam"
                  else torch.optim.SGD(net.parameters(), 0.01))

        def step():
            update.zero_grad()
            loss = F.cross_entropy(net(x.to(device)), y.to(device))
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

    aten = torch.ops.aten

    def images(channels_last=True):
        x = torch.randn(32, 64, 56, 56)
        return x.contiguous(memory_format=torch.channels_last) if channels_last else x

    for suffix, channels_last in (("", True), (", peer channels first", False)):
        def max_pool(channels_last=channels_last):
            x = images(channels_last)
            y, positions = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
            return lambda: aten.max_pool2d_with_indices.out(x, [2, 2], [2, 2], out=y, indices=positions)
        side.row("max pool 2x2 [32,56,56,64]" + suffix, max_pool)

        def batch_norm(channels_last=channels_last):
            x = images(channels_last)
            scale, offset, mean, variance = torch.ones(64), torch.zeros(64), torch.zeros(64), torch.ones(64)
            y, save_mean, save_inverse = torch.empty_like(x), torch.empty(64), torch.empty(64)
            return lambda: aten.native_batch_norm.out(x, scale, offset, mean, variance, True, 0.1, 1e-3, out=y,
                                                      save_mean=save_mean, save_invstd=save_inverse)
        side.row("batch norm [32,56,56,64]" + suffix, batch_norm)

    def cross_entropy():
        x, y = torch.randn(512, 32000), torch.randint(0, 32000, (512,))
        logs, slopes, gradient = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
        loss, weight, one = torch.empty(()), torch.empty(()), torch.tensor(1.0)

        def step():
            aten._log_softmax.out(x, 1, False, out=logs)
            aten.nll_loss_forward.output(logs, y, None, 1, -100, output=loss, total_weight=weight)
            aten.nll_loss_backward.grad_input(one, logs, y, None, 1, -100, weight, grad_input=slopes)
            aten._log_softmax_backward_data.out(slopes, logs, 1, torch.float32, out=gradient)
        return step
    side.row("softmax cross entropy, both ways [512,32000]", cross_entropy)

    def on_matrix(f, axis):
        def prepare():
            x = torch.randn(4096, 1024)
            y = f(x, axis)
            return lambda: f(x, axis, out=y)
        return prepare
    side.row("row sums [4096,1024]", on_matrix(torch.sum, 1))
    side.row("column sums [4096,1024]", on_matrix(torch.sum, 0))
    side.row("row argmax [4096,1024]", on_matrix(torch.argmax, 1))
    side.row("column argmax [4096,1024]", on_matrix(torch.argmax, 0))

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
            x, y = torch.randn(n), torch.empty(n)
            return lambda: torch.add(x, x, out=y)
        side.row(f"addition {n}", addition)

        def squared(n=n):
            x, y = torch.randn(n), torch.empty(n)
            return lambda: torch.sub(x, x, out=y).square_()
        side.row(f"square of a difference {n}", squared)

        def allocated_addition(n=n):
            x = torch.randn(n)
            return lambda: x + x
        side.row(f"addition {n}, by a step", allocated_addition)

        def allocated_squared(n=n):
            x = torch.randn(n)
            return lambda: (x - x).square_()
        side.row(f"square of a difference {n}, by a step", allocated_squared)


def gpu():
    """Operands lie on the GPU, and a row ends when it is done. The training steps copy their batch there."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for row in ("tiny sgd", "mlp sgd", "mlp adam", "lenet sgd"):
        side.row(row, training_step(*row.split(), device="cuda"))

    def row(name, prepare):
        def prepared():
            with torch.no_grad():
                compute = prepare()

            def step():
                with torch.no_grad():
                    compute()
                torch.cuda.synchronize()
            return step
        side.row(name, prepared)

    def normal(*shape):
        return torch.randn(*shape, device="cuda")

    def images():
        return normal(32, 64, 56, 56).contiguous(memory_format=torch.channels_last)

    def numbers():
        return torch.randint(0, 250_000, (4096,), device="cuda")

    def with_operands(f, *make):
        def prepare():
            operands = [each() for each in make]
            return lambda: f(*operands)
        return prepare

    def square():
        return normal(4096, 4096)

    def matrix():
        return normal(4096, 1024)

    def table():
        return normal(250_000, 64)

    def long():
        return normal(10_000_000)

    row("product [4096,4096]", with_operands(torch.matmul, square, square))
    row("convolution 3x3 [32,56,56,64] to 64",
        with_operands(lambda x, w: F.conv2d(x, w, padding=1), images,
                      lambda: normal(64, 64, 3, 3).contiguous(memory_format=torch.channels_last)))
    row("max pool 2x2 [32,56,56,64]", with_operands(lambda x: F.max_pool2d(x, 2), images))
    row("batch norm [32,56,56,64]",
        with_operands(lambda x, scale, offset: F.batch_norm(x, None, None, scale, offset, True), images,
                      lambda: normal(64), lambda: normal(64)))
    row("softmax [512,32000]", with_operands(lambda x: F.softmax(x, 1), lambda: normal(512, 32000)))
    row("row sums [4096,1024]", with_operands(lambda x: x.sum(1), matrix))
    row("column sums [4096,1024]", with_operands(lambda x: x.sum(0), matrix))
    row("transpose [4096,4096]", with_operands(lambda x: x.t().contiguous(), square))
    row("gather 4096 of [250000,64]", with_operands(lambda x, i: torch.index_select(x, 0, i), table, numbers))
    row("scatter add 4096 to [250000,64]",
        with_operands(lambda x, i, y: x.index_add_(0, i, y), table, numbers, lambda: normal(4096, 64)))
    row("addition 10000000", with_operands(lambda x: x + x, long))
    row("tanh 10000000", with_operands(torch.tanh, long))


def cluster():
    from torch_cluster import AllReduce
    for members in (2, 3):
        for size, count_bytes in (("1 MB", 1 << 20), ("100 MB", 100 << 20)):
            side.measured(f"all-reduce of {members}, {size}",
                          lambda members=members, count_bytes=count_bytes: AllReduce(members, count_bytes, threads))


if suite == "training":
    for row in ("tiny sgd", "mlp sgd", "mlp adam", "lenet sgd", "lstm sgd"):
        side.row(row, training_step(*row.split()))
elif suite == "gpu":
    gpu()
elif suite == "cluster":
    cluster()
else:
    kernels()
side.serve()
