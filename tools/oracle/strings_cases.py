"""Ops on texts: joining, splitting, numbers, hashes, parts, base64."""

import numpy as np

from case_file import element, fixed
from element_types import BOOL, COMPLEX, FLOATS, INTS, SIGNED, STRING

NUMBERS = ["1", " 1 ", "+1", "-1", "-0", "\t12\n", "2147483647", "-2147483648", "007", "+0"]
REALS = NUMBERS + [
    "1.5", "1e3", ".5", "5.", "-2.5E-3", "inf", "-Inf", "+inf", "INFINITY", "nan", "NaN", "0x10", "-0X1p3", "0x.8", "1e400",
    "-1e400", "1e-400", "0.1", "123456789.123456789", "0." + "0" * 400 + "1", "1" + "0" * 400, "1" + "0" * 400 + "e-400",
]  # fmt: skip
NO_NUMBERS = ["", " ", "x", "1 2", "++1", "+-1", "- 1", "1f", "1_0", "0b1", "1e", "infx", "1\u0000"]
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 191, 192, 193, 300, 1000]
ACCENTS = "h\u00e9llo \u20ac\U0001f600"


def texts(values):
    return fixed(np.array(values, dtype=object), "string")


def _bytes_of(length):
    return "".join(chr(33 + (i * 7 + length) % 90) for i in range(length))


def add(f):
    _join(f)
    _numbers(f)
    _as_string(f)
    _split(f)
    _hashes(f)
    _parts(f)
    _base64(f)


def _join(f):
    one = ["float32"]
    for name, inputs, attrs in [
        ("two scalars", ["a", "b"], {}),
        ("one", [["a", "bc"]], {}),
        ("scalars among vectors", [["a", "b"], "x", ["c", "d"]], {"separator": "-"}),
        ("matrices", [[["a", "b"], ["c", "d"]], [["", "\u00e9"], ["g", "hh"]]], {"separator": ", "}),
        ("empty", [np.zeros(0, object), "x"], {}),
    ]:
        f.raw("StringJoin", name, {"inputs": [texts(i) for i in inputs]}, one, attrs={"N": len(inputs), **attrs}, raw_attrs=attrs)
    f.error("StringJoin", "shapes that differ", [texts(["a", "b"]), texts(["x"])], "build", attrs={"N": 2})
    f.error("StringJoin", "no inputs", [], "build", attrs={"N": 0})
    f.error("StringJoin", "of a number", [fixed([1])], "build", attrs={"N": 1})

    matrix, cube = [["a", "b"], ["c", "d"]], [[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]]
    for name, inputs, axes, attrs in [
        ("rows", matrix, [0], {}),
        ("columns", matrix, [-1], {"separator": "."}),
        ("all", matrix, [0, 1], {}),
        ("all, the other way", matrix, [1, 0], {"separator": ","}),
        ("none", matrix, [], {}),
        ("axis of rank 0", matrix, 0, {}),
        ("kept", matrix, [0, 1], {"keep_dims": True, "separator": ","}),
        ("two of three", cube, [0, 2], {}),
        ("two of three, the other way", cube, [2, 0], {"separator": "-"}),
        ("rank 0", "x", [], {}),
        ("empty vector", np.zeros(0, object), [0], {}),
        ("empty rows", np.zeros((2, 0), object), [1], {"separator": "x"}),
        ("no rows", np.zeros((0, 2), object), [1], {}),
    ]:
        f.raw("ReduceJoin", name, {"inputs": texts(inputs), "reduction_indices": fixed(np.array(axes, np.int32))}, one, attrs=attrs)
    f.error("ReduceJoin", "an axis twice", [texts(matrix), fixed([0, -2])], "run")
    f.error("ReduceJoin", "an axis that is not there", [texts(matrix), fixed([2])], "run")


