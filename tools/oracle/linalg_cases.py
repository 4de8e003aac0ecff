"""Decompositions, solvers, bands and diagonals of matrices.

What is unique up to signs or phases only (singular vectors, eigenvectors) is left out of the expected outputs; the
tests check it by what it must satisfy. Q and R are compared, since Householder reflections as LAPACK's and Eigen's fix
their signs.
"""

import numpy as np
import scipy.linalg

from case_file import NUMPY, SCIPY, element, fixed
from element_types import BOOL, COMPLEX, REALS
from matmul_cases import complex_eighths, eighths, small

WIDE = ["float64", "float32"]
ILL = 2000  # on the tolerance: condition numbers of up to 1e3


def add(f):
    _cholesky(f)
    _qr(f)
    _svd(f)
    _eig(f)
    _inverse(f)
    _solve(f)
    _triangular(f)
    _least_squares(f)
    _bands(f)


def _shapes(*shapes):
    """Both kinds of numbers for each shape: name, values, element types."""
    for shape in shapes:
        name = "x".join(map(str, shape))
        yield name, eighths(*shape).array, WIDE
        yield name + ", complex", complex_eighths(*shape).array, COMPLEX


def _arg(array):
    return element(array, "complex128" if np.iscomplexobj(array) else "float64")


def _adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def _hermitian(a):
    return (a + _adjoint(a)) / 2


def _positive(a):
    """Positive definite, exact in float: sums of products of eighths."""
    return a @ _adjoint(a) + np.eye(a.shape[-1]) * 4


def _regular(a):
    """Far from singular."""
    n = a.shape[-1]
    return a + np.eye(n) * 4


SQUARES = [(1, 1), (2, 2), (3, 3), (5, 5), (17, 17), (2, 3, 3), (2, 1, 4, 4), (0, 3, 3), (2, 0, 0), (0, 0)]
MATRICES = [(1, 1), (1, 4), (4, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 2, 2, 3), (0, 2, 3), (9, 17), (20, 18)]
EMPTY = [(0, 0), (0, 3), (3, 0), (2, 0, 2)]


def _not_square(f, op, attrs=None, others=()):
    f.error(op, "not square", [element(np.ones((2, 3))), *others], "build", attrs=attrs)
    f.error(op, "a vector", [element(np.ones(3)), *others], "build", attrs=attrs)


def _cholesky(f):
    for name, a, types in _shapes(*SQUARES):
        a = _positive(a)
        value = np.linalg.cholesky(a) if a.size else a
        f.case("Cholesky", name, [_arg(a)], [_arg(value)], types, f"{NUMPY} linalg.cholesky", tolerance_scale=10)
    a = _positive(eighths(4, 4).array)
    f.case(
        "Cholesky", "only the lower triangle is read", [_arg(np.tril(a) + np.triu(np.full((4, 4), 7.0), 1))],
        [_arg(np.linalg.cholesky(a))], WIDE, f"{NUMPY} linalg.cholesky", tolerance_scale=10,
    )  # fmt: skip
    # Condition number 1e10: the factor itself loses no more than the element type's rounding times the size of A.
    a = scipy.linalg.hilbert(7)
    f.case("Cholesky", "ill-conditioned", [_arg(a)], [_arg(np.linalg.cholesky(a))], ["float64"],
           f"{NUMPY} linalg.cholesky", tolerance_scale=1e4)  # fmt: skip
    message = "Cholesky decomposition was not successful"
    f.error("Cholesky", "indefinite", [element([[1, 2], [2, 1]])], "run", match=message)
    f.error("Cholesky", "of zeros", [element(np.zeros((3, 3)))], "run", match=message)
    f.error("Cholesky", "one of a batch", [element([np.eye(2), -np.eye(2)])], "run", match=message)
    _not_square(f, "Cholesky")


def _qr(f):
    for full in (False, True):
        for name, a, types in _shapes(*MATRICES, *EMPTY):
            m, n = a.shape[-2:]
            if m > 8:
                a = a + np.eye(m, n) * 4  # of full rank, without which Q is not unique
            q, r = np.linalg.qr(a, mode="complete" if full else "reduced")
            attrs = {"full_matrices": True} if full else {}
            f.case("Qr", name + (", full" if full else ""), [_arg(a)], [_arg(q), _arg(r)], types, f"{NUMPY} linalg.qr",
                   attrs=attrs, gradient=(m <= n or not full) and a.size > 0 and name != "20x18" and name != "9x17",
                   tolerance_scale=50)  # fmt: skip
    f.error("Qr", "a vector", [element(np.ones(3))], "build")


