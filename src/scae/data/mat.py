"""A reader of MATLAB level 5 files for numeric arrays and plain structures.

Written for files from strangers: sizes are checked against the bytes that are there before
anything is allocated, and only numbers come out; cells, text, functions and objects are
skipped. Layout: a 128-byte header, then elements of (type, size, data), each possibly
zlib-compressed; a matrix element holds flags, dimensions, name and data as sub-elements.
"""

import math
import mmap
import struct
import zlib
from pathlib import Path

import numpy as np

from scae.data.files import MAX_DEFLATE_RATIO, check_start, damaged, reason
from scae.errors import ScaeError

MatValue = np.ndarray | dict[str, "MatValue"]

EXPECTED = "a MATLAB level 5 file"
HEADER = 128
MATRIX, COMPRESSED = 14, 15
STORAGE = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
STORAGE |= {12: "i8", 13: "u8"}
STRUCT = 2
NUMERIC = range(6, 16)
MAX_DEPTH = 4


def read_mat(path: Path) -> dict[str, MatValue]:
    """The numeric variables of a file, by name; arrays have MATLAB's dimensions."""
    try:
        with open(path, "rb") as file:
            start = file.read(HEADER)
            check_start(path, start, EXPECTED)
            if len(start) < HEADER:
                raise damaged(path, EXPECTED, "it is shorter than its header")
            # Unmapped when the last view of it is gone; closing it earlier would fail.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return parse_mat(memoryview(mapped), path)
    except FileNotFoundError:
        raise ScaeError(f"File {path} does not exist.") from None
    except OSError as error:
        raise damaged(path, EXPECTED, reason(error)) from None


def parse_mat(data: memoryview, path: Path, copy: bool = True) -> dict[str, MatValue]:
    """The same for the bytes of a file; `path` is what errors name.

    Without `copy`, arrays may be views of `data`.
    """
    order = {b"IM": "<", b"MI": ">"}.get(bytes(data[126:128]))
    if order is None:
        hint = "it is a version 7.3 (HDF5) file" if bytes(data[1:4]) == b"HDF" else None
        raise damaged(path, EXPECTED, hint or "its header has no byte-order mark")
    parser = _Parser(order, copy)
    try:
        return parser.variables(data[HEADER:])
    except (_MalformedError, ValueError, struct.error, zlib.error) as error:
        raise damaged(path, EXPECTED, reason(error)) from None


class _MalformedError(Exception):
    pass


class _Parser:
    def __init__(self, order: str, copy: bool) -> None:
        self._order, self._copy = order, copy

    def variables(self, body: memoryview) -> dict[str, MatValue]:
        found: dict[str, MatValue] = {}
        at = 0
        while at < len(body):
            kind, payload, at = self._element(body, at)
            if kind == COMPRESSED:
                inner = _Parser(self._order, copy=False)  # inflated bytes belong to nobody else
                name, value = inner._matrix(self._inflate(payload), 0)
            elif kind == MATRIX:
                name, value = self._matrix(payload, 0)
            else:
                continue
            if value is not None:
                found[name] = value
        return found

    def _element(self, data: memoryview, at: int) -> tuple[int, memoryview, int]:
        """Type, contents and end of the element that starts at `at`."""
        if at + 8 > len(data):
            raise _MalformedError("it ends inside an element")
        kind, size = struct.unpack_from(self._order + "II", data, at)
        if kind >> 16:  # elements of up to four bytes share one word for type and size
            size, kind = kind >> 16, kind & 0xFFFF
            if size > 4:
                raise _MalformedError("a small element claims more than 4 bytes")
            return kind, data[at + 4 : at + 4 + size], at + 8
        start = at + 8
        if start + size > len(data):
            raise _MalformedError("it ends inside an element")
        end = start + size
        if kind != COMPRESSED:
            end = min(end + -size % 8, len(data))
        return kind, data[start : start + size], end

    def _inflate(self, payload: memoryview) -> memoryview:
        """Contents of the one matrix in a compressed element, as long as it says it is."""
        head = zlib.decompressobj().decompress(payload[:1024], 8)
        if len(head) < 8:
            raise _MalformedError("a compressed element is cut short")
        kind, size = struct.unpack(self._order + "II", head)
        if kind != MATRIX:
            raise _MalformedError("a compressed element is not a matrix")
        if size > MAX_DEFLATE_RATIO * len(payload):
            raise _MalformedError("a compressed element claims more than it can hold")
        inflater = zlib.decompressobj()
        whole = inflater.decompress(payload, size + 8)
        # Asking for one byte more makes zlib verify its checksum at the true end.
        more = inflater.decompress(inflater.unconsumed_tail, 1)
        if len(whole) != size + 8 or more or not inflater.eof:
            raise _MalformedError("a compressed element is cut short or too long")
        return memoryview(whole)[8:]

    def _matrix(self, data: memoryview, depth: int) -> tuple[str, MatValue | None]:
        if len(data) == 0:
            return "", None
        _, flags, at = self._element(data, 0)
        _, dimensions, at = self._element(data, at)
        _, name, at = self._element(data, at)
        if len(flags) < 4 or len(dimensions) % 4 or not 8 <= len(dimensions) <= 128:
            raise _MalformedError("a matrix has no valid flags or dimensions")
        kind = struct.unpack_from(self._order + "I", flags)[0] & 0xFF
        shape = tuple(struct.unpack(f"{self._order}{len(dimensions) // 4}i", dimensions))
        if min(shape) < 0:
            raise _MalformedError("a matrix has a negative dimension")
        title = bytes(name[:256]).decode("ascii", "replace")
        if kind == STRUCT:
            return title, self._fields(data, at, shape, depth)
        if kind not in NUMERIC:
            return title, None
        return title, self._numbers(data, at, shape)

    def _numbers(self, data: memoryview, at: int, shape: tuple[int, ...]) -> np.ndarray:
        kind, values, _ = self._element(data, at)
        if kind not in STORAGE:
            raise _MalformedError(f"a matrix holds values of unknown type {kind}")
        dtype = np.dtype(self._order + STORAGE[kind])
        if math.prod(shape) * dtype.itemsize != len(values):
            raise _MalformedError(f"a matrix of {shape} has {len(values)} bytes of data")
        # A copy of what is mapped: another process could cut the file short under a view.
        flat = np.frombuffer(values, dtype).astype(dtype.newbyteorder("="), copy=self._copy)
        return flat.reshape(shape, order="F")

    def _fields(
        self, data: memoryview, at: int, shape: tuple[int, ...], depth: int
    ) -> dict[str, MatValue] | None:
        if math.prod(shape) != 1 or depth >= MAX_DEPTH:
            return None
        _, length, at = self._element(data, at)
        if len(length) != 4:
            raise _MalformedError("a structure has no length of field names")
        width = struct.unpack(self._order + "i", length)[0]
        _, names, at = self._element(data, at)
        if width < 1 or len(names) % width:
            raise _MalformedError("a structure has malformed field names")
        fields: dict[str, MatValue] = {}
        for start in range(0, len(names), width):
            title = bytes(names[start : start + width]).split(b"\0")[0].decode("ascii", "replace")
            kind, payload, at = self._element(data, at)
            if kind != MATRIX:
                raise _MalformedError("a field of a structure is not a matrix")
            _, value = self._matrix(payload, depth + 1)
            if value is not None:
                fields[title] = value
        return fields