def _numbers(f):
    for dtype, words in [("float32", REALS), ("float64", REALS), ("int32", NUMBERS), ("int64", NUMBERS + ["9223372036854775807"])]:
        f.raw("StringToNumber", dtype, {"string_tensor": texts(words)}, ["float32"], attrs={"out_type": dtype})
        f.raw("StringToNumber", f"rank 0, {dtype}", {"string_tensor": texts("7")}, ["float32"], attrs={"out_type": dtype})
        f.raw("StringToNumber", f"empty, {dtype}", {"string_tensor": texts(np.zeros((2, 0), object))}, ["float32"], attrs={"out_type": dtype})
        wrong = NO_NUMBERS if "float" in dtype else NO_NUMBERS + ["1.5", "1e3", "inf", "0x10", "9223372036854775808"]
        for word in wrong + (["2147483648"] if dtype == "int32" else []):
            f.error("StringToNumber", f"{word!r}, {dtype}", [texts(["1", word])], "run", attrs={"out_type": dtype}, match="could not convert string[1]")
    f.error("StringToNumber", "to a type that is none", [texts(["1"])], "build", attrs={"out_type": "int8"})


def _as_string(f):
    reals = element([1.5, -2.25, 0, 100, -0.0, 0.0625, 248])
    for name, attrs in [
        ("default", {}),
        ("precision", {"precision": 2}),
        ("precision 0", {"precision": 0}),
        ("scientific", {"scientific": True}),
        ("scientific, wide", {"scientific": True, "precision": 3, "width": 12}),
        ("shortest", {"shortest": True}),
        ("shortest, precision", {"shortest": True, "precision": 2}),
        ("zeros in front", {"width": 12, "fill": "0"}),
        ("to the left", {"width": 12, "fill": "-"}),
        ("with a sign", {"width": 12, "fill": "+"}),
        ("with a space", {"fill": " "}),
        ("with the point", {"precision": 0, "fill": "#"}),
        ("shortest with the point", {"shortest": True, "fill": "#"}),
        ("scientific with the point", {"scientific": True, "precision": 0, "fill": "#"}),
        ("width below 0", {"width": -2}),
    ]:
        f.raw("AsString", name, {"input": reals}, FLOATS, attrs=attrs)
        f.raw("AsString", name + ", complex", {"input": element([1 + 2j, -1.5j], "complex128")}, COMPLEX, attrs=attrs)
    f.raw("AsString", "many digits", {"input": element([0.1, 1e300, 1e-300, 2.0**70])}, ["float64"], attrs={"precision": 20})
    f.raw("AsString", "shortest of large and small", {"input": element([1e10, 1e-10, 123456789.0])}, ["float64"], attrs={"shortest": True})
    f.raw("AsString", "non-finite", {"input": element([np.inf, -np.inf, np.nan])}, FLOATS)
    f.raw("AsString", "non-finite with zeros", {"input": element([np.inf, -np.inf])}, FLOATS, attrs={"width": 8, "fill": "0"})
    for name, attrs in [("default", {}), ("wide", {"width": 5}), ("zeros in front", {"width": 5, "fill": "0"}), ("to the left", {"width": 5, "fill": "-"})]:
        f.raw("AsString", f"integers, {name}", {"input": element([1, 0, 100], "int64")}, INTS, attrs=attrs)
        f.raw("AsString", f"bool, {name}", {"input": element([True, False], "bool")}, BOOL, attrs=attrs)
        f.raw("AsString", f"strings, {name}", {"input": element(["a", "", "long text"], "string")}, STRING, attrs=attrs)
    for fill in ["+", " ", "0"]:
        f.raw("AsString", f"signed integers, flag {fill!r}", {"input": element([1, -5, 0], "int64")}, SIGNED, attrs={"width": 5, "fill": fill})
    f.raw("AsString", "unsigned has no sign", {"input": element([200], "uint64")}, ["uint64", "uint8"], attrs={"width": 5, "fill": "+"})
    f.raw("AsString", "limits", {"input": element([-(2**63), 2**63 - 1], "int64")}, ["int64"])
    f.raw("AsString", "rank 0", {"input": element(3)}, FLOATS)
    f.raw("AsString", "empty", {"input": element(np.zeros((0, 2)))}, FLOATS)
    real, whole = [fixed([1.5], "float32")], [fixed([1])]
    for name, inputs, attrs in [
        ("both forms", real, {"scientific": True, "shortest": True}),
        ("precision of integers", whole, {"precision": 2}),
        ("scientific integers", whole, {"scientific": True}),
        ("precision of bool", [fixed([True], "bool")], {"precision": 2}),
        ("a fill that is none", whole, {"fill": "x"}),
        ("a long fill", whole, {"fill": "00"}),
        ("too wide", real, {"width": 65537}),
        ("too many digits", real, {"precision": 65537}),
    ]:
        f.error("AsString", name, inputs, "build", attrs=attrs)


