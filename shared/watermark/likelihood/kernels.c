/* The forward and backward algorithm over edit paths, and draws of texts that carry the mark along such paths.
 *
 * Every number is computed by the same operations in the same order as in forward_backward_numpy.py: the same
 * bits, whatever the processor. So nothing is contracted or reordered, and rows do not mix.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 8         /* rows that are computed together */
#define MOST_PATHS 64
#define MOST_TOKENS 3   /* of a block */
#define RESCALE 16      /* tokens between two looks at the size of the numbers */
#define BIG 0x1p256
#define SMALL 0x1p-256
#define EXPONENT 256

typedef double vec __attribute__((vector_size(8 * LANES)));
typedef int64_t ints __attribute__((vector_size(8 * LANES)));
#define INLINE static inline __attribute__((always_inline))

struct model {
    const double *ratios;  /* [strengths, classes, cells] */
    const double *paths;   /* [paths, 7], see hidden_markov_model.py */
    const uint8_t *kinds;  /* [positions] class of each block */
    const double *surprise; /* [positions] 0 to 1 */
    int64_t classes, cells, path_count, positions, tokens;
};

/* Chances of a path's steps at a token. */
struct step {
    double leave, enter, find, lose, keep;
};

INLINE struct step step_of(const struct model *m, int64_t path, int64_t at) {
    const double *p = m->paths + 7 * path;
    double x = p[6] * m->surprise[at], calm = 1.0 - x;
    struct step s = {p[1] + (1.0 - p[1]) * x, p[2] * calm, p[3] * calm, p[4], 1.0 - p[4]};
    return s;
}

struct lane {
    vec gap, away, block[MOST_TOKENS];
    ints exponent;
};

INLINE vec all(double value) { return (vec){0} + value; }

INLINE void advance(struct lane *l, const struct step *s, vec ratio, int64_t tokens) {
    vec before = l->block[0];
    vec left = before * s->leave;
    vec gap = l->gap + left * s->keep, away = l->away + left * s->lose;
    vec entered = gap * s->enter, found = away * s->find;
    vec begun = ((before - left) + entered) + found;
    for (int64_t i = 0; i + 1 < tokens; i++) l->block[i] = l->block[i + 1];
    l->block[tokens - 1] = begun * ratio;
    l->gap = gap - entered;
    l->away = away - found;
}

INLINE vec total(const struct lane *l, int64_t tokens) {
    vec sum = l->gap + l->away;
    for (int64_t i = 0; i < tokens; i++) sum = sum + l->block[i];
    return sum;
}

INLINE void rescale(struct lane *l, int64_t tokens) {
    vec sum = total(l, tokens);
    ints big = sum > BIG, small = sum < SMALL;
    vec factor = (vec)((big & (ints)all(SMALL)) | (small & (ints)all(BIG)) | (~(big | small) & (ints)all(1.0)));
    l->gap = l->gap * factor;
    l->away = l->away * factor;
    for (int64_t i = 0; i < tokens; i++) l->block[i] = l->block[i] * factor;
    l->exponent = l->exponent - big * EXPONENT + small * EXPONENT;
}

/* Totals [paths, rows] and their binary exponents, of rows of cells [rows, positions]. */
void ttmark_forward(const struct model *m, const uint16_t *cells, int64_t rows, double *sums, int64_t *exponents) {
    struct lane lanes[MOST_PATHS];
    for (int64_t first = 0; first < rows; first += LANES) {
        for (int64_t p = 0; p < m->path_count; p++) {
            memset(&lanes[p], 0, sizeof lanes[p]);
            lanes[p].away = all(m->paths[7 * p + 5]);
            lanes[p].gap = all(1.0 - m->paths[7 * p + 5]);
        }
        int64_t count = rows - first < LANES ? rows - first : LANES;
        const uint16_t *row[LANES];
        for (int64_t i = 0; i < LANES; i++) row[i] = cells + (first + (i < count ? i : 0)) * m->positions;
        for (int64_t at = 0; at < m->positions; at++) {
            int64_t strength = -1;
            vec ratio = all(1.0);
            for (int64_t p = 0; p < m->path_count; p++) {
                int64_t wanted = (int64_t)m->paths[7 * p];
                if (wanted != strength) {
                    strength = wanted;
                    const double *table = m->ratios + (strength * m->classes + m->kinds[at]) * m->cells;
                    for (int64_t i = 0; i < LANES; i++) ratio[i] = table[row[i][at]];
                }
                struct step s = step_of(m, p, at);
                advance(&lanes[p], &s, ratio, m->tokens);
            }
            if (at % RESCALE == RESCALE - 1)
                for (int64_t p = 0; p < m->path_count; p++) rescale(&lanes[p], m->tokens);
        }
        for (int64_t p = 0; p < m->path_count; p++) {
            vec sum = total(&lanes[p], m->tokens);
            for (int64_t i = 0; i < count; i++) {
                sums[p * rows + first + i] = sum[i];
                exponents[p * rows + first + i] = lanes[p].exponent[i];
            }
        }
    }
}

/* One row along one path prior: for each position the chance that a block of the path begins there, and that the
 * path skips the token there as away, given all scores [positions]. Gives the total as ttmark_forward does.
 * `kept` is scratch [positions, 4].
 */