def _svd(f):
    def case(name, a, types, attrs, **options):
        shape = a.shape[:-2] + (min(a.shape[-2:]),)
        s = np.linalg.svd(a, compute_uv=False).astype(a.dtype) if a.size else np.zeros(shape, a.dtype)
        f.case("Svd", name, [_arg(a)], [_arg(s)], types, f"{NUMPY} linalg.svd", attrs=attrs, **options)

    for name, a, types in _shapes(*MATRICES, *EMPTY):
        differentiable = a.size > 0 and a.size < 100
        case(name, a, types, {}, gradient=differentiable, tolerance_scale=20)
        case(name + ", values alone", a, types, {"compute_uv": False}, gradient=differentiable, tolerance_scale=20)
        case(name + ", full", a, types, {"full_matrices": True}, tolerance_scale=20)
    case("of rank 1", np.outer([1.0, 2, 3], [1, -1, 0.5, 2]), WIDE, {}, tolerance_scale=20)
    case("of zeros", np.zeros((3, 2)), WIDE, {})
    case("ill-conditioned", scipy.linalg.hilbert(8), ["float64"], {})
    f.error("Svd", "a vector", [element(np.ones(3))], "build")


def _eig(f):
    for compute_v in (True, False):
        for name, a, types in _shapes(*SQUARES):
            a = _hermitian(a)
            e = np.linalg.eigvalsh(a).astype(a.dtype) if a.size else np.zeros(a.shape[:-1], a.dtype)
            f.case("SelfAdjointEigV2", name + ("" if compute_v else ", values alone"), [_arg(a)], [_arg(e)], types,
                   f"{NUMPY} linalg.eigvalsh", attrs={} if compute_v else {"compute_v": False},
                   gradient=a.size > 0 and a.size < 100, tolerance_scale=20)  # fmt: skip
    a = _hermitian(eighths(4, 4).array)
    f.case(
        "SelfAdjointEigV2", "only the lower triangle is read", [_arg(np.tril(a) + np.triu(np.full((4, 4), 7.0), 1))],
        [_arg(np.linalg.eigvalsh(a))], WIDE, f"{NUMPY} linalg.eigvalsh", gradient=True, tolerance_scale=20,
    )  # fmt: skip
    f.case("SelfAdjointEigV2", "equal eigenvalues", [_arg(np.eye(3) * 2)], [_arg(np.full(3, 2.0))], WIDE,
           f"{NUMPY} linalg.eigvalsh")  # fmt: skip
    a = scipy.linalg.hilbert(8)
    f.case("SelfAdjointEigV2", "ill-conditioned", [_arg(a)], [_arg(np.linalg.eigvalsh(a))], ["float64"],
           f"{NUMPY} linalg.eigvalsh", tolerance_scale=20)  # fmt: skip
    f.error("SelfAdjointEigV2", "not a number", [element([[1, 0], [np.nan, 1]])], "run",
            match="Self-adjoint eigen decomposition was not successful")  # fmt: skip
    _not_square(f, "SelfAdjointEigV2")


def _inverse(f):
    for name, a, types in _shapes(*SQUARES):
        a = _regular(a)
        inverse = np.linalg.inv(a) if a.size else a
        differentiable = a.size < 100
        for adjoint, value in ((False, inverse), (True, _adjoint(inverse))):
            f.case("MatrixInverse", name + (", adjoint" if adjoint else ""), [_arg(a)], [_arg(value)], types,
                   f"{NUMPY} linalg.inv", attrs={"adjoint": True} if adjoint else {}, gradient=differentiable,
                   tolerance_scale=20)  # fmt: skip
        f.case("MatrixDeterminant", name, [_arg(a)], [_arg(np.linalg.det(a))], types, f"{NUMPY} linalg.det",
               gradient=a.size < 30, tolerance_scale=50)  # fmt: skip
    a = scipy.linalg.hilbert(4)
    f.case("MatrixInverse", "ill-conditioned", [_arg(a)], [_arg(scipy.linalg.invhilbert(4))], ["float64"],
           f"{SCIPY} linalg.invhilbert", tolerance_scale=ILL)  # fmt: skip
    f.case("MatrixDeterminant", "ill-conditioned", [_arg(a)], [_arg(np.array(1 / 6048000))], ["float64"],
           "OEIS A005249: 1 / det of the Hilbert matrix of order 4", tolerance_scale=10, relative=True)  # fmt: skip
    f.case("MatrixDeterminant", "singular", [_arg(np.array([[1.0, 2], [2, 4]]))], [_arg(np.array(0.0))], WIDE,
           f"{NUMPY} linalg.det")  # fmt: skip
    f.case("MatrixDeterminant", "of an exchange", [_arg(np.array([[0.0, 1], [1, 0]]))], [_arg(np.array(-1.0))], WIDE,
           f"{NUMPY} linalg.det", gradient=True)  # fmt: skip
    for name, a in _singular():
        f.error("MatrixInverse", name, [element(a)], "run", match="Input matrix is not invertible.")
    _not_square(f, "MatrixInverse")
    _not_square(f, "MatrixDeterminant")


