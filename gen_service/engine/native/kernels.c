/* The small operations of a pass on a CPU: what torch spends more time calling than computing.
 *
 * Every row is computed by itself, in an order that its own numbers of elements alone decide: the same bits in any
 * batch. Numbers are float32 or bfloat16 (`half` says which); sums are in float32. Strides are in elements.
 * GCC's vector extensions say what is to be done at once, and any processor's instructions do it.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
#define KEYS (4 * LANES) /* cached keys that are scored together */
#define QUERIES 32       /* query rows that share a reading of the keys */
#define TOGETHER 4       /* query rows whose sums stay in registers */
#define MOST_DIM 256
#define LOWEST (-1e30f) /* below every score, and finite: differences with it are not NaN */

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef int8_t bytes __attribute__((vector_size(LANES)));

/* GCC 12 makes six instructions of what AVX-512 does in one. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDEN(values) ((bits)_mm512_cvtepu16_epi32((__m256i)(values)))
#define NARROW(values) ((halves)_mm512_cvtepi32_epi16((__m512i)(values)))
#else
#define WIDEN(values) __builtin_convertvector(values, bits)
#define NARROW(values) __builtin_convertvector(values, halves)
#endif

INLINE vec all(float value) { return (vec){0} + value; }

INLINE vec load_float(const float *from) {
    vec read;
    memcpy(&read, from, sizeof read);
    return read;
}

INLINE void store_float(float *to, vec values) { memcpy(to, &values, sizeof values); }

INLINE const void *at(const void *start, int64_t element, int half) {
    return (const char *)start + element * (half ? 2 : 4);
}

INLINE vec load(const void *from, int half) {
    if (!half) return load_float(from);
    halves read;
    memcpy(&read, from, sizeof read);
    return (vec)(WIDEN(read) << 16);
}

/* bfloat16 is rounded to the nearest, to even where two are; what is not a number stays so. */
INLINE void store(void *to, vec values, int half) {
    if (!half) {
        store_float(to, values);
        return;
    }
    bits raw = (bits)values;
    bits rounded = (raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16;
    bits nan = (bits)(values != values);
    halves kept = NARROW((rounded & ~nan) | (nan & 0x7fc0u));
    memcpy(to, &kept, sizeof kept);
}

INLINE float load_one(const void *from, int half) {
    float value;
    uint32_t raw = 0;
    if (!half) {
        memcpy(&value, from, sizeof value);
        return value;
    }
    memcpy((char *)&raw + 2, from, 2);
    memcpy(&value, &raw, sizeof value);
    return value;
}

INLINE void store_one(void *to, float value, int half) {
    uint32_t raw;
    uint16_t kept;
    if (!half) {
        memcpy(to, &value, sizeof value);
        return;
    }
    memcpy(&raw, &value, sizeof raw);
    kept = value != value ? 0x7fc0 : (raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16;
    memcpy(to, &kept, sizeof kept);
}

INLINE vec choose(ints condition, vec yes, vec no) {
    return (vec)((condition & (ints)yes) | (~condition & (ints)no));
}

/* Lanes by number, for a step that is a power of two; tables, as compilers do not compute vectors beforehand. */
#define ORDER_4(lane, step, from) lane(from, step), lane(from + 1, step), lane(from + 2, step), lane(from + 3, step)
#define ORDER_8(lane, step, from) ORDER_4(lane, step, from), ORDER_4(lane, step, from + 4)
#if LANES == 16
#define ORDER(lane, step) {ORDER_8(lane, step, 0), ORDER_8(lane, step, 8)}
#define STEPS(lane) {ORDER(lane, 1), ORDER(lane, 2), ORDER(lane, 4), ORDER(lane, 8)}
#elif LANES == 8
#define ORDER(lane, step) {ORDER_8(lane, step, 0)}
#define STEPS(lane) {ORDER(lane, 1), ORDER(lane, 2), ORDER(lane, 4)}
#else
#define ORDER(lane, step) {ORDER_4(lane, step, 0)}
#define STEPS(lane) {ORDER(lane, 1), ORDER(lane, 2)}
#endif
#define ACROSS(lane, step) ((lane) ^ (step))
#define LOW(lane, step) ((lane) & (step) ? LANES + (lane) - (step) : (lane))
#define HIGH(lane, step) ((lane) & (step) ? LANES + (lane) : (lane) + (step))
static const ints across[] = STEPS(ACROSS), low[] = STEPS(LOW), high[] = STEPS(HIGH);
#define STEP_COUNT ((int)(sizeof across / sizeof across[0]))

INLINE float sum(vec values) {
    UNROLL for (int step = 0; step < STEP_COUNT; step++) values += __builtin_shuffle(values, across[step]);
    return values[0];
}

INLINE float largest(vec values) {
    UNROLL for (int step = 0; step < STEP_COUNT; step++) {
        vec other = __builtin_shuffle(values, across[step]);
        values = choose(other > values, other, values);
    }
    return values[0];
}

/* e to the power of each: x = n ln 2 + r, e^r by its series; relative error below 2e-7. */
INLINE vec exponential(vec x) {
    const vec lowest = all(-87.0f), highest = all(88.0f), magic = all(12582912.0f);
    x = choose(x < lowest, lowest, x); /* comparisons with NaN are false, so that it stays */
    x = choose(x > highest, highest, x);
    vec n = (x * 1.44269504f + magic) - magic;
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec series = all(1.9875691500e-4f);
    series = series * r + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    series = series * r * r + r + 1.0f;
    ints power = (__builtin_convertvector(n, ints) + 127) << 23;
    return series * (vec)power;
}

/* RMS normalisation of rows [rows, width], of which row i begins at i * stride. */
INLINE void normalise(const void *from, const void *weight, void *to, int64_t first, int64_t last, int64_t width,
                      int64_t stride, float epsilon, int half) {
    for (int64_t row = first; row < last; row++) {
        const void *x = at(from, row * stride, half);
        void *out = (void *)at(to, row * width, half);
        vec squares[4] = {all(0), all(0), all(0), all(0)};
        int64_t i = 0;
        for (; i + 4 * LANES <= width; i += 4 * LANES)
            UNROLL for (int part = 0; part < 4; part++) {
                vec value = load(at(x, i + part * LANES, half), half);
                squares[part] += value * value;
            }
        float rest = 0.0f;
        for (; i < width; i++) {
            float value = load_one(at(x, i, half), half);
            rest += value * value;
        }
        float total = sum((squares[0] + squares[1]) + (squares[2] + squares[3])) + rest;
        float scale = 1.0f / sqrtf(total / (float)width + epsilon);
        for (i = 0; i + LANES <= width; i += LANES)
            store((void *)at(out, i, half), load(at(x, i, half), half) * scale * load(at(weight, i, half), half), half);
        for (; i < width; i++)
            store_one((void *)at(out, i, half),
                      load_one(at(x, i, half), half) * scale * load_one(at(weight, i, half), half), half);
    }
}

void ttmark_normalise(const void *from, const void *weight, void *to, int64_t first, int64_t last, int64_t width,
                      int64_t stride, float epsilon, int half) {
    if (half)
        normalise(from, weight, to, first, last, width, stride, epsilon, 1);
    else
        normalise(from, weight, to, first, last, width, stride, epsilon, 0);
}

/* Turns heads [rows, heads, dim] in place, row i at i * stride, by complex turns [rows, dim / 2]. The parts of a number
 * lie in the two halves of a head before, and side by side after. */
INLINE void turn(void *packed, const float *turns, int64_t first, int64_t last, int64_t heads, int64_t dim,
                 int64_t stride, int half) {
    float turned[MOST_DIM];
    int64_t count = dim / 2;
    for (int64_t row = first; row < last; row++)
        for (int64_t head = 0; head < heads; head++) {
            void *x = (void *)at(packed, row * stride + head * dim, half);
            const float *by = turns + row * dim;
            for (int64_t i = 0; i < count; i++) {
                float real = load_one(at(x, i, half), half), imaginary = load_one(at(x, i + count, half), half);
                turned[2 * i] = real * by[2 * i] - imaginary * by[2 * i + 1];
                turned[2 * i + 1] = real * by[2 * i + 1] + imaginary * by[2 * i];
            }
            for (int64_t i = 0; i < dim; i += LANES) store((void *)at(x, i, half), load_float(turned + i), half);
        }
}

void ttmark_turn(void *packed, const float *turns, int64_t first, int64_t last, int64_t heads, int64_t dim,
                 int64_t stride, int half) {
    if (half)
        turn(packed, turns, first, last, heads, dim, stride, 1);
    else
        turn(packed, turns, first, last, heads, dim, stride, 0);
}

/* silu(gate) * up of rows [rows, 2 * width], gates first, to [rows, width]; the width is a multiple of 16. */
INLINE void gate(const void *from, void *to, int64_t first, int64_t last, int64_t width, int half) {
    for (int64_t row = first; row < last; row++) {
        const void *x = at(from, row * 2 * width, half);
        void *out = (void *)at(to, row * width, half);
        for (int64_t i = 0; i < width; i += LANES) {
            vec gated = load(at(x, i, half), half), up = load(at(x, i + width, half), half);
            store((void *)at(out, i, half), gated / (1.0f + exponential(-gated)) * up, half);
        }
    }
}

void ttmark_gate(const void *from, void *to, int64_t first, int64_t last, int64_t width, int half) {
    if (half)
        gate(from, to, first, last, width, 1);
    else
        gate(from, to, first, last, width, 0);
}

/* The sum of each of LANES vectors, in its lane. */
INLINE vec sums_of(vec rows[LANES]) {
    UNROLL for (int step = 0; step < STEP_COUNT; step++)
        UNROLL for (int row = 0; row < LANES; row += 2 << step) {
            vec upper = rows[row], lower = rows[row + (1 << step)];
            rows[row] = __builtin_shuffle(upper, lower, low[step]) + __builtin_shuffle(upper, lower, high[step]);
        }
    return rows[0];
}

/* What the rows of a tile have seen so far: sums of values by their masses, the masses, and the highest score. */
struct seen {
    float sums[QUERIES * MOST_DIM], mass[QUERIES], highest[QUERIES]; /* sums: [queries, dim] */
};

/* The scores of up to KEYS keys for TOGETHER queries, as masses [TOGETHER, KEYS] beside the highest so far; what was seen
 * before shrinks with it. */
INLINE void weigh(float *masses, struct seen *seen, const float *queries, int64_t query, const void *keys,
                  int64_t stride, int64_t count, int64_t dim, int half) {
    vec place;
    for (int lane = 0; lane < LANES; lane++) place[lane] = (float)lane;
    for (int part = 0; part * LANES < count; part++) {
        vec products[TOGETHER][LANES];
        for (int lane = 0; lane < LANES; lane++) {
            int64_t key = part * LANES + lane;
            vec product[TOGETHER];
            UNROLL for (int row = 0; row < TOGETHER; row++) product[row] = all(0);
            if (key < count)
                UNROLL for (int64_t i = 0; i < dim; i += LANES) {
                    vec read = load(at(keys, key * stride + i, half), half);
                    UNROLL for (int row = 0; row < TOGETHER; row++)
                        product[row] += read * load_float(queries + (query + row) * dim + i);
                }
            UNROLL for (int row = 0; row < TOGETHER; row++) products[row][lane] = product[row];
        }
        ints beyond = place + (float)(part * LANES) >= (float)count;
        UNROLL for (int row = 0; row < TOGETHER; row++)
            store_float(masses + row * KEYS + part * LANES, choose(beyond, all(LOWEST), sums_of(products[row])));
    }
    for (int row = 0; row < TOGETHER; row++) {
        vec top = all(seen->highest[query + row]), total = all(0);
        float *scores = masses + row * KEYS;
        for (int part = 0; part * LANES < count; part++) {
            vec score = load_float(scores + part * LANES);
            top = choose(score > top, score, top);
        }
        float highest = largest(top);
        for (int part = 0; part * LANES < count; part++) {
            ints beyond = place + (float)(part * LANES) >= (float)count;
            vec mass = choose(beyond, all(0), exponential(load_float(scores + part * LANES) - highest));
            store_float(scores + part * LANES, mass);
            total += mass;
        }
        float shrink = exponential(all(seen->highest[query + row] - highest))[0];
        seen->highest[query + row] = highest;
        seen->mass[query + row] = seen->mass[query + row] * shrink + sum(total);
        for (int64_t i = 0; i < dim; i += LANES) {
            float *sums = seen->sums + (query + row) * dim + i;
            store_float(sums, load_float(sums) * shrink);
        }
    }
}

/* Adds values by their masses [TOGETHER, KEYS], `parts` vectors of each from element `i` on. */
INLINE void add_values(const float *masses, struct seen *seen, int64_t query, const void *values, int64_t stride,
                       int64_t count, int64_t dim, int64_t i, int parts, int half) {
    vec sums[TOGETHER][4];
    UNROLL for (int row = 0; row < TOGETHER; row++)
        UNROLL for (int part = 0; part < parts; part++)
            sums[row][part] = load_float(seen->sums + (query + row) * dim + i + part * LANES);
    for (int64_t key = 0; key < count; key++)
        UNROLL for (int part = 0; part < parts; part++) {
            vec value = load(at(values, key * stride + i + part * LANES, half), half);
            UNROLL for (int row = 0; row < TOGETHER; row++) sums[row][part] += value * masses[row * KEYS + key];
        }
    UNROLL for (int row = 0; row < TOGETHER; row++)
        UNROLL for (int part = 0; part < parts; part++)
            store_float(seen->sums + (query + row) * dim + i + part * LANES, sums[row][part]);
}

/* One more key and value for one query. */
INLINE void add_one(struct seen *seen, int64_t query, const float *turned, const void *key, const void *value,
                    int64_t dim, int half) {
    vec products = all(0);
    for (int64_t i = 0; i < dim; i += LANES) products += load_float(turned + i) * load(at(key, i, half), half);
    float score = sum(products), before = seen->highest[query];
    float highest = score > before ? score : before;
    float shrink = exponential(all(before - highest))[0], mass = exponential(all(score - highest))[0];
    seen->highest[query] = highest;
    seen->mass[query] = seen->mass[query] * shrink + mass;
    for (int64_t i = 0; i < dim; i += LANES)
        store_float(seen->sums + query * dim + i,
                    load_float(seen->sums + query * dim + i) * shrink + load(at(value, i, half), half) * mass);
}

struct attention {
    const void *query, *key, *value, *keys, *values; /* of the pass [rows, heads, dim]; of the cache */
    void *out;                                       /* [rows, heads, dim], contiguous */
    const int32_t *tiles, *own;                      /* [tiles, 4], [rows, depth] */
    const float *sinks;                              /* [heads], scores without a value; NULL: none */
    int64_t query_row, query_head, key_row, key_head, cache_row, cache_head;
    int64_t kv_heads, groups, dim, depth;
    float scale;
    int32_t half;
};

/* Up to QUERIES query rows (row of the pass, head) of one tile and one KV head. */
INLINE void attend_part(const struct attention *a, const int32_t *tile, int64_t kv_head, int64_t begin, int64_t end,
                        int64_t dim, int half) {
    struct seen seen;
    float queries[QUERIES * MOST_DIM], masses[TOGETHER * KEYS]; /* queries: [queries, dim] */
    int64_t count = end - begin, filled = (count + TOGETHER - 1) / TOGETHER * TOGETHER;
    for (int64_t query = 0; query < filled; query++) {
        int64_t row = tile[0] + (begin + query) / a->groups, head = kv_head * a->groups + (begin + query) % a->groups;
        const void *x = at(a->query, row * a->query_row + head * a->query_head, half);
        for (int64_t i = 0; i < dim; i += LANES) {
            store_float(queries + query * dim + i, query < count ? load(at(x, i, half), half) * a->scale : all(0));
            store_float(seen.sums + query * dim + i, all(0));
        }
        seen.mass[query] = a->sinks ? 1.0f : 0.0f;
        seen.highest[query] = a->sinks ? a->sinks[head] : LOWEST;
    }
    for (int64_t start = tile[2]; start < tile[3]; start += KEYS) {
        int64_t keys = tile[3] - start < KEYS ? tile[3] - start : KEYS, stride = a->cache_row;
        const void *key = at(a->keys, start * stride + kv_head * a->cache_head, half);
        const void *value = at(a->values, start * stride + kv_head * a->cache_head, half);
        for (int64_t query = 0; query < filled; query += TOGETHER) {
            int64_t i = 0;
            weigh(masses, &seen, queries, query, key, stride, keys, dim, half);
            for (; i + 4 * LANES <= dim; i += 4 * LANES)
                add_values(masses, &seen, query, value, stride, keys, dim, i, 4, half);
            for (; i < dim; i += LANES) add_values(masses, &seen, query, value, stride, keys, dim, i, 1, half);
        }
    }
    for (int64_t query = 0; query < count; query++) {
        int64_t row = tile[0] + (begin + query) / a->groups, head = kv_head * a->groups + (begin + query) % a->groups;
        for (int64_t level = 0; level < a->depth; level++) {
            int64_t source = a->own[row * a->depth + level];
            if (source < 0) continue;
            int64_t place = source * a->key_row + kv_head * a->key_head;
            add_one(&seen, query, queries + query * dim, at(a->key, place, half), at(a->value, place, half), dim,
                    half);
        }
        void *out = (void *)at(a->out, (row * a->kv_heads * a->groups + head) * dim, half);
        float share = 1.0f / seen.mass[query];
        for (int64_t i = 0; i < dim; i += LANES)
            store((void *)at(out, i, half), load_float(seen.sums + query * dim + i) * share, half);
    }
}

/* A copy of the code for each usual size of a head, whose loops the compiler unrolls. */
static void attend_some(const struct attention *a, const int32_t *tile, int64_t kv_head, int64_t begin, int64_t end) {
    if (a->half && a->dim == 64)
        attend_part(a, tile, kv_head, begin, end, 64, 1);
    else if (a->half && a->dim == 128)
        attend_part(a, tile, kv_head, begin, end, 128, 1);
    else if (a->half)
        attend_part(a, tile, kv_head, begin, end, a->dim, 1);
    else if (a->dim == 64)
        attend_part(a, tile, kv_head, begin, end, 64, 0);
    else
        attend_part(a, tile, kv_head, begin, end, a->dim, 0);
}

/* Units [first, last): tile u / kv_heads for KV head u % kv_heads. */
void ttmark_attend(const struct attention *a, int64_t first, int64_t last) {
    for (int64_t unit = first; unit < last; unit++) {
        const int32_t *tile = a->tiles + 4 * (unit / a->kv_heads);
        int64_t queries = (tile[1] - tile[0]) * a->groups, kv_head = unit % a->kv_heads;
        for (int64_t begin = 0; begin < queries; begin += QUERIES) {
            int64_t end = begin + QUERIES < queries ? begin + QUERIES : queries;
            attend_some(a, tile, kv_head, begin, end);
        }
    }
}

/* Turns queries and keys of all rows [rows, heads + 2 kv_heads, dim] in place, and puts keys and values of the first
 * `kept` rows into the cache rows `slots`. */
void ttmark_turn_and_keep(const struct attention *a, void *packed, const float *turns, int64_t rows,
                          const int64_t *slots, int64_t kept) {
    int64_t heads = a->kv_heads * a->groups, stride = a->query_row, size = a->half ? 2 : 4;
    ttmark_turn(packed, turns, 0, rows, heads + a->kv_heads, a->dim, stride, a->half);
    for (int64_t row = 0; row < kept; row++)
        for (int64_t head = 0; head < a->kv_heads; head++) {
            int64_t from = row * a->key_row + head * a->key_head, to = slots[row] * a->cache_row + head * a->cache_head;
            memcpy((void *)at(a->keys, to, a->half), at(a->key, from, a->half), a->dim * size);
            memcpy((void *)at(a->values, to, a->half), at(a->value, from, a->half), a->dim * size);
        }
}

/* Products with matrices of whole numbers in 4 or 8 bits.
 *
 * A matrix [outs, ins] has a scale and an offset for each output and GROUP inputs: value = scale * code + offset, with
 * codes from 0 and both in float16. It lies in tiles of TILE outputs: tile, group, fourth of inputs, output, input; two
 * fourths share the bytes where a code has 4 bits. Rows are whole numbers too: codes from -127 with a scale for each
 * GROUP numbers. Sums within a group are exact.
 */
#define GROUP 32
#define FOURTHS (GROUP / 4)
#define TILE 16
#define ROWS 8 /* of the pass, whose sums stay in registers */

struct grouped {
    uint8_t *codes;             /* [tiles, groups, TILE * GROUP * bits / 8] */
    uint16_t *scales, *offsets; /* [tiles, groups, TILE] */
    int64_t outs, ins;
    int32_t bits, fine; /* fine: each row is coded as two, the second what the first leaves over */
};

struct coded_rows {
    int8_t *codes;        /* [rows, ins], for a fine matrix [rows, 2, ins] */
    float *scales, *sums; /* likewise of groups; the sums are those of the values that codes stand for */
};

#if defined(__F16C__)
#include <immintrin.h>
INLINE float widen_one(uint16_t raw) { return _cvtsh_ss(raw); }
INLINE uint16_t narrow_one(float value) { return _cvtss_sh(value, 0); }
#else
INLINE float widen_one(uint16_t raw) {
    __fp16 half;
    memcpy(&half, &raw, sizeof raw);
    return half;
}
INLINE uint16_t narrow_one(float value) {
    __fp16 half = value;
    uint16_t raw;
    memcpy(&raw, &half, sizeof raw);
    return raw;
}
#endif

INLINE vec widen(const uint16_t *from) {
#if LANES == 16
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
#elif LANES == 8
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
#else
    vec read;
    for (int lane = 0; lane < LANES; lane++) read[lane] = widen_one(from[lane]);
    return read;
#endif
}

/* For each lane the sum of GROUP products: codes of a matrix, four inputs to a lane, by those of a row. */
INLINE ints dot(const ints *codes, const int8_t *row, int code_bits) {
    int32_t x[FOURTHS];
    memcpy(x, row, sizeof x);
#if defined(__AVX512VNNI__)
    __m512i sums = _mm512_setzero_si512();
    UNROLL for (int i = 0; i < FOURTHS; i++)
        sums = _mm512_dpbusd_epi32(sums, (__m512i)codes[i], _mm512_set1_epi32(x[i]));
    return (ints)sums;
#elif LANES == 16 || LANES == 8
#if LANES == 16
#define ALL_32 _mm512_set1_epi32
#define ALL_16 _mm512_set1_epi16
#define PAIRS _mm512_madd_epi16
#define BYTE_PAIRS _mm512_maddubs_epi16
#define LEFT(value) _mm512_slli_epi16(value, 8)
#define RIGHT(value) _mm512_srli_epi16(value, 8)
#define RIGHT_SIGNED(value) _mm512_srai_epi16(value, 8)
#define ADD_16 _mm512_add_epi16
    typedef __m512i wide;
#else
#define ALL_32 _mm256_set1_epi32
#define ALL_16 _mm256_set1_epi16
#define PAIRS _mm256_madd_epi16
#define BYTE_PAIRS _mm256_maddubs_epi16
#define LEFT(value) _mm256_slli_epi16(value, 8)
#define RIGHT(value) _mm256_srli_epi16(value, 8)
#define RIGHT_SIGNED(value) _mm256_srai_epi16(value, 8)
#define ADD_16 _mm256_add_epi16
    typedef __m256i wide;
#endif
    if (code_bits == 4) { /* 8 sums of two products below 15 * 127 fit into 16 bits */
        wide sums = ALL_32(0);
        UNROLL for (int i = 0; i < FOURTHS; i++) sums = ADD_16(sums, BYTE_PAIRS((wide)codes[i], ALL_32(x[i])));
        return (ints)PAIRS(sums, ALL_16(1));
    }
    ints total = {0};
    UNROLL for (int i = 0; i < FOURTHS; i++) {
        wide by = ALL_32(x[i]), code = (wide)codes[i];
        total += (ints)PAIRS(RIGHT(LEFT(code)), RIGHT_SIGNED(LEFT(by))) + (ints)PAIRS(RIGHT(code), RIGHT_SIGNED(by));
    }
    return total;
#else
    ints total = {0};
    UNROLL for (int i = 0; i < FOURTHS; i++)
        UNROLL for (int byte = 0; byte < 4; byte++)
            total += ((codes[i] >> (8 * byte)) & 255) * (int32_t)row[4 * i + byte];
    return total;
#endif
}

/* The sums of LANES outputs of a tile, from lane `lane` on, for `count` rows, to [count, TILE]. */
INLINE void sum_tile(const struct grouped *m, const struct coded_rows *x, int64_t tile, int lane, int64_t row, int count,
                     float *sums, int code_bits) {
    int64_t groups = m->ins / GROUP, size = TILE * GROUP * code_bits / 8;
    const uint8_t *from = m->codes + tile * groups * size + 4 * lane;
    vec total[ROWS];
    UNROLL for (int r = 0; r < count; r++) total[r] = all(0);
    for (int64_t group = 0; group < groups; group++, from += size) {
        ints codes[FOURTHS];
        UNROLL for (int i = 0; i < FOURTHS * code_bits / 8; i++) {
            ints read;
            memcpy(&read, from + i * 4 * TILE, sizeof read);
            if (code_bits == 4) {
                codes[2 * i] = read & 0x0f0f0f0f;
                codes[2 * i + 1] = (ints)(((bits)read >> 4) & 0x0f0f0f0fu);
            } else
                codes[i] = read;
        }
        int64_t place = (tile * groups + group) * TILE + lane;
        vec scale = widen(m->scales + place), offset = widen(m->offsets + place);
        UNROLL for (int r = 0; r < count; r++) {
            vec products = __builtin_convertvector(dot(codes, x->codes + (row + r) * m->ins + group * GROUP, code_bits), vec);
            total[r] += scale * x->scales[(row + r) * groups + group] * products;
            total[r] += offset * x->sums[(row + r) * groups + group];
        }
    }
    UNROLL for (int r = 0; r < count; r++) store_float(sums + r * TILE + lane, total[r]);
}

/* Adds sums of a tile [count, TILE] to a residual [rows, outs], or to nothing, and keeps them. */
static void keep_tile(const struct grouped *m, const float *sums, int64_t tile, int64_t row, int64_t count, void *out,
                      const void *residual, int half) {
    int64_t left = m->outs - tile * TILE, outs = left < TILE ? left : TILE;
    for (int64_t r = 0; r < count; r++) {
        int64_t place = (row + r) * m->outs + tile * TILE, i = 0;
        for (; i + LANES <= outs; i += LANES) {
            vec values = load_float(sums + r * TILE + i);
            if (residual) values += load(at(residual, place + i, half), half);
            store((void *)at(out, place + i, half), values, half);
        }
        for (; i < outs; i++) {
            float value = sums[r * TILE + i] + (residual ? load_one(at(residual, place + i, half), half) : 0.0f);
            store_one((void *)at(out, place + i, half), value, half);
        }
    }
}

/* A copy of the code for each number of rows and of bits, whose loops the compiler unrolls. */
#define TILE_SUMS(count, code_bits)                                                                                    \
    __attribute__((noinline)) static void tile_sums_##code_bits##_##count(                                             \
        const struct grouped *m, const struct coded_rows *x, int64_t tile, int64_t row, float *sums) {                  \
        for (int lane = 0; lane < TILE; lane += LANES) sum_tile(m, x, tile, lane, row, count, sums, code_bits);          \
    }
#define EVERY(each, bits) \
    each(1, bits) each(2, bits) each(3, bits) each(4, bits) each(5, bits) each(6, bits) each(7, bits) each(8, bits)
EVERY(TILE_SUMS, 4) EVERY(TILE_SUMS, 8)
#define NAME(count, bits) tile_sums_##bits##_##count,
typedef void tile_sums(const struct grouped *, const struct coded_rows *, int64_t, int64_t, float *);
static tile_sums *const sums_of_tiles[2][ROWS] = {{EVERY(NAME, 4)}, {EVERY(NAME, 8)}};

/* Tiles [first, last) of a product [rows, outs], to which a residual [rows, outs] is added; NULL: none. */
void ttmark_multiply(const struct grouped *m, const struct coded_rows *x, int64_t rows, void *out, const void *residual,
                     int64_t first, int64_t last, int half) {
    float sums[ROWS * TILE];
    int64_t parts = m->fine ? 2 : 1, together = ROWS / parts;
    for (int64_t tile = first; tile < last; tile++)
        for (int64_t row = 0; row < rows; row += together) {
            int64_t count = rows - row < together ? rows - row : together;
            sums_of_tiles[m->bits == 8][count * parts - 1](m, x, tile, row * parts, sums);
            for (int64_t i = 0; m->fine && i < count * TILE; i++)
                sums[i] = sums[i / TILE * 2 * TILE + i % TILE] + sums[(i / TILE * 2 + 1) * TILE + i % TILE];
            keep_tile(m, sums, tile, row, count, out, residual, half);
        }
}

/* Many rows in bfloat16: the values of a tile are made once and multiplied as they are, sixteen rows by sixteen outputs
 * at a time. */
#if defined(__AMX_BF16__)
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#define MANY (2 * TILE) /* rows, and outputs, whose sums stay in registers */

struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

/* Registers for `count` rows up to MANY: sums in 0 to 3, rows in 4 and 5, values in 6 and 7. */
INLINE void configure(int64_t count) {
    struct tile_config config = {.palette = 1};
    uint8_t upper = count < TILE ? count : TILE, lower = count > TILE ? count - TILE : 1;
    const uint8_t rows[8] = {upper, upper, lower, lower, upper, lower, TILE, TILE};
    for (int i = 0; i < 8; i++) config.bytes[i] = 64, config.rows[i] = rows[i];
    _tile_loadconfig(&config);
}

INLINE __m512i pair(vec first, vec second) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5,
                                           20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

/* The values of a tile as the processor reads them: [ins / 2, TILE, 2]. */
INLINE void values_of_tile(const struct grouped *m, int64_t tile, __m512i *to, int code_bits) {
    int64_t groups = m->ins / GROUP, size = TILE * GROUP * code_bits / 8;
    const uint8_t *from = m->codes + tile * groups * size;
    for (int64_t group = 0; group < groups; group++, from += size) {
        int64_t place = (tile * groups + group) * TILE;
        vec scale = widen(m->scales + place), offset = widen(m->offsets + place);
        UNROLL for (int fourth = 0; fourth < FOURTHS; fourth++) {
            ints read;
            vec values[4];
            memcpy(&read, from + (code_bits == 4 ? fourth / 2 : fourth) * 4 * TILE, sizeof read);
            UNROLL for (int i = 0; i < 4; i++) {
                bits code = (bits)read >> (8 * i + (code_bits == 4 && fourth % 2 ? 4 : 0));
                values[i] = __builtin_convertvector((ints)(code & (code_bits == 4 ? 15u : 255u)), vec) * scale + offset;
            }
            *to++ = pair(values[0], values[1]);
            *to++ = pair(values[2], values[3]);
        }
    }
}

/* Sums of up to MANY rows [count, ins] for two tiles, to [2, MANY, TILE]. */
INLINE void sum_many(const char *rows, int64_t count, int64_t ins, const __m512i *values, float *sums) {
    const __m512i *others = values + ins / 2;
    const char *lower = rows + 2 * TILE * ins;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t in = 0; in < ins; in += GROUP) {
        _tile_loadd(4, rows + 2 * in, 2 * ins);
        _tile_loadd(6, values + in / 2, 64);
        _tile_loadd(7, others + in / 2, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (count > TILE) {
            _tile_loadd(5, lower + 2 * in, 2 * ins);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + MANY * TILE, 64);
    if (count > TILE) {
        _tile_stored(2, sums + TILE * TILE, 64);
        _tile_stored(3, sums + MANY * TILE + TILE * TILE, 64);
    }
}

INLINE void multiply_many(const struct grouped *m, const char *rows, int64_t count, void *out, const void *residual,
                          int64_t first, int64_t last, __m512i *values, int code_bits) {
    float sums[2 * MANY * TILE];
    int64_t configured = 0;
    for (int64_t tile = first; tile < last; tile += 2) {
        int64_t next = tile + 1 < last ? tile + 1 : tile;
        values_of_tile(m, tile, values, code_bits);
        values_of_tile(m, next, values + m->ins / 2, code_bits);
        for (int64_t row = 0; row < count; row += MANY) {
            int64_t here = count - row < MANY ? count - row : MANY;
            if (here != configured) configure(configured = here);
            sum_many(rows + 2 * row * m->ins, here, m->ins, values, sums);
            keep_tile(m, sums, tile, row, here, out, residual, 1);
            if (next > tile) keep_tile(m, sums + MANY * TILE, next, row, here, out, residual, 1);
        }
    }
}

/* As ttmark_multiply, of rows [rows, ins] in bfloat16. Returns whether there was memory for it. */
int ttmark_multiply_many(const struct grouped *m, const void *rows, int64_t count, void *out, const void *residual,
                         int64_t first, int64_t last) {
    struct tile_config before;
    __m512i *values = aligned_alloc(64, 2 * MANY * m->ins);
    if (!values) return 0;
    _tile_storeconfig(&before);
    if (m->bits == 4)
        multiply_many(m, rows, count, out, residual, first, last, values, 4);
    else
        multiply_many(m, rows, count, out, residual, first, last, values, 8);
    if (before.palette) /* others expect what they have set */
        _tile_loadconfig(&before);
    else
        _tile_release();
    free(values);
    return 1;
}

/* Whether the system lets this process use the registers. */
int ttmark_multiplies_many(void) { return syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18) == 0; }
#else
int ttmark_multiply_many(const struct grouped *m, const void *rows, int64_t count, void *out, const void *residual,
                         int64_t first, int64_t last) {
    return 0;
}

int ttmark_multiplies_many(void) { return 0; }
#endif

/* GROUP numbers as whole ones, as group `place` of all; what they leave over stays in `values`. */
INLINE void code_group(const struct coded_rows *x, int64_t place, vec values[GROUP / LANES]) {
    const vec magic = all(12582912.0f); /* rounds to the nearest */
    vec most = all(0), check = all(0), total = all(0);
    UNROLL for (int i = 0; i < GROUP / LANES; i++) {
        vec size = choose(values[i] < all(0), -values[i], values[i]);
        most = choose(size > most, size, most);
        check += values[i] * 0.0f;
    }
    float highest = largest(most), scale = highest / 127.0f;
    UNROLL for (int i = 0; i < GROUP / LANES; i++) {
        vec codes = (values[i] * (highest > 0 ? 127.0f / highest : 0.0f) + magic) - magic;
        bytes narrow = __builtin_convertvector(__builtin_convertvector(codes, ints), bytes);
        memcpy(x->codes + place * GROUP + i * LANES, &narrow, sizeof narrow);
        total += codes;
        values[i] -= codes * scale;
    }
    x->scales[place] = scale + sum(check);
    x->sums[place] = x->scales[place] * sum(total);
}

/* Rows [rows, ins] as whole numbers, for a matrix. What is not finite makes all products of its group so. */
void ttmark_code_rows(const struct grouped *m, const struct coded_rows *x, const void *from, int64_t rows, int half) {
    int64_t groups = m->ins / GROUP;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t group = 0; group < groups; group++) {
            vec values[GROUP / LANES];
            UNROLL for (int i = 0; i < GROUP / LANES; i++)
                values[i] = load(at(from, row * m->ins + group * GROUP + i * LANES, half), half);
            code_group(x, (m->fine ? 2 * row : row) * groups + group, values);
            if (m->fine) code_group(x, (2 * row + 1) * groups + group, values);
        }
}

