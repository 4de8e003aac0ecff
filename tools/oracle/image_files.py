#!/usr/bin/env python3
"""Writes tests/image/tensorflow_images.txt: TensorFlow's pixels of image files, by 64 bits of their
SHA-256.

The files are those of shared/data/images, which tests find by DFLOW_DATA, and the small ones of tests/fuzz/corpus. A line is
the op, the file, the attributes, and the shape and the hash of the result, of a file its size and hash; or "refused". 16-bit samples are hashed with the low
byte first.

Usage: PYTHON tools/oracle/image_files.py DATA     (with TensorFlow, tools/oracle/requirements.txt)
"""

import hashlib
import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parents[2]
JPEG = [
    {},
    {"dct_method": "INTEGER_FAST"},
    {"dct_method": "INTEGER_ACCURATE"},
    {"channels": 1},
    {"channels": 3},
    *({"ratio": ratio, "dct_method": dct} for ratio in (2, 4, 8) for dct in ("INTEGER_FAST", "INTEGER_ACCURATE")),
    {"fancy_upscaling": False},
    {"fancy_upscaling": False, "dct_method": "INTEGER_ACCURATE"},
    {"acceptable_fraction": 0.1},
    {"try_recover_truncated": True},
    {"try_recover_truncated": True, "dct_method": "INTEGER_ACCURATE"},
]
# TensorFlow refuses 2 channels.
PNG = [{"channels": channels, "dtype": dtype} for channels in (0, 1, 3, 4) for dtype in ("uint8", "uint16")]
# Of the pixels of a file; the bytes of the result are hashed.
ENCODED = {
    "testorig.jpg": [{}, {"quality": 30, "progressive": True}, {"optimize_size": True, "chroma_downsampling": False},
                     {"format": "rgb", "density_unit": "cm", "x_density": 7, "y_density": 1000, "xmp_metadata": "<x/>"}],
    "gray.jpg": [{"quality": 0}, {"format": "grayscale", "quality": 100, "progressive": True}],
    "rgb444_progressive.jpg": [{"quality": 50}],
}  # fmt: skip
IMAGE = [{"dtype": dtype} for dtype in ("uint8", "uint16", "float32")]


def encoded_line(name, contents, attrs):
    pixels = tf.raw_ops.DecodeJpeg(contents=contents, dct_method="INTEGER_ACCURATE")
    result = tf.raw_ops.EncodeJpeg(image=pixels, **attrs).numpy()
    return " ".join(["EncodeJpeg", name, words_of(attrs), str(len(result)), hashlib.sha256(result).hexdigest()[:16]])


def words_of(attrs):
    return ",".join(f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in attrs.items()) or "-"


def line(op, name, contents, attrs):
    words = [op, name, words_of(attrs)]
    try:
        pixels = getattr(tf.raw_ops, op)(contents=contents, **attrs).numpy()
    except (tf.errors.InvalidArgumentError, tf.errors.UnknownError):
        return " ".join([*words, "refused"])
    return " ".join([*words, "x".join(map(str, pixels.shape)), hashlib.sha256(pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()).hexdigest()[:16]])


def main():
    lines = []
    folders = [("data", pathlib.Path(sys.argv[1]) / "images"), ("corpus", ROOT / "tests/fuzz/corpus/decode_jpeg"),
               ("corpus", ROOT / "tests/fuzz/corpus/decode_png")]  # fmt: skip
    for place, folder in folders:
        for path in sorted(folder.glob("*.jpg")) + sorted(folder.glob("*.png")):
            if path.stem == "huge":  # takes TensorFlow hundreds of megabytes
                continue
            contents = path.read_bytes()
            is_jpeg = path.suffix == ".jpg"
            name = f"{place}/{path.name}" if place == "data" else f"{place}/{folder.name}/{path.name}"
            lines += [line("DecodeJpeg", name, contents, attrs) for attrs in JPEG if is_jpeg]
            # Alpha that such a file lacks is 1, 3 or 15 of 255 in TensorFlow, and 255 in dflow.
            is_narrow = path.stem in ("gray1", "gray2", "palette4")
            lines += [line("DecodePng", name, contents, attrs) for attrs in PNG if not is_jpeg and not (is_narrow and attrs["channels"] == 4)]
            lines += [line("DecodeImage", name, contents, attrs) for attrs in IMAGE]
            lines += [encoded_line(name, contents, attrs) for attrs in ENCODED.get(path.name, ())]
    (ROOT / "tests/image/tensorflow_images.txt").write_text("\n".join([f"# {tf.__version__}", *lines]) + "\n")


if __name__ == "__main__":
    main()
