/* The largest numbers of rows, each row read once: most numbers are compared with the least of those found so far, a
 * piece of the row at a time, and left behind. */
#include <stdint.h>
#include <string.h>

#define PIECE 64
#define INLINE static inline __attribute__((always_inline))

INLINE float number(const void *row, int64_t i, int half) {
    float value;
    uint32_t raw;
    if (!half) {
        memcpy(&value, (const float *)row + i, sizeof value);
        return value;
    }
    raw = (uint32_t)((const uint16_t *)row)[i] << 16;
    memcpy(&value, &raw, sizeof value);
    return value;
}

/* Rises with the number, what is none coming last, and falls with the place among equal numbers. */
INLINE int64_t key_of(float value, int64_t place) {
    int32_t bits;
    value += 0.0f; /* makes -0 and 0 the same */
    memcpy(&bits, &value, sizeof bits);
    int32_t rising = value != value ? INT32_MAX : bits ^ ((bits >> 31) & INT32_MAX);
    return (int64_t)((uint64_t)rising << 32 | (UINT32_MAX - (uint64_t)place));
}

INLINE float number_of(int64_t key) {
    int32_t rising = (int32_t)(key >> 32), bits = rising ^ ((rising >> 31) & INT32_MAX);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Puts a key in place of the root of a heap whose root is the least. */
static void replace_root(int64_t *heap, int64_t size, int64_t key) {
    int64_t at = 0;
    for (int64_t child = 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

INLINE void find(const void *row, int64_t vocab, int64_t width, double *values, int64_t *heap, int half) {
    for (int64_t i = 0; i < width; i++) heap[i] = INT64_MIN;
    for (int64_t start = 0; start < vocab; start += PIECE) {
        int64_t stop = vocab - start < PIECE ? vocab : start + PIECE;
        if (start >= width && stop == start + PIECE) {
            float least = number_of(heap[0]);
            int larger = 0;
            for (int i = 0; i < PIECE; i++) larger |= !(number(row, start + i, half) <= least);
            if (!larger) continue;
        }
        for (int64_t i = start; i < stop; i++) {
            int64_t key = key_of(number(row, i, half), i);
            if (key > heap[0]) replace_root(heap, width, key);
        }
    }
    for (int64_t left = width - 1; left > 0; left--) { /* the least goes to the end */
        int64_t least = heap[0];
        replace_root(heap, left, heap[left]);
        heap[left] = least;
    }
    for (int64_t i = 0; i < width; i++) {
        values[i] = number_of(heap[i]);
        heap[i] = UINT32_MAX - (heap[i] & UINT32_MAX);
    }
}

/* The `width` largest numbers of each row [rows, vocab], which begin every `stride` numbers, and their places, both
 * [rows, width], falling. */
void ttmark_largest(const void *logits, int64_t rows, int64_t vocab, int64_t stride, int half, int64_t width,
                    double *values, int64_t *places) {
    for (int64_t row = 0; row < rows; row++) {
        if (half)
            find((const uint16_t *)logits + row * stride, vocab, width, values + row * width, places + row * width, 1);
        else
            find((const float *)logits + row * stride, vocab, width, values + row * width, places + row * width, 0);
    }
}
