/* A model as decoding sees it, and the memory that a decoding works in.
 *
 * `Model`, `Layer`, `Settings`, `Job`, `Found` and `Result` are mirrored in library.py, field by field.
 */
#ifndef REGARD_MODEL_H
#define REGARD_MODEL_H

#include "kernels.h"

#include <setjmp.h>
#include <stdatomic.h>

enum token { TOKEN_PAD = 0, TOKEN_EOS = 1 };
enum context { CONTEXT_ATTENTION = 0, CONTEXT_LAST = 1, CONTEXT_MEAN = 2, CONTEXT_MAX = 3, CONTEXT_QUERY = 4 };

/* A recurrent layer in one direction. Where there is a table, it holds the inputs' share of the gates for each
 * token, bias included; elsewhere the inputs go through a product. */
typedef struct {
    int32_t cell, size;
    const float *table;
    const Product *input;
    const float *base, *recurrent_bias;
    const Product *recurrent;
} Layer;

/* Whatever a model lacks is NULL. */
typedef struct {
    const Kernels *kernels;
    int32_t size, embedding_size, vocabulary_size;
    int32_t encoder_layers, directions, decoder_layers;
    int32_t residual, reverse, context, additive;
    const float *source_embedding, *target_embedding;
    const Layer *encoder, *decoder; /* encoder: the directions of a layer side by side */
    const Product *bridge;          /* NULL: the encoder's final states start the decoder */
    const float *bridge_bias;
    const Product *projection; /* of a fixed context */
    const float *projection_bias, *pool_query;
    const Product *keys; /* NULL: the states, times key_scale */
    const float *key_bias;
    float key_scale;
    int32_t key_size;
    const Product *query; /* of the additive score */
    const float *score_vector;
    const Product *values;                      /* the readout's share of the context, folded into the values */
    const Product *feed_context, *feed_output;  /* into the first layer's gates */
    const Product *read_state, *read_context;
    const float *read_bias;
    const Product *output;
    const float *output_bias;
    const float *zeros; /* as many as the longest row */
} Model;

typedef struct {
    int32_t beam, nbest, slots, keep_weights; /* slots: sources searched at once */
    double length_penalty;
} Settings;

/* Sources to decode, the longest first; several threads may take from one. */
typedef struct {
    int32_t n_sources;
    _Atomic int32_t next;
    const int32_t *tokens;  /* of all sources, each with its end */
    const int64_t *offsets; /* (n_sources + 1) */
    const int32_t *limits;  /* longest output of each, the end counted */
} Job;

/* One hypothesis; its tokens and log-probabilities lie at tokens_at, its weights (n_tokens, source) at weights_at. */
typedef struct {
    int32_t source, n_tokens, finished, place;
    double score, normalised;
    int64_t tokens_at, weights_at;
} Found;

typedef struct {
    Found *found;
    int32_t *tokens;
    float *log_probs, *weights;
    int64_t n_found, n_tokens, n_weights;
    int64_t room_found, room_tokens, room_weights;
} Result;

/* All memory of one decoding, so that it can be freed at once when some is refused. */
typedef struct Piece {
    struct Piece *before, *after;
    char padding[48];
} Piece;

typedef struct {
    Piece *pieces;
    jmp_buf refused;
} Pool;

void *take(Pool *pool, size_t bytes); /* aligned to 64; jumps to `refused` if there is none */
void give(Pool *pool, void *memory);
void empty(Pool *pool);

/* Memory that grows when it must, and then forgets what it held. */
typedef struct {
    void *data;
    size_t bytes;
} Buffer;

void *room(Pool *pool, Buffer *buffer, size_t bytes);

/* Room for a product's result: rows and columns rounded up to whole blocks. */
float *room_for(Pool *pool, Buffer *buffer, int n_rows, ptrdiff_t stride);
static inline ptrdiff_t stride_of(int columns) { return round_up(columns, COLUMN_MULTIPLE); }

void multiply(const Model *model, Pool *pool, Buffer *scratch, const Product *product, Rows x, int n_rows, float *y, ptrdiff_t stride, int add);

/* What the encoder made of some sources. Rows of states follow each other, source by source; all rows have
 * the stride of the model's size. */
typedef struct {
    int n_sources, n_states;
    const int32_t *lens, *first; /* of each source: its length, and its first row of states */
    float *states;               /* (n_states, size) */
    float *hidden, *cell;        /* final, (layers, n_sources, size) */
    float *keys, *values;        /* (n_states, key_size), (n_states, size); NULL for a fixed context */
    float *fixed;                /* fixed context, (n_sources, size), or NULL */
    float *fixed_gates, *fixed_read;
    float *start_hidden, *start_cell; /* (decoder_layers, n_sources, size) */
} Encoded;

typedef struct {
    Buffer lens, first, tokens, order, steps, inputs, gates, recurrent, states, other, hidden, cell, running, keys, values;
    Buffer fixed, fixed_gates, fixed_read, bridge, start_hidden, start_cell, scratch, weights;
} EncoderRoom;

/* Encode sources from..to of a job, and make all that the decoder needs of them. */
Encoded encode(const Model *model, Pool *pool, EncoderRoom *room, const Job *job, int from, int to);

#endif
