#!/usr/bin/env python3
"""Reads a checkpoint as docs/checkpoint-format.md describes it, with nothing but Python's standard library.

Usage: tests/tools/read_checkpoint.py PREFIX
Prints one line per tensor: name, element type, whole shape, begin, extent and the bytes in hexadecimal.
Exits 1 if anything is not as the document says.
"""

import struct
import sys
from math import prod
from pathlib import Path

SIZES = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8}
STRING = 7


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def require(condition, what):
    if not condition:
        sys.exit(f"damaged checkpoint: {what}")


class Body:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        require(size <= len(self.data) - self.at, "cut short")
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def string(self):
        size = shift = 0
        while True:
            (byte,) = self.take(1)
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return self.take(size).decode()


def read(prefix):
    """Yields (name, element type, shape, begin, extent, bytes)."""
    file = Path(prefix + ".index").read_bytes()
    magic, version, num_shards, listed, zero, entries, size, crc = struct.unpack_from("<8sIIIIQQI", file)
    require((magic, version, zero) == (b"DFCKPTIX", 1, 0) and listed == num_shards, "header")
    require(crc == crc32c(file[:40]) and len(file) == 48 + size, "header")
    require(struct.unpack_from("<I", file, 44 + size)[0] == crc32c(file[44:-4]), "checksum of the index")
    body, shards = Body(file[44:-4]), []
    for number in range(num_shards):
        found, length, crc = body.numbers("IQI")
        data = (Path(prefix).parent / body.string()).read_bytes()
        require(found == number and len(data) == length and crc32c(data) == crc, f"shard {number}")
        shards.append(data)
    for _ in range(entries):
        name = body.string()
        dtype, rank = body.numbers("BB")
        shape, begin, extent = (body.numbers(f"{rank}q") for _ in range(3))
        shard, offset, length, crc = body.numbers("IQQI")
        data = shards[shard][offset : offset + length]
        require(len(data) == length and crc32c(data) == crc and offset % 64 == 0, name)
        require(dtype == STRING or length == prod(extent) * SIZES[dtype], name)
        yield name, dtype, shape, begin, extent, data
    require(body.at == len(body.data), "bytes follow the last entry")


if __name__ == "__main__":
    for name, dtype, shape, begin, extent, data in read(sys.argv[1]):
        print(name, dtype, list(shape), list(begin), list(extent), data.hex())