def _singular():
    return [
        ("singular", [[1, 2], [2, 4]]),
        ("of zeros", np.zeros((3, 3))),
        ("one of a batch", [np.eye(2), np.zeros((2, 2))]),
        ("not a number", [[np.nan]]),
    ]


def _right(a, k):
    shape = a.shape[:-1] + (k,)
    return (complex_eighths if np.iscomplexobj(a) else eighths)(*shape, phase=2).array


def _wrong_right_sides(f, op, attrs=None, last=()):
    a = element(np.eye(2))
    f.error(op, "other rows", [a, element(np.ones((3, 1))), *last], "build", attrs=attrs)
    f.error(op, "a vector on the right", [a, element(np.ones(2)), *last], "build", attrs=attrs)
    f.error(op, "other batch", [element(np.ones((2, 2, 2))), element(np.ones((3, 2, 1))), *last], "build", attrs=attrs)


def _solve(f):
    for name, a, types in _shapes(*SQUARES):
        a = _regular(a)
        for k in (1, 3):
            b = _right(a, k)
            for adjoint in (False, True):
                x = np.linalg.solve(_adjoint(a) if adjoint else a, b) if a.size else b
                case_name = f"{name}, {k} right{', adjoint' if adjoint else ''}"
                f.case("MatrixSolve", case_name, [_arg(a), _arg(b)], [_arg(x)], types, f"{NUMPY} linalg.solve",
                       attrs={"adjoint": True} if adjoint else {}, gradient=a.size < 100,
                       tolerance_scale=20)  # fmt: skip
    f.case("MatrixSolve", "nothing on the right", [_arg(np.eye(3)), _arg(np.zeros((3, 0)))], [_arg(np.zeros((3, 0)))],
           WIDE, f"{NUMPY} linalg.solve")  # fmt: skip
    a, b = scipy.linalg.hilbert(4), np.ones((4, 1))
    f.case("MatrixSolve", "ill-conditioned", [_arg(a), _arg(b)], [_arg(scipy.linalg.invhilbert(4) @ b)], ["float64"],
           f"{SCIPY} linalg.invhilbert", tolerance_scale=ILL)  # fmt: skip
    for name, a in _singular():
        f.error("MatrixSolve", name, [element(a), element(np.ones(np.shape(a)))], "run",
                match="Input matrix is not invertible.")  # fmt: skip
    _not_square(f, "MatrixSolve", others=[element(np.ones((2, 1)))])
    _wrong_right_sides(f, "MatrixSolve")


def _triangular(f):
    for name, a, types in _shapes(*SQUARES):
        # The entries off the diagonal are small, so that solutions of 17 unknowns do not grow.
        a = a / 8 + np.eye(a.shape[-1]) * 2
        b = _right(a, 2)
        for lower in (True, False):
            for adjoint in (False, True):
                t = np.tril(a) if lower else np.triu(a)
                x = np.linalg.solve(_adjoint(t) if adjoint else t, b) if a.size else b
                attrs = {} if lower else {"lower": False}
                if adjoint:
                    attrs["adjoint"] = True
                case_name = f"{name}, {'lower' if lower else 'upper'}{', adjoint' if adjoint else ''}"
                f.case("MatrixTriangularSolve", case_name, [_arg(a), _arg(b)], [_arg(x)], types,
                       f"{NUMPY} linalg.solve", attrs=attrs, gradient=a.size < 100, tolerance_scale=20)  # fmt: skip
    f.error("MatrixTriangularSolve", "a zero on the diagonal", [element([[1, 5], [2, 0]]), element([[1], [1]])], "run",
            match="Input matrix is not invertible.")  # fmt: skip
    _not_square(f, "MatrixTriangularSolve", others=[element(np.ones((2, 1)))])
    _wrong_right_sides(f, "MatrixTriangularSolve")


