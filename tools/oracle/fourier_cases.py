"""Fourier transforms, of complex and of real elements, and the gradients of the real ones."""

import numpy as np
import scipy.fft

from case_file import NUMPY, SCIPY, element, fixed
from element_types import COMPLEX
from matmul_cases import complex_eighths, eighths

# Powers, products of small primes, primes, and primes so large that they are convolved.
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15, 16, 30, 49, 53, 64, 97, 106, 120]
REAL_LENGTHS = [1, 2, 3, 4, 5, 7, 8, 30, 53, 64, 106]


def add(f):
    _complex(f)
    _real(f)
    _real_gradients(f)


def _transform(function, x, axes):
    return function(x, axes=axes) if x.size else x


def _complex(f):
    shapes = {
        1: [(n,) for n in LENGTHS] + [(2, 5), (3, 2, 8), (0, 4), (3, 0), (4, 53)],
        2: [(1, 1), (2, 3), (4, 4), (7, 5), (2, 3, 4), (0, 3), (3, 0), (2, 0, 3), (5, 53), (16, 9)],
        3: [(1, 2, 3), (2, 2, 2), (3, 4, 5), (2, 3, 2, 3), (0, 2, 3), (2, 0, 2)],
    }
    for rank, all_shapes in shapes.items():
        suffix = "" if rank == 1 else f"{rank}D"
        axes = tuple(range(-rank, 0))
        for shape in all_shapes:
            x = complex_eighths(*shape)
            for op, function in ((f"FFT{suffix}", scipy.fft.fftn), (f"IFFT{suffix}", scipy.fft.ifftn)):
                y = _transform(function, x.array, axes)
                f.case(op, "x".join(map(str, shape)), [x], [element(y, "complex128")], COMPLEX,
                       f"{SCIPY} fft.{function.__name__}", tolerance_scale=10)  # fmt: skip
        for op in (f"FFT{suffix}", f"IFFT{suffix}"):
            f.error(op, "a scalar", [fixed(1.0, "complex128")], "build")
    f.error("FFT2D", "a vector", [fixed(np.ones(3), "complex128")], "build")
    f.error("FFT3D", "a matrix", [fixed(np.ones((3, 3)), "complex128")], "build")


PRECISIONS = [("float64", "complex128"), ("float32", "complex64")]


def _lengths(rank):
    if rank == 1:
        resized = [((2, 6), (4,)), ((2, 6), (9,)), ((0, 4), (4,)), ((5,), (0,)), ((3, 53), (53,))]
        return [((n,), (n,)) for n in REAL_LENGTHS] + resized
    if rank == 2:
        return [((2, 3), (2, 3)), ((4, 6), (4, 6)), ((5, 7), (3, 4)), ((2, 3), (4, 5)), ((2, 3, 4), (3, 4)),
                ((0, 2, 2), (2, 2)), ((3, 4), (1, 1)), ((2, 3), (0, 3))]  # fmt: skip
    return [((2, 3, 4), (2, 3, 4)), ((2, 3, 5), (3, 2, 4)), ((2, 2, 3, 2), (2, 3, 3)), ((1, 1, 1), (1, 1, 1))]


def _rounded(values, dtype):
    return fixed(np.asarray(values).astype(dtype), dtype)