void ttmark_posterior(const struct model *m, int64_t path, const uint16_t *row, double *kept, double *begins,
                      double *apart, double *sum, int64_t *exponent) {
    const double *p = m->paths + 7 * path;
    const double *table = m->ratios + (int64_t)p[0] * m->classes * m->cells;
    double gap = 1.0 - p[5], away = p[5], block[MOST_TOKENS] = {0};
    int64_t scale = 0;
    for (int64_t at = 0; at < m->positions; at++) {
        double *k = kept + 4 * at;
        k[0] = block[0], k[1] = gap, k[2] = away, k[3] = (double)scale;
        struct step s = step_of(m, path, at);
        double left = block[0] * s.leave;
        gap = gap + left * s.keep;
        away = away + left * s.lose;
        double entered = gap * s.enter, found = away * s.find;
        double begun = ((block[0] - left) + entered) + found;
        for (int64_t i = 0; i + 1 < m->tokens; i++) block[i] = block[i + 1];
        block[m->tokens - 1] = begun * table[m->kinds[at] * m->cells + row[at]];
        gap = gap - entered;
        away = away - found;
        double all = gap + away;
        for (int64_t i = 0; i < m->tokens; i++) all = all + block[i];
        if (all > BIG || all < SMALL) {
            double factor = all > BIG ? SMALL : BIG;
            scale += all > BIG ? EXPONENT : -EXPONENT;
            gap = gap * factor;
            away = away * factor;
            for (int64_t i = 0; i < m->tokens; i++) block[i] = block[i] * factor;
        }
    }
    double whole = gap + away;
    for (int64_t i = 0; i < m->tokens; i++) whole = whole + block[i];
    *sum = whole;
    *exponent = scale;
    /* What the rest of the text is worth 1, 2, ... tokens on: where a block has ended, in a gap, away. */
    double ended[MOST_TOKENS], in_gap = 1.0, is_away = 1.0;
    for (int64_t i = 0; i < MOST_TOKENS; i++) ended[i] = 1.0;
    int64_t behind = 0;
    for (int64_t at = m->positions - 1; at >= 0; at--) {
        const double *k = kept + 4 * at;
        struct step s = step_of(m, path, at);
        double worth = table[m->kinds[at] * m->cells + row[at]] * ended[m->tokens - 1];
        double left = k[0] * s.leave, here = k[1] + left * s.keep, there = k[2] + left * s.lose;
        double begun = ((k[0] - left) + here * s.enter) + there * s.find;
        double factor = ldexp(1.0 / whole, (int)((int64_t)k[3] + behind - scale));
        begins[at] = begun * worth * factor;
        apart[at] = (there - there * s.find) * is_away * factor;
        double next_gap = s.enter * worth + (1.0 - s.enter) * in_gap;
        double next_away = s.find * worth + (1.0 - s.find) * is_away;
        double next = (1.0 - s.leave) * worth + s.leave * (s.keep * next_gap + s.lose * next_away);
        for (int64_t i = MOST_TOKENS - 1; i > 0; i--) ended[i] = ended[i - 1];
        ended[0] = next, in_gap = next_gap, is_away = next_away;
        double all = next + next_gap + next_away;
        if (all > BIG || all < SMALL) {
            double turn = all > BIG ? SMALL : BIG;
            behind += all > BIG ? EXPONENT : -EXPONENT;
            in_gap = in_gap * turn;
            is_away = is_away * turn;
            for (int64_t i = 0; i < MOST_TOKENS; i++) ended[i] = ended[i] * turn;
        }
    }
}

/* SplitMix64 (Steele, Lea and Flood 2014): a bijection of counters. */
INLINE uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

INLINE uint64_t next_word(uint64_t *counter) { return mixed(*counter += 0x9E3779B97F4A7C15u); }

INLINE double chance(uint64_t word) { return (double)(word >> 11) * 0x1p-53; }

/* Cells [rows, positions] of texts, the first of them number `first`, each along the path `along` [rows] says, or
 * without the mark where that is negative. `limits` [strengths, classes, cells] are upper ends of the cells of 64-bit
 * words, `guides` [strengths, classes, 256] the cell of the least word with each first byte. Class 0 has no mark.
 */
void ttmark_draw(const struct model *m, const uint64_t *limits, const uint16_t *guides, uint64_t seed, int64_t first,
                 int64_t rows, const int64_t *along, uint16_t *cells) {
    for (int64_t row = 0; row < rows; row++) {
        uint64_t counter = mixed(seed ^ mixed((uint64_t)(first + row)));
        double start = chance(next_word(&counter));
        int64_t path = along[row];
        const double *p = m->paths + 7 * (path < 0 ? 0 : path);
        int64_t strength = (int64_t)p[0], ready = 0;
        int state = start < p[5] ? 2 : 1; /* 0: a block has ended, 1: in a gap, 2: away */
        for (int64_t at = 0; at < m->positions; at++) {
            double u = chance(next_word(&counter));
            uint64_t word = next_word(&counter);
            int64_t table = 0;
            if (path >= 0 && at >= ready) {
                struct step s = step_of(m, path, at);
                double gap = state == 1 ? 1.0 : 0.0, away = state == 2 ? 1.0 : 0.0, before = state == 0 ? 1.0 : 0.0;
                double left = before * s.leave;
                gap = gap + left * s.keep;
                away = away + left * s.lose;
                double entered = gap * s.enter, found = away * s.find;
                double begun = ((before - left) + entered) + found;
                if (u < begun) {
                    table = strength * m->classes + m->kinds[at];
                    ready = at + m->tokens;
                    state = 0;
                } else {
                    state = u < begun + (gap - entered) ? 1 : 2;
                }
            }
            const uint64_t *limit = limits + table * m->cells;
            int64_t cell = guides[table * 256 + (word >> 56)];
            while (cell + 1 < m->cells && word >= limit[cell]) cell++;
            cells[row * m->positions + at] = (uint16_t)cell;
        }
    }
}