/* The codes of an output and a group: of each fourth four bytes, 4 * TILE apart, in their upper half for every second
 * fourth where a code has 4 bits. */
INLINE uint8_t *codes_of(const struct grouped *m, int64_t out, int64_t group) {
    int64_t place = out / TILE * (m->ins / GROUP) + group;
    return m->codes + place * (TILE * GROUP * m->bits / 8) + out % TILE * 4;
}

INLINE int64_t place_of(const struct grouped *m, int64_t out, int64_t group) {
    return (out / TILE * (m->ins / GROUP) + group) * TILE + out % TILE;
}

/* Fills tiles [first, last) with the matrix `from` [outs, ins]: in 4 bits from the smallest to the largest number of a
 * group, in 8 bits up to the largest size on both sides of 128. Returns the largest change of a number, as a share of the
 * largest size in its group. */
float ttmark_group(const struct grouped *m, const void *from, int64_t first, int64_t last, int half) {
    float change = 0.0f, limit = m->bits == 4 ? 15.0f : 255.0f;
    for (int64_t out = first * TILE; out < last * TILE && out < m->outs; out++)
        for (int64_t group = 0; group < m->ins / GROUP; group++) {
            vec values[GROUP / LANES], low = all(INFINITY), high = all(-INFINITY), off = all(0);
            UNROLL for (int i = 0; i < GROUP / LANES; i++) {
                values[i] = load(at(from, out * m->ins + group * GROUP + i * LANES, half), half);
                low = choose(values[i] < low, values[i], low);
                high = choose(values[i] > high, values[i], high);
            }
            float lowest = -largest(-low), highest = largest(high), most = highest > -lowest ? highest : -lowest;
            int64_t place = place_of(m, out, group);
            m->scales[place] = narrow_one(m->bits == 4 ? (highest - lowest) / 15.0f : most / 127.0f);
            float scale = widen_one(m->scales[place]), by = scale > 0 ? 1.0f / scale : 0.0f;
            m->offsets[place] = narrow_one(m->bits == 4 ? lowest : -128.0f * scale);
            float offset = widen_one(m->offsets[place]);
            uint8_t codes[GROUP];
            UNROLL for (int i = 0; i < GROUP / LANES; i++) {
                vec code = (values[i] - offset) * by + 0.5f;
                code = choose(code > all(limit), all(limit), choose(code > all(0), code, all(0)));
                ints whole = __builtin_convertvector(code, ints);
                bytes narrow = __builtin_convertvector(whole, bytes);
                memcpy(codes + i * LANES, &narrow, sizeof narrow);
                vec moved = __builtin_convertvector(whole, vec) * scale + offset - values[i];
                moved = choose(moved < all(0), -moved, moved);
                off = choose(moved > off, moved, off);
            }
            uint32_t fourths[FOURTHS];
            memcpy(fourths, codes, sizeof fourths);
            uint8_t *to = codes_of(m, out, group);
            for (int i = 0; i < FOURTHS * m->bits / 8; i++) {
                uint32_t word = m->bits == 4 ? fourths[2 * i] | fourths[2 * i + 1] << 4 : fourths[i];
                memcpy(to + i * 4 * TILE, &word, sizeof word);
            }
            float furthest = largest(off);
            if (!(furthest <= change * most)) change = furthest / most;
        }
    return change;
}

