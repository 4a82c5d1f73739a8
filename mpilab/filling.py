"""What buffers and files hold before a call: pseudo-random bytes, made from the seed of a case here
as in src_c/harness/buffers.c."""

from itertools import groupby

import numpy as np

from mpilab.expected import GUARD_BYTES

# Bytes that are made by one call of numpy's: many ranks' short buffers, few long ones.
_AT_A_TIME = 1 << 20
# SipHash-1-3: what its state begins with.
_SIP = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def words(seed, ranks, stream, count):
    """The words of a stream of each of `ranks`, uint64 [ranks, count]: SipHash-1-3 (Aumasson,
    Bernstein 2012) of 1, 2, … keyed by seed and stream.

    Whoever knows the words of one stream cannot tell those of another one: see
    src_c/harness/buffers.c.
    """
    streams = np.array([4 * rank + stream for rank in ranks], np.uint64)[:, None]
    keys = (np.uint64(seed), streams) * 2
    v = [np.broadcast_to(key ^ np.uint64(begin), (len(ranks), count)).copy()
         for key, begin in zip(keys, _SIP, strict=True)]  # fmt: skip
    for message in (np.arange(1, count + 1, dtype=np.uint64), np.uint64(8 << 56)):
        v[3] ^= message
        _sip_round(v)
        v[0] ^= message
    v[2] ^= np.uint64(0xFF)
    for _ in range(3):
        _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _sip_round(v):
    for place, other, bits, turned in ((0, 1, 13, True), (2, 3, 16, False),
                                       (0, 3, 21, False), (2, 1, 17, True)):  # fmt: skip
        v[place] += v[other]
        v[other] = _rotated(v[other], bits) ^ v[place]
        if turned:
            v[place] = _rotated(v[place], 32)


def _rotated(words, bits):
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)


def fill(seed, ranks, stream, data_bytes):
    """The memory of each of `ranks` with so many bytes of data: list of uint8 arrays."""
    filled = []
    for (_, data), group in groupby(
        enumerate(zip(ranks, data_bytes, strict=True)),
        lambda each: (each[0] * (each[1][1] + 2 * GUARD_BYTES) // _AT_A_TIME, each[1][1]),
    ):
        total = data + 2 * GUARD_BYTES
        rows = words(seed, [rank for _, (rank, _) in group], stream, -(-total // 8))
        filled += [row.view(np.uint8)[:total].copy() for row in rows]
    return filled
