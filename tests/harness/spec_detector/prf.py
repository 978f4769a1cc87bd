"""The PRF: SipHash-2-4 with 128 bits, byte by byte, after its paper and reference code."""

import struct

MASK = (1 << 64) - 1


def siphash_2_4_128(key: bytes, message: bytes) -> bytes:
    """The 16 bytes that the reference's `siphash(in, inlen, k, out, 16)` writes."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    v[1] ^= 0xEE

    def rotl(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return struct.pack("<QQ", first, v[0] ^ v[1] ^ v[2] ^ v[3])


def words(key: bytes, *tokens: int) -> tuple[int, int]:
    """The even and the odd word of a message of tokens."""
    even, odd = struct.unpack("<QQ", siphash_2_4_128(key, struct.pack(f"<{len(tokens)}I", *tokens)))
    return even, odd


def philox_words(key: tuple[int, int], count: int) -> list[int]:
    """Philox-4x64 with ten rounds (Salmon et al. 2011): the blocks of counters 1, 2, ... word by word."""
    drawn: list[int] = []
    counter = 0
    while len(drawn) < count:
        counter += 1
        x, k0, k1 = [counter, 0, 0, 0], *key
        for _ in range(10):
            high0, low0 = divmod(0xD2E7470EE14C6C93 * x[0], 1 << 64)
            high1, low1 = divmod(0xCA5A826395121157 * x[2], 1 << 64)
            x = [high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0]
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
        drawn += x
    return drawn[:count]
