#!/usr/bin/env python3
"""Makes tests/vectors/: what NumPy and ml_dtypes say the compute engine's arithmetic yields.

    pip install numpy ml_dtypes
    python3 scripts/make_compute_vectors.py

Running it again yields the same bytes. NaNs are written as the positive quiet NaN of their type, which is
what the engine lets out (docs/compute.md, "Numbers").

casts.gz and reductions.gz hold sections: a line "name:count:bytes", then the elements, that many of that many
bytes each. They lie transposed, first all lowest bytes, then all next ones, and each byte is less the one before
it, modulo 256: gzip makes little of that. transposes.txt has a case a line: permutation, element bytes, the four dimensions, CRC-32 of the result. The source of a
transpose is the bytes n * 151 + (n >> 8) * 7 modulo 256, n from 0.
"""

import gzip
import itertools
import pathlib
import warnings
import zlib
from fractions import Fraction

import ml_dtypes
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "tests" / "vectors"

FLOATS = {
    "fp32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8_e3": ml_dtypes.float8_e3m4,
    "fp8_e4": ml_dtypes.float8_e4m3,
    "fp8_e4_ocp": ml_dtypes.float8_e4m3fn,
    "fp8_e5": ml_dtypes.float8_e5m2,
}
INTEGERS = {
    f"{sign}int{bits}": np.dtype(f"{sign}int{bits}").type
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
NAN = {
    "fp32": 0x7FC00000,
    "bfloat16": 0x7FC0,
    "fp16": 0x7E00,
    "fp8_e3": 0x78,
    "fp8_e4": 0x7C,
    "fp8_e4_ocp": 0x7F,
    "fp8_e5": 0x7E,
}
CODES = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def codes_of(values, name):
    """The codes of an array of float type `name`, NaNs made one."""
    codes = np.array(values).view(CODES[values.dtype.itemsize]).copy()
    codes[np.isnan(values.astype(np.float32))] = NAN[name]
    return codes


def all_values(name):
    """Every value of a float type of at most 16 bits, in order of the codes."""
    dtype = np.dtype(FLOATS[name])
    code = CODES[dtype.itemsize]
    return np.arange(1 << 8 * dtype.itemsize, dtype=code).view(dtype)


def around_midpoints(name):
    """For each two neighbouring finite positive values: the fp32 half way, and its neighbours."""
    values = all_values(name)[: 1 << 8 * np.dtype(FLOATS[name]).itemsize - 1].astype(np.float32)
    values = values[np.isfinite(values)].astype(np.float64)
    middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    below = np.nextafter(middle, np.float32(0))
    above = np.nextafter(middle, np.float32(np.inf))
    return np.stack([below, middle, above], axis=1).ravel()


def to_float(values, name):
    return codes_of(values.astype(FLOATS[name]), name)


def to_integer(values, name):
    """Nearest, ties to even; out of range the nearest there is; NaN is 0."""
    info = np.iinfo(INTEGERS[name])
    exact = [0 if np.isnan(v) else v for v in np.rint(values).tolist()]
    limit = lambda v: info.min if v < info.min else info.max if v > info.max else int(v)
    return np.array([limit(v) for v in exact], dtype=INTEGERS[name])


def interesting_floats():
    powers = [2.0**e for e in (-149, -126, -30, -1, 0, 1, 6, 7, 8, 15, 16, 22, 23, 24, 31, 32, 62, 63, 64, 127)]
    values = [0.0, 0.5, 1.5, 2.5, 3.5, 126.5, 127.5, 254.5, 255.5, 32766.5, 32767.5, 65534.5, 65535.5]
    values += [8388606.5, 8388607.0, 8388607.5, 8388609.0, np.inf, np.nan] + powers
    base = np.array(values, dtype=np.float32)
    near = [np.nextafter(base, np.float32(0)), base, np.nextafter(base, np.float32(np.inf))]
    positive = np.concatenate(near)
    return np.concatenate([positive, -positive])


def casts():
    small = [name for name in FLOATS if name != "fp32"]
    for source, target in itertools.product(small, FLOATS):
        if source != target:
            yield f"{source} {target}", to_float(all_values(source), target)
    for name in small:
        inputs = around_midpoints(name)
        yield f"midpoints {name}", inputs
        yield f"midpoints {name} rounded", to_float(inputs, name)
        yield f"midpoints {name} rounded negative", to_float(-inputs, name)
    inputs = interesting_floats()
    yield "floats", inputs
    for name in FLOATS:
        yield f"floats {name}", to_float(inputs, name)
    for name in INTEGERS:
        yield f"floats {name}", to_integer(inputs, name)
        info = np.iinfo(INTEGERS[name])
        values = [0, 1, 2, 3, 100, info.max - 1, info.max, info.min, info.min + 1]
        values += [v for e in (23, 24, 25, 31, 40, 62) for v in ((1 << e) - 1, (1 << e) + 1, (1 << e) + 3)]
        values = [v for v in values if info.min <= v <= info.max]
        integers = np.array(values, dtype=INTEGERS[name])
        yield f"integers {name}", integers
        yield f"integers {name} fp32", integers.astype(np.float32)


def nearest_fp32(exact):
    """The fp32 nearest to a rational number; of two the even one."""
    first = np.float32(float(exact))
    around = [first, np.nextafter(first, np.float32(-np.inf)), np.nextafter(first, np.float32(np.inf))]
    distance = lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1)
    return min((v for v in around if np.isfinite(v)), key=distance)


def fused(a, b, c):
    """a * b + c with one rounding, element by element."""
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c)]
    return np.array([nearest_fp32(v) for v in exact], dtype=np.float32)


REDUCED = 96  # elements of a source

