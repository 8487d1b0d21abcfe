"""Python values as MLIR attribute and type texts, and back.

Texts, because the native importer parses each distinct one once. In them, "%k"
stands for operand k and "@name" for a graph that an operator takes.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from typing import Any

import torch

from . import _torch
from .errors import UnsupportedError

DTYPES: dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.bool: "i1",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.complex128: "complex<f64>",
    torch.complex64: "complex<f32>",
    torch.complex32: "complex<f16>",
}
for _name, _text in (
    ("float8_e4m3fn", "f8E4M3FN"),
    ("float8_e5m2", "f8E5M2"),
    ("float8_e4m3fnuz", "f8E4M3FNUZ"),
    ("float8_e5m2fnuz", "f8E5M2FNUZ"),
    ("float8_e8m0fnu", "f8E8M0FNU"),
):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = _text

DTYPE_OF_TEXT = {text: dtype for dtype, text in DTYPES.items()}
LOW_PRECISION = frozenset(
    dtype for dtype in DTYPES if dtype.is_floating_point and dtype.itemsize <= 2
)


def dtype_text(dtype: torch.dtype) -> str:
    """Element type of a tensor type. Raises UnsupportedError for quantized and packed dtypes."""
    text = DTYPES.get(dtype)
    if text is None:
        raise UnsupportedError(f"no type for {dtype}")
    return text


# Not through the property of fake tensors, which takes as long as all the rest.
_layout_of = torch._C.TensorBase.layout.__get__  # type: ignore[attr-defined]
_types: dict[tuple[torch.dtype, torch.Size], str] = {}


def _ranked(dtype: torch.dtype, shape: torch.Size) -> str:
    dims = "".join(f"{size}x" if type(size) is int else "?x" for size in shape)
    return f"tensor<{dims}{dtype_text(dtype)}>"


def type_text(value: Any) -> str:
    """MLIR type of a traced value: a tensor, a symbolic number, or nothing. An object such as a
    device mesh is nothing that a pass looks at."""
    if isinstance(value, torch.Tensor):
        if _layout_of(value) is not torch.strided:
            raise UnsupportedError(f"a tensor of layout {value.layout}")
        key = value.dtype, value.shape
        try:
            text = _types.get(key)
        except TypeError:  # a symbolic size has no hash
            return _ranked(*key)
        if text is None:
            text = _types[key] = _ranked(*key)
        return text
    if isinstance(value, bool | torch.SymBool):
        return "i1"
    if isinstance(value, int | torch.SymInt):
        return "index"
    if isinstance(value, float | torch.SymFloat):
        return "f64"
    if value is None or _torch.is_object(value):
        return "none"
    raise UnsupportedError(f"a value of type {type(value).__name__}")


@functools.lru_cache(maxsize=65536)
def quoted(text: str) -> str:
    """A string attribute."""
    escaped = "".join(_escape(byte) for byte in text.encode())
    return f'"{escaped}"'


def _escape(byte: int) -> str:
    plain = 32 <= byte < 127 and byte not in (34, 92)
    return chr(byte) if plain else f"\\{byte:02X}"


def float_text(value: float) -> str:
    """An f64 attribute with exactly the bits of `value`."""
    if not math.isfinite(value):
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"0x{bits:016X} : f64"
    mantissa, exponent, power = repr(value).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}{exponent}{power}"


def attribute_text(value: Any) -> str:
    """Attribute for an argument that is not a tensor. Raises UnsupportedError."""
    if value is None:
        return "unit"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(2**63) <= value < 2**63 else quoted(str(value))
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, torch.dtype):
        return dtype_text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(attribute_text(item) for item in value) + "]"
    if isinstance(value, torch.device | torch.layout | torch.memory_format | complex):
        return quoted(str(value))
    if _torch.is_operator(value) or _torch.is_higher_order(value):  # what such a one calls
        return quoted(str(value))
    raise UnsupportedError(f"an argument of type {type(value).__name__}")


_TOKEN = re.compile(
    r"\s*(?:(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<punct>[\[\]{},=:<>])"
    r"|(?P<word>[^\s\[\]{},=:<>\"]+))"
)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = [m.group().strip() for m in _TOKEN.finditer(text)]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def value(self) -> Any:
        if self.skip("["):
            return list(self._until("]", self.value))
        if self.skip("{"):
            return dict(self._until("}", self._entry))
        word = self.take()
        if word == "complex" and self.skip("<"):
            word = f"complex<{self.take()}>"
            self.skip(">")
        result = _scalar(word)
        if self.skip(":"):  # the type of a number
            kind = self.take()
            if isinstance(result, int) and kind == "f64" and word.startswith("0x"):
                return struct.unpack("<d", struct.pack("<Q", result))[0]
        return result

    def _entry(self) -> tuple[str, Any]:
        name = self.take().strip('"')
        return (name, self.value()) if self.skip("=") else (name, None)

    def _until(self, end: str, item: Any) -> Any:
        while not self.skip(end):
            yield item()
            self.skip(",")


_ESCAPE = re.compile(rb'\\(?:([\\"])|([0-9A-Fa-f]{2}))')


def _unescape(match: re.Match[bytes]) -> bytes:
    return match.group(1) or bytes([int(match.group(2), 16)])


def _scalar(word: str) -> Any:
    if word.startswith('"'):
        return _ESCAPE.sub(_unescape, word[1:-1].encode()).decode()
    if word in ("true", "false", "unit"):
        return {"true": True, "false": False, "unit": None}[word]
    if word in DTYPE_OF_TEXT:
        return DTYPE_OF_TEXT[word]
    if re.fullmatch(r"-?\d+|0x[0-9A-F]+", word):
        return int(word, 0)
    return float(word)


def parse_dictionary(text: str) -> dict[str, Any]:
    """Python values of a dictionary attribute; "" is an empty one. Raises ValueError."""
    if not text:
        return {}
    parser = _Parser(text)
    result = parser.value()
    if not isinstance(result, dict) or parser.peek():
        raise ValueError(f"not a dictionary attribute: {text}")
    return result
