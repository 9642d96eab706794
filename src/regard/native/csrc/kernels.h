/* The arithmetic of decoding: products with packed weights, cells and attention.
 *
 * Each result is summed in one fixed order whatever rows are computed beside it, so that an answer never
 * depends on the batch. Matrices are row-major float32; sizes count numbers, not bytes.
 */
#ifndef REGARD_KERNELS_H
#define REGARD_KERNELS_H

#include <stddef.h>
#include <stdint.h>

enum { ROW_MULTIPLE = 16, COLUMN_MULTIPLE = 32 };
/* Results have room for whole blocks: rows and columns rounded up to these. */

enum precision { FLOAT32 = 0, BFLOAT16 = 1 };
enum cell { CELL_TANH = 0, CELL_GRU = 1, CELL_LSTM = 2 };

/* Weights (n, k), packed for `y = x W'`. */
typedef struct {
    int32_t n, k, precision;
    void *packed;
} Product;

/* Rows of numbers: row r begins at data + stride * (index ? index[r] : r). */
typedef struct {
    const float *data;
    ptrdiff_t stride;
    const int32_t *index;
} Rows;

/* What a cell's gates are made of, for one row: base + input from the inputs, recurrent from the state before.
 * Only a GRU has a bias of its own on the recurrent side. */
typedef struct {
    const float *base, *input, *recurrent, *recurrent_bias;
} Gates;

typedef struct {
    const char *name;
    /* Pack weights (n, k); the memory comes from malloc, NULL if there is none. */
    void *(*pack)(const float *weights, int n, int k, int precision);
    /* y (n_rows, stride) = [y +] x W'; scratch holds scratch_size(n_rows, k) bytes. */
    void (*multiply)(const Product *product, Rows x, int n_rows, float *y, ptrdiff_t stride, int add, void *scratch);
    size_t (*scratch_size)(int n_rows, int k);
    /* One row's next state; `before` and `after` may not overlap, `cell` is replaced by its next value. */
    void (*step)(int kind, int size, Gates gates, const float *before, const float *cell_before, float *cell, float *after);
    /* x += y, x += a y, x = tanh(x + y + z) */
    void (*add)(float *x, const float *y, int n);
    void (*add_scaled)(float *x, const float *y, float factor, int n);
    void (*squash)(float *x, const float *y, const float *z, int n);
    float (*dot)(const float *x, const float *y, int n);
    /* sum of v tanh(x + y) */
    float (*additive)(const float *v, const float *x, const float *y, int n);
    /* x += y, then log(sum(exp(x))) */
    float (*log_sum_exp)(float *x, const float *y, int n);
} Kernels;

/* The fastest kernels that this processor runs, at most those called `limit` if it is not NULL. */
const Kernels *regard_kernels(const char *limit);

static inline int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

#endif