def _split(f):
    one = ["float32"]
    for name, inputs, delimiter, attrs in [
        ("words", ["hello world", "a b c"], " ", {}),
        ("spaces", [" a  b "], " ", {}),
        ("spaces, empty parts", [" a  b ", ""], " ", {"skip_empty": False}),
        ("bytes", ["abc", "", "x"], "", {}),
        ("several delimiters", ["a,b;c", ";,", ","], ",;", {}),
        ("several delimiters, empty parts", ["a,b;c", ";,", ","], ",;", {"skip_empty": False}),
        ("empty", np.zeros(0, object), ",", {}),
    ]:
        f.raw("StringSplit", name, {"input": texts(inputs), "delimiter": texts(delimiter)}, one, attrs=attrs)
    for name, inputs, separator, attrs in [
        ("white space", ["hello world", "a  b\tc ", "", "  "], "", {}),
        ("a long separator", ["1<>2<>3", "<><>4", "", "<", "<>"], "<>", {}),
        ("at most one", ["1<>2<>3", "a<>b", "c"], "<>", {"maxsplit": 1}),
        ("at most one, white space", [" a  b c", " a ", "a"], "", {"maxsplit": 1}),
        ("at most two, white space", [" a b  c ", "a b"], "", {"maxsplit": 2}),
        ("none", ["a,b", ""], ",", {"maxsplit": 0}),
        ("none, white space", [" a b"], "", {"maxsplit": 0}),
        ("empty", np.zeros(0, object), ",", {}),
    ]:
        f.raw("StringSplitV2", name, {"input": texts(inputs), "sep": texts(separator)}, one, attrs=attrs)
    for op in ("StringSplit", "StringSplitV2"):
        f.error(op, "rank 2", [texts([["a"]]), texts(" ")], "build")
        f.error(op, "delimiters of rank 1", [texts(["a"]), texts([" "])], "build")


def _hashes(f):
    one = ["float32"]
    words = [_bytes_of(n) for n in LENGTHS] + [ACCENTS, "\u00ff" * 9, "a", "b", "c", "d"]
    for buckets in (1, 10, 2**62, 2**63 - 1):
        f.raw("StringToHashBucketFast", f"{buckets} buckets", {"input": texts(words)}, one, attrs={"num_buckets": buckets})
        f.raw("StringToHashBucket", f"{buckets} buckets", {"string_tensor": texts(words)}, one, attrs={"num_buckets": buckets})
        for key in ([123, 456], [0, 0], [-1, 2**62 + 7]):
            f.raw("StringToHashBucketStrong", f"{buckets} buckets, key {key}", {"input": texts(words)}, one, attrs={"num_buckets": buckets, "key": key})
    strong = {"key": [1, 2]}
    for op, attrs in [("StringToHashBucketFast", {}), ("StringToHashBucket", {}), ("StringToHashBucketStrong", strong)]:
        name = "string_tensor" if op == "StringToHashBucket" else "input"
        f.raw(op, "rank 0", {name: texts("word")}, one, attrs={"num_buckets": 7, **attrs})
        f.raw(op, "empty", {name: texts(np.zeros((0, 2), object))}, one, attrs={"num_buckets": 7, **attrs})
        f.error(op, "no buckets", [texts(["a"])], "build", attrs={"num_buckets": 0, **attrs})
    f.error("StringToHashBucketStrong", "a short key", [texts(["a"])], "build", attrs={"num_buckets": 7, "key": [1]})


