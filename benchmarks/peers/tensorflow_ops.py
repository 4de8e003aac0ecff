"""The rows of benchmarks/contest_ops.cpp by TensorFlow: name -> function of `Inputs`, which gives the outputs."""

import numpy as np
import tensorflow as tf

raw = tf.raw_ops


class Inputs:
    """The inputs of a row, which are variables, and its size."""

    def __init__(self, n, variable):
        self.n, self.variable = n, variable
        self.random = np.random.default_rng(1)

    def floats(self, *shape):
        return self.variable(self.random.standard_normal(shape, dtype=np.float32))

    def positive(self, *shape):
        return self.variable(np.abs(self.random.standard_normal(shape, dtype=np.float32)) + np.float32(0.1))

    def complexes(self, *shape):
        parts = self.random.standard_normal((2, *shape), dtype=np.float32)
        return self.variable((parts[0] + 1j * parts[1]).astype(np.complex64))

    def integers(self, limit, *shape, dtype=np.int32):
        return self.variable(self.random.integers(0, limit, shape).astype(dtype))

    def steps(self, count, each):
        return self.variable((np.arange(count) // each).astype(np.int32))

    def rows(self):
        return self.floats(self.n // 100, 100)

    def images(self):
        return self.floats(self.n // 1000, 10, 10, 10)

    def square(self):
        side = int(np.sqrt(self.n))
        return self.floats(side, side)


    def pixels(self):
        return self.floats(self.n // 1000 + 1, 18, 18, 3)

    def columns(self):
        return 1000 if self.n >= 100_000 else 100

    def sparse_matrix(self):
        """With n / 10 elements that are not 0, in order, one behind the other."""
        columns, at = self.columns(), np.arange(self.n // 10, dtype=np.int64) * 10
        indices = self.variable(np.stack([at // columns, at % columns], 1))
        return tf.SparseTensor(indices, self.floats(len(at)), [self.n // columns, columns])


def embedding_lookup_sparse(i):
    at = i.sparse_matrix()
    ids = tf.SparseTensor(at.indices, i.integers(1000, i.n // 10, dtype=np.int64), at.dense_shape)
    return tf.compat.v1.nn.embedding_lookup_sparse(i.floats(1000, 16), ids, None, combiner="mean")


def segments(op):
    return lambda i: op(data=i.floats(i.n // 16, 16), segment_ids=i.steps(i.n // 16, 4))


def sparse_segments(op):
    def build(i):
        rows = i.n // 16
        return op(data=i.floats(rows, 16), indices=i.integers(rows, rows), segment_ids=i.steps(rows, 4))

    return build


def logical_xor(i):
    zero = i.floats()
    return tf.math.logical_xor(i.floats(i.n) > zero, i.floats(i.n) > zero)


ROWS = {
    "cumsum of rows": lambda i: tf.cumsum(i.rows(), 1),
    "cumsum of columns": lambda i: tf.cumsum(i.rows(), 0),
    "cumprod of rows": lambda i: tf.math.cumprod(i.rows(), 1),
    "segment sum": segments(raw.SegmentSum),
    "segment mean": segments(raw.SegmentMean),
    "segment prod": segments(raw.SegmentProd),
    "segment min": segments(raw.SegmentMin),
    "segment max": segments(raw.SegmentMax),
    "sparse segment sum": sparse_segments(raw.SparseSegmentSum),
    "sparse segment mean": sparse_segments(raw.SparseSegmentMean),
    "sparse segment sqrt n": sparse_segments(raw.SparseSegmentSqrtN),
    "strided slice of columns": lambda i: i.rows()[:, 1:-1:2],
    "strided slice of rows": lambda i: i.rows()[::2],
    "tile 4 times": lambda i: tf.tile(i.floats(i.n // 100, 25), [1, 4]),
    "reverse rows": lambda i: tf.reverse(i.rows(), [1]),
    "reverse columns": lambda i: tf.reverse(i.rows(), [0]),
    "reverse sequence": lambda i: tf.reverse_sequence(
        i.rows(), i.integers(100, i.n // 100, dtype=np.int64), seq_axis=1, batch_axis=0
    ),
    "mirror pad": lambda i: tf.pad(i.images(), [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"),
    "space to depth": lambda i: tf.nn.space_to_depth(i.images(), 2),
    "space to batch": lambda i: tf.space_to_batch(i.images(), [2, 2], [[0, 0], [0, 0]]),
    "depth to space": lambda i: tf.nn.depth_to_space(i.floats(i.n // 1000, 5, 5, 40), 2),
    "batch to space": lambda i: tf.batch_to_space(i.floats(i.n // 250, 5, 5, 10), [2, 2], [[0, 0], [0, 0]]),
    "diag": lambda i: raw.Diag(diagonal=i.floats(int(np.sqrt(i.n)))),
    "diag part": lambda i: raw.DiagPart(input=i.square()),
    "linspace": lambda i: raw.LinSpace(start=i.floats(), stop=i.floats(), num=i.n),
    "complex": lambda i: tf.complex(i.floats(i.n), i.floats(i.n)),
    "real": lambda i: tf.math.real(i.complexes(i.n)),
    "complex abs": lambda i: tf.abs(i.complexes(i.n)),
    "angle": lambda i: tf.math.angle(i.complexes(i.n)),
    "cross": lambda i: tf.linalg.cross(i.floats(i.n // 3, 3), i.floats(i.n // 3, 3)),
    "logsumexp of rows": lambda i: tf.reduce_logsumexp(i.rows(), [1]),
    "trace": lambda i: tf.linalg.trace(i.square()),
    "lbeta": lambda i: tf.math.lbeta(i.positive(i.n // 10, 10)),
    "bincount": lambda i: raw.Bincount(arr=i.integers(100, i.n), size=100, weights=tf.constant([], tf.int32)),
    "logical xor": logical_xor,
    "truediv of integers": lambda i: tf.truediv(i.integers(1000, i.n), i.integers(1000, i.n)),
    "floordiv of integers": lambda i: tf.math.floordiv(i.integers(1000, i.n), i.integers(1000, i.n) + 1),
    "saturate cast": lambda i: tf.saturate_cast(i.floats(i.n) * 100.0, tf.uint8),
    "zero fraction": lambda i: tf.nn.zero_fraction(i.floats(i.n)),
    "l2 normalize rows": lambda i: tf.math.l2_normalize(i.rows(), [1]),
    "moments of columns": lambda i: tf.nn.moments(i.rows(), [0]),
    "accumulate 4": lambda i: tf.math.accumulate_n([i.floats(i.n) for _ in range(4)]),
    "weighted cross entropy": lambda i: tf.nn.weighted_cross_entropy_with_logits(
        logits=i.floats(i.n), labels=i.positive(i.n), pos_weight=2.0
    ),
    "einsum bij,bjk->bik": lambda i: tf.einsum(
        "bij,bjk->bik", i.floats(i.n // 100, 10, 10), i.floats(i.n // 100, 10, 10)
    ),
    "einsum ij->ji": lambda i: tf.einsum("ij->ji", i.rows()),
    "where of bools": lambda i: tf.where(i.integers(2, i.n) > i.integers(1)),
    "boolean mask": lambda i: tf.boolean_mask(i.floats(i.n // 10, 10), i.integers(2, i.n // 10) > i.integers(1)),
    "gather_nd of pairs": lambda i: raw.GatherNd(params=i.square(), indices=i.integers(int(np.sqrt(i.n)), i.n, 2)),
    "scatter_nd of pairs": lambda i: raw.ScatterNd(
        indices=i.integers(int(np.sqrt(i.n)), i.n, 2), updates=i.floats(i.n), shape=[int(np.sqrt(i.n))] * 2
    ),
    "unique of 1000": lambda i: raw.Unique(x=i.integers(1000, i.n, dtype=np.int64)).y,
    "setdiff1d": lambda i: raw.ListDiff(
        x=i.integers(i.n, i.n, dtype=np.int64), y=i.integers(i.n, i.n // 2, dtype=np.int64)
    ).out,
    "top 10 of rows": lambda i: tf.math.top_k(i.rows(), 10).values,
    "top 100": lambda i: tf.math.top_k(i.floats(i.n), 100).values,
    "in top 10": lambda i: raw.InTopK(predictions=i.rows(), targets=i.integers(100, i.n // 100), k=10),
    "multinomial of 100": lambda i: raw.Multinomial(logits=i.rows(), num_samples=100),
    "uniform candidates": lambda i: raw.UniformCandidateSampler(
        true_classes=i.integers(i.n, i.n // 10, 1, dtype=np.int64),
        num_true=1,
        num_sampled=i.n // 10,
        unique=True,
        range_max=i.n,
    )[0],
    "local response": lambda i: raw.LRN(input=i.images()),
    "max pool with argmax": lambda i: raw.MaxPoolWithArgmax(
        input=i.images(), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
    ).output,
    "max pool 3-D": lambda i: raw.MaxPool3D(
        input=i.floats(i.n // 1000, 5, 10, 10, 2), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID"
    ),
    "conv 3-D of 3x3x3": lambda i: raw.Conv3D(
        input=i.floats(i.n // 1000, 5, 5, 5, 8), filter=i.floats(3, 3, 3, 8, 8), strides=[1] * 5, padding="SAME"
    ),
    "depthwise conv 3x3": lambda i: raw.DepthwiseConv2dNative(
        input=i.images(), filter=i.floats(3, 3, 10, 1), strides=[1] * 4, padding="SAME"
    ),
    "resize bilinear to double": lambda i: raw.ResizeBilinear(images=i.pixels(), size=[36, 36]),
    "resize bicubic to double": lambda i: raw.ResizeBicubic(images=i.pixels(), size=[36, 36]),
    "resize area to half": lambda i: raw.ResizeArea(images=i.pixels(), size=[9, 9]),
    "resize nearest to double": lambda i: raw.ResizeNearestNeighbor(images=i.pixels(), size=[36, 36]),
    "RGB to HSV": lambda i: raw.RGBToHSV(images=i.positive(i.n // 3, 3)),
    "HSV to RGB": lambda i: raw.HSVToRGB(images=i.positive(i.n // 3, 3)),
    "adjust contrast": lambda i: raw.AdjustContrastv2(images=i.images(), contrast_factor=2.0),
    "flip left right": lambda i: tf.reverse(i.images(), [2]),
    "sparse to dense": lambda i: tf.sparse.to_dense(i.sparse_matrix()),
    "sparse times 16 columns": lambda i: tf.sparse.sparse_dense_matmul(i.sparse_matrix(), i.floats(i.columns(), 16)),
    "sparse sum of rows": lambda i: tf.sparse.reduce_sum(i.sparse_matrix(), [1]),
    "sparse add": lambda i: tf.sparse.add(i.sparse_matrix(), i.sparse_matrix()).values,
    "sparse plus dense": lambda i: tf.sparse.add(i.sparse_matrix(), i.floats(i.n // i.columns(), i.columns())),
    "embedding lookup sparse": embedding_lookup_sparse,
}