/* The values that outputs `wanted` [count] stand for, to [count, ins]. */
void ttmark_ungroup(const struct grouped *m, const int64_t *wanted, int64_t count, void *to, int half) {
    for (int64_t row = 0; row < count; row++)
        for (int64_t group = 0; group < m->ins / GROUP; group++) {
            int64_t out = wanted[row], place = place_of(m, out, group);
            float scale = widen_one(m->scales[place]), offset = widen_one(m->offsets[place]);
            const uint8_t *from = codes_of(m, out, group);
            for (int i = 0; i < GROUP; i++) {
                int fourth = i / 4, halved = m->bits == 4;
                int code = from[(halved ? fourth / 2 : fourth) * 4 * TILE + i % 4];
                if (halved) code = fourth % 2 ? code >> 4 : code & 15;
                store_one((void *)at(to, row * m->ins + group * GROUP + i, half), scale * (float)code + offset, half);
            }
        }
}

/* All layers of a model over a pass of commits and probes, as llama.py computes them one operation after the other. */
struct layer {
    const void *attention_norm, *bias, *feed_norm; /* bias [query_key_value outs]; NULL: none */
    const struct grouped *query_key_value, *output, *gate_up, *down;
};

struct pass {
    const struct layer *layers;
    void *const *caches;                        /* the first key of each layer's cache */
    const float *turns;                         /* [rows, dim] */
    const int64_t *slots;                       /* [kept] */
    void *hidden, *packed;                      /* [rows, width], changed; [layers, rows, query_key_value outs] */
    void *normed, *attended, *gate_up, *gated;  /* scratch for `rows` */
    struct coded_rows coded;                    /* likewise, of the most inputs, in two parts */
    int64_t count, rows, kept, tiles, to_value; /* layers, ...; elements from a key of the cache to its value */
    float epsilon;
    int32_t in_tiles; /* rows are multiplied as `ttmark_multiply_many` does */
};