def _real(f):
    for rank in (1, 2, 3):
        suffix = "" if rank == 1 else f"{rank}D"
        axes = tuple(range(-rank, 0))
        for real, complex_ in PRECISIONS:
            for shape, lengths in _lengths(rank):
                name = f"{'x'.join(map(str, shape))} to {'x'.join(map(str, lengths))}, {real}"
                half = lengths[:-1] + (lengths[-1] // 2 + 1 if lengths[-1] else 0,)
                batch = shape[:-rank]
                x = eighths(*shape)
                empty = 0 in lengths or 0 in shape
                y = np.zeros(batch + half, complex) if empty else np.fft.rfftn(x.array, lengths, axes)
                f.case(f"RFFT{suffix}", name, [x, fixed(lengths)], [_rounded(y, complex_)], [real],
                       f"{NUMPY} fft.rfftn", attrs={"Tcomplex": complex_}, tolerance_scale=10)  # fmt: skip
                if empty and 0 in shape[-rank:]:
                    continue
                # The same shape, of coefficients: they are cut and filled up too.
                c = complex_eighths(*shape)
                z = np.zeros(batch + lengths) if empty else _irfftn(c.array, lengths, axes)
                f.case(f"IRFFT{suffix}", name, [_rounded(c.array, complex_), fixed(lengths)], [element(z)], [real],
                       f"{SCIPY} fft.irfft", attrs={"Treal": real}, tolerance_scale=10)  # fmt: skip
        x = element(np.ones((2,) * rank))
        f.error(f"RFFT{suffix}", "a scalar", [element(1.0), fixed([1] * rank)], "build",
                attrs={"Tcomplex": "complex128"})  # fmt: skip
        f.error(f"RFFT{suffix}", "a negative length", [x, fixed([-1] * rank)], "run", match="negative",
                attrs={"Tcomplex": "complex128"})  # fmt: skip
        f.error(f"RFFT{suffix}", "lengths of more dimensions", [x, fixed([2] * (rank + 1))], "build",
                attrs={"Tcomplex": "complex128"})  # fmt: skip
        c = fixed(np.ones((2,) * rank, complex), "complex128")
        f.error(f"IRFFT{suffix}", "a negative length", [c, fixed([-1] * rank)], "run", match="negative",
                attrs={"Treal": "float64"})  # fmt: skip
        f.error(f"IRFFT{suffix}", "of another precision", [c, fixed([2] * rank)], "build", match="precision",
                attrs={"Treal": "float32"})  # fmt: skip


def _irfftn(c, lengths, axes):
    """By dimension, as TensorFlow does: the real transform of the last one looks at half of its coefficients only."""
    first = lengths[-1] // 2 + 1
    c = c[..., :first]
    if c.shape[-1] < first:
        c = np.concatenate([c, np.zeros(c.shape[:-1] + (first - c.shape[-1],))], -1)
    for axis, length in zip(axes[:-1], lengths[:-1]):
        c = scipy.fft.ifft(c, length, axis)
    return scipy.fft.irfft(c, lengths[-1], -1)


def _real_gradients(f):
    """The adjoints of the transforms as matrices, by <dy, F x> = <F^H dy, x> with the real part of the product."""
    for rank in (1, 2, 3):
        axes = tuple(range(-rank, 0))
        for real, complex_ in PRECISIONS:
            for shape, lengths in [(s, n) for s, n in _lengths(rank) if 0 not in s + n and np.prod(s) < 30]:
                name = f"{rank} dimensions, {'x'.join(map(str, shape))} to {'x'.join(map(str, lengths))}, {real}"
                attrs = {"rank": rank, "Treal": real, "Tcomplex": complex_}
                count = int(np.prod(shape))
                units = np.eye(count).reshape((count,) + shape)
                columns = np.fft.rfftn(units, lengths, axes)
                dy = complex_eighths(*columns.shape[1:]).array
                dx = np.real(np.sum(np.conj(dy) * columns, tuple(range(1, columns.ndim)))).reshape(shape)
                f.case("RFFTGrad", name, [_rounded(dy, complex_), fixed(lengths), fixed(shape)], [element(dx)], [real],
                       f"{NUMPY} fft.rfftn, its adjoint", attrs=attrs, tolerance_scale=20)  # fmt: skip
                real_columns = _irfftn(units.astype(complex), lengths, axes)
                imaginary_columns = _irfftn(1j * units, lengths, axes)
                dx = eighths(*real_columns.shape[1:])
                over = tuple(range(1, real_columns.ndim))
                dy = np.sum(dx.array * real_columns, over) + 1j * np.sum(dx.array * imaginary_columns, over)
                f.case("IRFFTGrad", name, [dx, fixed(lengths), fixed(shape)], [_rounded(dy.reshape(shape), complex_)],
                       [real], f"{SCIPY} fft.irfft, its adjoint", attrs=attrs, tolerance_scale=20)  # fmt: skip
    dy = fixed(np.ones(3, complex), "complex128")
    f.error("RFFTGrad", "four dimensions", [dy, fixed([4]), fixed([4])], "build", attrs={"rank": 4, "Treal": "float64"})
    f.error("RFFTGrad", "another length", [dy, fixed([6]), fixed([6])], "run", attrs={"Treal": "float64"})
    f.error("IRFFTGrad", "another rank", [element(np.ones(4)), fixed([4]), fixed([1, 4])], "run",
            attrs={"Tcomplex": "complex128"})  # fmt: skip