def random_sources(rng, name, count):
    if name in INTEGERS:
        info = np.iinfo(INTEGERS[name])
        return rng.integers(info.min, info.max, (count, REDUCED), dtype=INTEGERS[name], endpoint=True)
    values = rng.standard_normal((count, REDUCED)) * 2.0 ** rng.integers(-3, 4, (count, REDUCED))
    return values.astype(FLOATS[name])


def minimum(a, b):
    """IEEE 754-2019 minimum: NaN propagates, -0 is below +0."""
    return np.where((a == b) & (np.signbit(a) != np.signbit(b)), np.copysign(a, -1), np.minimum(a, b))


def reduce(op, sources, acc_name, scales):
    if acc_name in INTEGERS:
        dtype = INTEGERS[acc_name]
        convert = lambda v: v if v.dtype == dtype else to_integer(v.astype(np.float32), acc_name)
        acc = convert(sources[0])
        for source in sources[1:]:
            value = convert(source)
            acc = {"add": np.add, "min": np.minimum, "max": np.maximum}[op](acc, value)
        return acc
    rounded = lambda v: v.astype(FLOATS[acc_name]).astype(np.float32)
    values = [rounded(source.astype(np.float32)) for source in sources]
    if op == "fma":
        acc = np.zeros(REDUCED, dtype=np.float32)
        for value, scale in zip(values, scales):
            acc = rounded(fused(value, np.full(REDUCED, scale, dtype=np.float32), acc))
        return acc
    acc = values[0]
    for value in values[1:]:
        if op == "add":
            acc = rounded(acc + value)
        elif op == "min":
            acc = minimum(acc, value)
        else:
            acc = -minimum(-acc, -value)
    return acc


def reductions():
    rng = np.random.default_rng(20260801)
    cases = [
        ("add", 4, "fp32", "fp32", "fp32"),
        ("add", 4, "bfloat16", "fp32", "bfloat16"),
        ("add", 3, "bfloat16", "bfloat16", "bfloat16"),
        ("add", 32, "fp16", "fp16", "fp16"),
        ("add", 5, "fp16", "fp32", "fp8_e5"),
        ("add", 7, "fp8_e4", "fp32", "bfloat16"),
        ("add", 2, "fp8_e3", "fp8_e4", "fp8_e3"),
        ("add", 3, "int8", "int32", "int8"),
        ("add", 3, "int32", "int32", "fp32"),
        ("add", 9, "uint16", "uint16", "uint16"),
        ("add", 2, "int64", "int64", "int64"),
        ("add", 3, "int32", "fp32", "uint32"),
        ("add", 2, "fp32", "int32", "int32"),
        ("min", 4, "fp32", "fp32", "fp32"),
        ("max", 3, "bfloat16", "fp32", "fp16"),
        ("min", 3, "uint64", "uint64", "uint64"),
        ("max", 5, "int16", "int16", "int8"),
        ("max", 2, "fp8_e5", "bfloat16", "fp8_e4"),
        ("fma", 4, "fp32", "fp32", "fp32"),
        ("fma", 3, "bfloat16", "fp32", "bfloat16"),
        ("fma", 3, "bfloat16", "bfloat16", "bfloat16"),
        ("fma", 2, "fp8_e4", "fp16", "fp8_e4"),
    ]
    for op, count, in_name, acc_name, out_name in cases:
        sources = random_sources(rng, in_name, count)
        scales = rng.standard_normal(count).astype(np.float32)
        acc = reduce(op, list(sources), acc_name, scales)
        if out_name == acc_name:
            result = acc if acc_name in INTEGERS else to_float(acc, out_name)
        elif out_name in INTEGERS:
            result = to_integer(acc.astype(np.float32), out_name)
        else:
            result = to_float(acc.astype(np.float32), out_name)
        name = f"{op} {count} {in_name} {acc_name} {out_name}"
        yield f"{name} sources", sources
        yield f"{name} scales", scales
        yield f"{name} result", result


PERMUTATIONS = "WZXY WXZY WYXZ WYZX WZYX ZXYW ZWXY XYZW XWYZ YXWZ YWXZ XYWZ".split()
SHAPES = [(1, 1, 1, 1), (2, 3, 4, 5), (1, 16, 128, 1), (7, 1, 3, 11), (1, 17, 13, 1), (5, 4, 3, 2), (3, 1, 1, 29)]


def transposes():
    for permutation, size, shape in itertools.product(PERMUTATIONS, range(1, 9), SHAPES):
        count = int(np.prod(shape)) * size
        if count > 0x4000:
            continue
        n = np.arange(count, dtype=np.uint32)
        source = (n * 151 + (n >> 8) * 7).astype(np.uint8).reshape(*shape, size)
        axes = ["WXYZ".index(letter) for letter in permutation]
        result = source.transpose(*axes, 4).tobytes()
        dims = " ".join(map(str, shape))
        yield f"{permutation} {size} {dims} {zlib.crc32(result):08x}"


def write_sections(name, sections):
    data = b""
    for section, array in sections:
        size = array.dtype.itemsize
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)
        planes = raw.reshape(-1, size).T.ravel()
        data += f"{section}:{array.size}:{size}\n".encode()
        data += np.diff(planes, prepend=np.uint8(0)).tobytes()
    (OUT / name).write_bytes(gzip.compress(data, 9, mtime=0))


def main():
    warnings.simplefilter("ignore")
    OUT.mkdir(exist_ok=True)
    write_sections("casts.gz", casts())
    write_sections("reductions.gz", reductions())
    (OUT / "transposes.txt").write_text("\n".join(transposes()) + "\n")


if __name__ == "__main__":
    main()