static int multiply(const struct pass *p, const struct grouped *m, const void *rows, void *out, const void *residual,
                    int half) {
    int64_t tiles = (m->outs + TILE - 1) / TILE;
    if (p->in_tiles) return ttmark_multiply_many(m, rows, p->rows, out, residual, 0, tiles);
    ttmark_code_rows(m, &p->coded, rows, p->rows, half);
    ttmark_multiply(m, &p->coded, p->rows, out, residual, 0, tiles, half);
    return 1;
}

/* Returns whether there was memory for it. */
int ttmark_layers(const struct pass *p, const struct attention *sizes) {
    struct attention a = *sizes;
    int64_t rows = p->rows, width = p->layers->output->outs, inner = p->layers->down->ins, heads = a.kv_heads * a.groups;
    int half = a.half;
    a.out = p->attended;
    for (int64_t layer = 0; layer < p->count; layer++) {
        const struct layer *l = p->layers + layer;
        void *packed = (void *)at(p->packed, layer * rows * a.query_row, half);
        ttmark_normalise(p->hidden, l->attention_norm, p->normed, 0, rows, width, width, p->epsilon, half);
        if (!multiply(p, l->query_key_value, p->normed, packed, NULL, half)) return 0;
        for (int64_t row = 0; l->bias && row < rows; row++)
            for (int64_t i = 0; i < a.query_row; i += LANES) {
                void *place = (void *)at(packed, row * a.query_row + i, half);
                store(place, load(place, half) + load(at(l->bias, i, half), half), half);
            }
        a.query = packed;
        a.key = at(packed, heads * a.dim, half);
        a.value = at(packed, (heads + a.kv_heads) * a.dim, half);
        a.keys = p->caches[layer];
        a.values = at(a.keys, p->to_value, half);
        ttmark_turn_and_keep(&a, packed, p->turns, rows, p->slots, p->kept);
        ttmark_attend(&a, 0, p->tiles * a.kv_heads);
        if (!multiply(p, l->output, p->attended, p->hidden, p->hidden, half)) return 0;
        ttmark_normalise(p->hidden, l->feed_norm, p->normed, 0, rows, width, width, p->epsilon, half);
        if (!multiply(p, l->gate_up, p->normed, p->gate_up, NULL, half)) return 0;
        ttmark_gate(p->gate_up, p->gated, 0, rows, inner, half);
        if (!multiply(p, l->down, p->gated, p->hidden, p->hidden, half)) return 0;
    }
    return 1;
}

/* Rows `rows` of the keys and values that each layer of an earlier pass has left [.., 2, kv_heads, dim], a row every
 * `stride` elements, become the cache rows `slots`. */
void ttmark_adopt(const struct pass *p, const struct attention *a, void *const *layers, const int64_t *rows,
                  const int64_t *slots, int64_t count, int64_t stride) {
    int64_t side = a->kv_heads * a->dim, size = a->dim * (a->half ? 2 : 4);
    for (int64_t layer = 0; layer < p->count; layer++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t head = 0; head < a->kv_heads; head++) {
                const void *from = at(layers[layer], rows[i] * stride + head * a->dim, a->half);
                void *to = (void *)at(p->caches[layer], slots[i] * a->cache_row + head * a->cache_head, a->half);
                memcpy(to, from, size);
                memcpy((void *)at(to, p->to_value, a->half), at(from, side, a->half), size);
            }
}
