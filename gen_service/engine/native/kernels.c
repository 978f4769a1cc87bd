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
