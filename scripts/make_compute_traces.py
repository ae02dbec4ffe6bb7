#!/usr/bin/env python3
"""Makes the data of the compute scenarios in traces/: what goes in, and what NumPy says comes out.

    pip install numpy ml_dtypes
    python3 scripts/make_compute_traces.py

Running it again yields the same bytes. It prints the hashes and values that the scenarios expect.
"""

import hashlib
import pathlib
import struct
import zlib

import ml_dtypes
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "traces"
BF16 = ml_dtypes.bfloat16

FIRST, LAST, META, DMB, RING = 0x04000000, 0x08000000, 0x00800000, 0x40000000, 0x01000000
CRC32 = 0x01100003


def all_reduce():
    """Four ranks' gradients and their sum: bfloat16, summed in rank order in fp32."""
    rng = np.random.default_rng(1)
    ranks = (rng.standard_normal((4, 8192)) * 0.1).astype(BF16)
    total = ranks[0].astype(np.float32)
    for rank, values in enumerate(ranks):
        (OUT / f"all-reduce.rank{rank}.bin").write_bytes(values.tobytes())
        total = total if rank == 0 else total + values.astype(np.float32)
    (OUT / "all-reduce.sum.bin").write_bytes(total.astype(BF16).tobytes())


def k_cache():
    """Keys of 512 tokens, 128 dimensions each; prints the hash of their transpose."""
    rng = np.random.default_rng(2)
    keys = rng.standard_normal((512, 128)).astype(BF16)
    (OUT / "k-cache.bin").write_bytes(keys.tobytes())
    digest = hashlib.sha256(np.ascontiguousarray(keys.T).tobytes()).hexdigest()
    print("k-cache transposed, sha256:", digest)


def descriptor(len_ctrl, meta_ctrl, address):
    return struct.pack("<IIQ", len_ctrl | RING, meta_ctrl, address)


def meta(first, xor_in, xor_out):
    return struct.pack("<IIII", META | RING | first, 0, xor_in, xor_out)


def crc_copy():
    """Rings of two packets. The first copies 60000 bytes, sends their CRC-32 behind them, and holds the
    queue until that is done. The second reads the copy back, validates it against that CRC, and copies
    it on."""
    source, copy, crc, again, zero = 0x1000000, 0x2000000, 0x3000000, 0x4000000, 0x5000000
    send, copied, validate = 0x10000, 0x80000, 0x4000
    size = 60000
    tx = [
        meta(FIRST, 0xFFFFFFFF, 0xFFFFFFFF),
        descriptor(4 | DMB, CRC32 | send | copied, zero),
        descriptor(size | LAST, CRC32 | send | copied, source),
        meta(FIRST, 0xFFFFFFFF, 0xFFFFFFFF),
        descriptor(4, CRC32 | validate | copied, zero),
        descriptor(4, CRC32 | validate | copied, crc),
        descriptor(size | LAST, CRC32 | validate | copied, copy),
    ]
    rx = [descriptor(size, 0, copy), descriptor(4, 0, crc), descriptor(size, 0, again)]
    (OUT / "crc-copy.tx.bin").write_bytes(b"".join(tx))
    (OUT / "crc-copy.rx.bin").write_bytes(b"".join(rx))
    data = np.arange(size // 4, dtype="<u4").tobytes()
    print(f"crc-copy: {zlib.crc32(data):#010x}")


def casts():
    values = [0.0, -0.0, 1.0, -1.0, 0.1, 3.3, 15.5, 15.75, 17.0, 240.0, 248.0, 1e-3, 6e-5, -57344.0, 1e9]
    values = np.array(values + [float("nan")], dtype=np.float32).astype(BF16)
    for name, dtype in [("fp8_e3", "float8_e3m4"), ("fp8_e4", "float8_e4m3"), ("fp8_e5", "float8_e5m2")]:
        codes = values.astype(getattr(ml_dtypes, dtype)).view(np.uint8)
        print(f"cast to {name}:", codes.tobytes().hex(" "))


def main():
    all_reduce()
    k_cache()
    crc_copy()
    casts()


if __name__ == "__main__":
    main()