def _least_squares(f):
    def case(name, a, b, types, l2=0.0, fast=True, **options):
        m, n = a.shape[-2:]
        if l2:
            x = np.linalg.solve(_adjoint(a) @ a + l2 * np.eye(n), _adjoint(a) @ b)
        elif a.size:
            x = np.linalg.pinv(a) @ b
        else:
            x = np.zeros(a.shape[:-2] + (n, b.shape[-1]), a.dtype)
        attrs = {} if fast else {"fast": False}
        f.case("MatrixSolveLs", name, [_arg(a), _arg(b), fixed(l2, "float64")], [_arg(x)], types,
               f"{NUMPY} linalg.{'solve' if l2 else 'pinv'}", attrs=attrs, tolerance_scale=200, **options)  # fmt: skip

    for name, a, types in _shapes((1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 2, 2, 3), (0, 2, 3), (0, 3), (3, 0)):
        if a.size and a.shape[-1] == a.shape[-2]:
            a = _regular(a)
        b = _right(a, 2)
        case(name, a, b, types, gradient=True)
        case(name + ", regularised", a, b, types, l2=0.5, gradient=True) if a.size else None
        case(name + ", orthogonal", a, b, types, fast=False, gradient=True)
    rank_one = np.outer([1.0, 2, 3], [1, -1])
    case("rank deficient, orthogonal", rank_one, np.array([[1.0], [0], [2]]), WIDE, fast=False)
    case("rank deficient, regularised", rank_one, np.array([[1.0], [0], [2]]), WIDE, l2=0.25)
    none, negative, several = (fixed(l2, "float64") for l2 in (0.0, -1.0, [0.0]))
    right = element(np.ones((2, 1)))
    f.error("MatrixSolveLs", "rank deficient", [element(np.zeros((2, 3))), right, none], "run",
            match="rank deficient or ill-conditioned")  # fmt: skip
    f.error("MatrixSolveLs", "a negative regularizer", [element(np.eye(2)), right, negative], "run",
            match="l2_regularizer")  # fmt: skip
    f.error("MatrixSolveLs", "regularizers", [element(np.eye(2)), right, several], "build")
    _wrong_right_sides(f, "MatrixSolveLs", last=[fixed(0.0, "float64")])


def _bands(f):
    kinds = [
        ("", lambda *shape: eighths(*shape), [t for t in REALS if "float" in t]),
        ("integers, ", lambda *shape: small(*shape, wide="int64"), [t for t in REALS if "int" in t]),
        ("complex, ", lambda *shape: complex_eighths(*shape), COMPLEX),
        ("bool, ", lambda *shape: element(small(*shape).array > 0, "bool"), BOOL),
    ]
    for kind, make, types in kinds:
        real = not kind
        for shape in [(3, 4), (4, 3), (1, 1), (2, 3, 3), (0, 3), (2, 0, 3), (9, 11)]:
            x = make(*shape)
            name = kind + "x".join(map(str, shape))
            for index in ("int32", "int64") if shape == (3, 4) else ("int64",):
                for lower, upper in [(-1, 0), (0, -1), (0, 0), (1, 2), (-1, -1)]:
                    if lower > shape[-2] or upper > shape[-1] or (not real and lower < 0 and shape != (3, 4)):
                        continue
                    f.raw("MatrixBandPart", f"{name}, {lower} {upper} {index}",
                          {"input": x, "num_lower": fixed(lower, index), "num_upper": fixed(upper, index)}, types,
                          gradient=real)  # fmt: skip
            f.raw("MatrixDiagPart", name, {"input": x}, types, gradient=real)
            diagonal = make(*shape[:-2], min(shape[-2:]))
            f.raw("MatrixSetDiag", name, {"input": x, "diagonal": diagonal}, types, gradient=real)
        for shape in [(1,), (3,), (2, 3), (0,), (2, 0), (0, 2), (2, 2, 5)]:
            f.raw("MatrixDiag", kind + "x".join(map(str, shape)), {"diagonal": make(*shape)}, types, gradient=real)
    x = element(np.ones((2, 3)))
    f.error("MatrixBandPart", "a vector", [element(np.ones(3)), fixed(0), fixed(0)], "build")
    f.error("MatrixBandPart", "more below than rows", [x, fixed(3), fixed(0)], "run", match="num_lower")
    f.error("MatrixBandPart", "more above than columns", [x, fixed(0), fixed(4)], "run", match="num_upper")
    f.error("MatrixBandPart", "several numbers", [x, fixed([0, 1]), fixed(0)], "build")
    f.error("MatrixDiag", "a scalar", [element(1.0)], "build")
    f.error("MatrixDiagPart", "a vector", [element(np.ones(3))], "build")
    f.error("MatrixSetDiag", "another length", [x, element(np.ones(3))], "build")
    f.error("MatrixSetDiag", "another batch", [element(np.ones((2, 3, 3))), element(np.ones((4, 3)))], "build")
