"""JAX's side of a contest. usage: jax_peer.py training THREADS"""
import os
import sys

threads = int(sys.argv[2])
os.environ["OMP_NUM_THREADS"] = str(threads)
os.environ["JAX_PLATFORMS"] = "cpu"
if threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

from functools import partial  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from contestant import Contestant  # noqa: E402

rng = np.random.default_rng(1)


def model(name):
    weights = []

    def variable(*shape):
        fan_in = max(1, int(np.prod(shape[:-1])))
        weights.append(jnp.asarray(rng.standard_normal(shape, dtype=np.float32) * (2 / fan_in) ** 0.5))
        return len(weights) - 1

    def zeros(size):
        weights.append(jnp.zeros([size], jnp.float32))
        return len(weights) - 1

    def dense(inputs, outputs):
        w, b = variable(inputs, outputs), zeros(outputs)
        return lambda p, v: v @ p[w] + p[b]

    def conv(window, inputs, outputs):
        w, b = variable(window, window, inputs, outputs), zeros(outputs)
        numbers = ("NHWC", "HWIO", "NHWC")
        return lambda p, v: jax.nn.relu(
            lax.conv_general_dilated(v, p[w], (1, 1), "SAME", dimension_numbers=numbers) + p[b])

    def pool(v):
        return lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    relu = jax.nn.relu
    if name == "tiny":
        a, b = dense(16, 16), dense(16, 10)
        return weights, (8, 16), lambda p, v: b(p, relu(a(p, v)))
    if name == "mlp":
        a, b, c = dense(784, 512), dense(512, 512), dense(512, 10)
        return weights, (128, 784), lambda p, v: c(p, relu(b(p, relu(a(p, v)))))
    a, b, c, d = conv(5, 1, 32), conv(5, 32, 64), dense(3136, 512), dense(512, 10)
    return weights, (64, 28, 28, 1), lambda p, v: d(p, relu(c(p, pool(b(p, pool(a(p, v)))).reshape(64, 3136))))


def training_step(name, optimizer):
    def prepare():
        weights, shape, forward = model(name)
        x = jnp.asarray(rng.standard_normal(shape, dtype=np.float32))
        y = jnp.asarray(rng.integers(0, 10, shape[0]))

        def loss_of(p):
            return -jnp.take_along_axis(jax.nn.log_softmax(forward(p, x)), y[:, None], 1).mean()

        @partial(jax.jit, donate_argnums=(0,))
        def update(state):
            p, m, v = state
            loss, g = jax.value_and_grad(loss_of)(p)
            if optimizer == "sgd":
                p = [a - 0.01 * b for a, b in zip(p, g)]
            else:
                m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
                v = [0.999 * a + 0.001 * b * b for a, b in zip(v, g)]
                p = [a - 1e-4 * b / (jnp.sqrt(c) + 1e-8) for a, b, c in zip(p, m, v)]
            return (p, m, v), loss

        moments = [jnp.zeros_like(w) for w in weights] if optimizer == "adam" else []
        state = [(weights, moments, [jnp.array(m) for m in moments])]

        def step():
            state[0], loss = update(state[0])
            loss.block_until_ready()
        return step
    return prepare


side = Contestant()
for row in ("tiny sgd", "mlp sgd", "mlp adam", "lenet sgd"):
    side.row(row, training_step(*row.split()))
side.serve()