def _parts(f):
    matrix = [["abc", "defg"], ["hij", "klmn"]]
    for name, inputs, pos, length, attrs in [
        ("rank 0", "hello", 1, 3, {}),
        ("from the end", "hello", -3, 2, {}),
        ("at the end", "hello", 5, 1, {}),
        ("length below 0", "hello", 1, -1, {}),
        ("longer than it is", "hello", 1, 100, {}),
        ("nothing", "hello", 0, 0, {}),
        ("one part of all", ["abc", "defg"], 1, 2, {}),
        ("a part of each", ["abc", "defg"], [0, 1], [1, 2], {}),
        ("rows", matrix, [0, 1], [1, 2], {}),
        ("many parts of one", "hello", [0, 1], [1, 2], {}),
        ("both broadcast", ["abc", "d"], [[0], [1]], [[1], [1]], {}),
        ("empty", np.zeros(0, object), 0, 1, {}),
        ("characters", ACCENTS, [1, 6, -2, 0, 8, -8, 3], [2, 9, 1, 100, 1, 2, -1], {"unit": "UTF8_CHAR"}),
    ]:
        for dtype in ("int32", "int64"):
            places = {"pos": element(pos, "int64"), "len": element(length, "int64")}
            if dtype == "int64":
                f.raw("Substr", name, {"input": texts(inputs), **places}, ["int32", "int64"], attrs=attrs)
    for name, pos, length, unit in [
        ("before the beginning", -6, 1, "BYTE"),
        ("behind the end", 6, 1, "BYTE"),
        ("before the first character", -9, 1, "UTF8_CHAR"),
        ("behind the last character", 9, 1, "UTF8_CHAR"),
    ]:
        text = ACCENTS if unit == "UTF8_CHAR" else "hello"
        f.error("Substr", name, [texts(text), fixed(pos), fixed(length)], "run", attrs={"unit": unit}, match=f"pos {pos} is out of range")
    f.error("Substr", "pos and len differ", [texts(["abc"]), fixed([1]), fixed(2)], "build")
    f.error("Substr", "does not broadcast", [texts(["abc", "d"]), fixed([1, 1, 1]), fixed([1, 1, 1])], "build")
    f.error("Substr", "a unit that is none", [texts("abc"), fixed(1), fixed(1)], "build", attrs={"unit": "LINE"})
    for unit in ("BYTE", "UTF8_CHAR"):
        f.raw("StringLength", unit, {"input": texts(["a", "", ACCENTS, "\u00e9" * 300])}, ["float32"], attrs={"unit": unit})
        f.raw("StringLength", f"{unit}, rank 0", {"input": texts("abc")}, ["float32"], attrs={"unit": unit})
        f.raw("StringLength", f"{unit}, empty", {"input": texts(np.zeros((0, 1), object))}, ["float32"], attrs={"unit": unit})


def _base64(f):
    words = ["", "a", "ab", "abc", "abcd", ACCENTS, "\u00ff\u00fe>?", _bytes_of(100)]
    codes = ["", "YQ", "YQ==", "YWI=", "YWI", "YWJj", "w7_Dvj4_", "YR", "YR=="]
    for pad in (False, True):
        f.raw("EncodeBase64", f"pad {pad}", {"input": texts(words)}, ["float32"], attrs={"pad": pad})
    f.raw("EncodeBase64", "rank 0", {"input": texts("abc")}, ["float32"])
    f.raw("DecodeBase64", "padded or not", {"input": texts(codes)}, ["float32"])
    f.raw("DecodeBase64", "empty", {"input": texts(np.zeros((0, 2), object))}, ["float32"])
    for code in ["w7/Dvj4/", "YQ=", "Y", "YQ===", "====", "Y Q", "YWJj\n", "YWJjYQ==YQ", "=", "YWJj=", "Y===", "=YQ="]:
        f.error("DecodeBase64", repr(code), [texts(["YQ", code])], "run", match="string[1]")
