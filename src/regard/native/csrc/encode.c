/* The encoder, and what the decoder keeps of it. Layers run over real tokens only: sources come longest first,
 * so that those still running at a step are the first ones. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void *take(Pool *pool, size_t bytes) {
    void *made = NULL;
    if (posix_memalign(&made, 64, bytes + sizeof(Piece))) longjmp(pool->refused, 1);
    Piece *piece = made;
    piece->before = NULL;
    piece->after = pool->pieces;
    if (piece->after) piece->after->before = piece;
    pool->pieces = piece;
    return piece + 1;
}

void give(Pool *pool, void *memory) {
    if (memory == NULL) return;
    Piece *piece = (Piece *)memory - 1;
    if (piece->after) piece->after->before = piece->before;
    if (piece->before) piece->before->after = piece->after;
    else pool->pieces = piece->after;
    free(piece);
}

void empty(Pool *pool) {
    while (pool->pieces) give(pool, pool->pieces + 1);
}

void *room(Pool *pool, Buffer *buffer, size_t bytes) {
    if (buffer->bytes < bytes || buffer->data == NULL) {
        give(pool, buffer->data);
        buffer->data = NULL;
        buffer->data = take(pool, bytes + bytes / 4);
        buffer->bytes = bytes + bytes / 4;
    }
    return buffer->data;
}

float *room_for(Pool *pool, Buffer *buffer, int n_rows, ptrdiff_t stride) {
    return room(pool, buffer, sizeof(float) * (size_t)stride * round_up(n_rows, 2 * ROW_MULTIPLE));
}

void multiply(const Model *model, Pool *pool, Buffer *scratch, const Product *product, Rows x, int n_rows, float *y, ptrdiff_t stride, int add) {
    size_t bytes = model->kernels->scratch_size(n_rows, product->k);
    void *memory = bytes ? room(pool, scratch, bytes) : NULL;
    if (n_rows) model->kernels->multiply(product, x, n_rows, y, stride, add, memory);
}

static int n_gates(int cell) { return cell == CELL_LSTM ? 4 : cell == CELL_GRU ? 3 : 1; }

/* Run a layer in one direction; writes its columns of `out` (n_states, stride) and of the final states. */
static void run(const Model *model, Pool *pool, EncoderRoom *space, const Layer *layer, const Encoded *made, const int32_t *tokens,
                Rows inputs, int backwards, float *out, float *final_hidden, float *final_cell) {
    const Kernels *kernels = model->kernels;
    const int size = layer->size, width = n_gates(layer->cell) * size;
    const ptrdiff_t stride = stride_of(model->size), gate_stride = stride_of(width), unit_stride = stride_of(size);
    int32_t *previous = room(pool, &space->steps, sizeof(int32_t) * made->n_sources);
    float *recurrent = room_for(pool, &space->recurrent, made->n_sources, gate_stride);
    float *cells = room_for(pool, &space->running, made->n_sources, unit_stride), *gates = NULL;
    memset(cells, 0, sizeof(float) * unit_stride * made->n_sources);
    memset(recurrent, 0, sizeof(float) * gate_stride * made->n_sources); /* the first step's state is zero */
    if (layer->table == NULL) {
        gates = room_for(pool, &space->gates, made->n_states, gate_stride);
        multiply(model, pool, &space->scratch, layer->input, inputs, made->n_states, gates, gate_stride, 0);
    }
    int running = made->n_sources;
    for (int step = 0; running; step++) {
        if (step)
            multiply(model, pool, &space->scratch, layer->recurrent, (Rows){out, stride, previous}, running, recurrent, gate_stride, 0);
        for (int b = 0; b < running; b++) {
            int at = made->first[b] + (backwards ? made->lens[b] - 1 - step : step);
            Gates share = {
                .base = layer->table ? layer->table + (size_t)width * tokens[at] : layer->base,
                .input = gates ? gates + gate_stride * at : model->zeros,
                .recurrent = recurrent + gate_stride * b,
                .recurrent_bias = layer->recurrent_bias,
            };
            const float *before = step ? out + stride * previous[b] : model->zeros;
            kernels->step(layer->cell, size, share, before, cells + unit_stride * b, cells + unit_stride * b, out + stride * at);
            previous[b] = at;
        }
        while (running && made->lens[running - 1] == step + 1) {
            running--;
            memcpy(final_hidden + stride * running, out + stride * previous[running], sizeof(float) * size);
            memcpy(final_cell + stride * running, cells + unit_stride * running, sizeof(float) * size);
        }
    }
}

/* Run all layers; leaves the states, in the order of the source, in made->states. */
static void run_layers(const Model *model, Pool *pool, EncoderRoom *space, Encoded *made, const int32_t *tokens, const int32_t *order) {
    const ptrdiff_t stride = stride_of(model->size);
    float *now = room_for(pool, &space->states, made->n_states, stride);
    float *next = room_for(pool, &space->other, made->n_states, stride);
    made->hidden = room_for(pool, &space->hidden, model->encoder_layers * made->n_sources, stride);
    made->cell = room_for(pool, &space->cell, model->encoder_layers * made->n_sources, stride);
    Rows inputs = {model->source_embedding, model->embedding_size, tokens};
    for (int number = 0; number < model->encoder_layers; number++) {
        for (int direction = 0; direction < model->directions; direction++) {
            const Layer *layer = &model->encoder[number * model->directions + direction];
            const ptrdiff_t at = stride * number * made->n_sources + direction * layer->size;
            run(model, pool, space, layer, made, tokens, inputs, direction, next + direction * layer->size, made->hidden + at, made->cell + at);
        }
        for (int row = 0; number && model->residual && row < made->n_states; row++)
            model->kernels->add(next + stride * row, now + stride * row, model->size);
        float *swapped = now;
        now = next, next = swapped;
        inputs = (Rows){now, stride, NULL};
    }
    made->states = now;
    if (!model->reverse) return;
    for (int row = 0; row < made->n_states; row++)
        memcpy(next + stride * order[row], now + stride * row, sizeof(float) * model->size);
    made->states = next;
}

/* The vector that a fixed context keeps of source b. */
static void pool_states(const Model *model, Pool *pool, EncoderRoom *space, const Encoded *made, int b, float *to) {
    const ptrdiff_t stride = stride_of(model->size);
    const int n = made->lens[b], size = model->size;
    const float *states = made->states + stride * made->first[b];
    if (model->context == CONTEXT_LAST) {
        memcpy(to, made->hidden + stride * ((model->encoder_layers - 1) * made->n_sources + b), sizeof(float) * size);
    } else if (model->context == CONTEXT_MAX) {
        memcpy(to, states, sizeof(float) * size);
        for (int s = 1; s < n; s++)
            for (int i = 0; i < size; i++) to[i] = states[stride * s + i] > to[i] ? states[stride * s + i] : to[i];
    } else {
        float *weights = room(pool, &space->weights, sizeof(float) * n), highest = -INFINITY, sum = 0.0f;
        for (int s = 0; s < n; s++) {
            weights[s] = model->context == CONTEXT_MEAN ? 0.0f : model->kernels->dot(model->pool_query, states + stride * s, size);
            highest = weights[s] > highest ? weights[s] : highest;
        }
        for (int s = 0; s < n; s++) sum += weights[s] = expf(weights[s] - highest);
        memset(to, 0, sizeof(float) * size);
        for (int s = 0; s < n; s++) model->kernels->add_scaled(to, states + stride * s, weights[s] / sum, size);
    }
}

static void make_fixed(const Model *model, Pool *pool, EncoderRoom *space, Encoded *made) {
    const ptrdiff_t stride = stride_of(model->size);
    const int n = made->n_sources;
    made->fixed = room_for(pool, &space->fixed, n, stride);
    for (int b = 0; b < n; b++) pool_states(model, pool, space, made, b, made->fixed + stride * b);
    if (model->projection) {
        float *projected = room_for(pool, &space->values, n, stride);
        multiply(model, pool, &space->scratch, model->projection, (Rows){made->fixed, stride, NULL}, n, projected, stride, 0);
        for (int b = 0; b < n; b++) model->kernels->squash(projected + stride * b, model->projection_bias, model->zeros, model->size);
        made->fixed = projected;
    }
    Rows fixed = {made->fixed, stride, NULL};
    if (model->feed_context) {
        const ptrdiff_t width = stride_of(model->feed_context->n);
        made->fixed_gates = room_for(pool, &space->fixed_gates, n, width);
        multiply(model, pool, &space->scratch, model->feed_context, fixed, n, made->fixed_gates, width, 0);
    }
    if (model->read_context) {
        made->fixed_read = room_for(pool, &space->fixed_read, n, stride);
        multiply(model, pool, &space->scratch, model->read_context, fixed, n, made->fixed_read, stride, 0);
    }
}

static void make_memory(const Model *model, Pool *pool, EncoderRoom *space, Encoded *made) {
    const ptrdiff_t stride = stride_of(model->size), key_stride = stride_of(model->key_size);
    Rows states = {made->states, stride, NULL};
    made->keys = room_for(pool, &space->keys, made->n_states, key_stride);
    if (model->keys) {
        multiply(model, pool, &space->scratch, model->keys, states, made->n_states, made->keys, key_stride, 0);
        for (int row = 0; model->key_bias && row < made->n_states; row++)
            model->kernels->add(made->keys + key_stride * row, model->key_bias, model->key_size);
    } else {
        for (int row = 0; row < made->n_states; row++)
            for (int i = 0; i < model->size; i++)
                made->keys[key_stride * row + i] = made->states[stride * row + i] * model->key_scale;
    }
    made->values = made->states;
    if (model->values) {
        made->values = room_for(pool, &space->values, made->n_states, stride);
        multiply(model, pool, &space->scratch, model->values, states, made->n_states, made->values, stride, 0);
    }
}

static void make_start(const Model *model, Pool *pool, EncoderRoom *space, Encoded *made) {
    const ptrdiff_t stride = stride_of(model->size);
    const int n = made->n_sources, layers = model->decoder_layers, size = model->size;
    made->start_hidden = made->hidden;
    made->start_cell = made->cell;
    if (model->bridge == NULL) return;
    const float *summary = made->fixed ? made->fixed : made->hidden + stride * (model->encoder_layers - 1) * n;
    const ptrdiff_t width = stride_of(model->bridge->n);
    float *bridge = room_for(pool, &space->bridge, n, width);
    multiply(model, pool, &space->scratch, model->bridge, (Rows){summary, stride, NULL}, n, bridge, width, 0);
    made->start_hidden = room_for(pool, &space->start_hidden, layers * n, stride);
    made->start_cell = room_for(pool, &space->start_cell, layers * n, stride);
    for (int b = 0; b < n; b++)
        for (int number = 0; number < layers; number++) {
            float *hidden = bridge + width * b + number * size, *cell = hidden + layers * size;
            const ptrdiff_t at = stride * (number * n + b);
            model->kernels->squash(hidden, model->bridge_bias + number * size, model->zeros, size);
            memcpy(made->start_hidden + at, hidden, sizeof(float) * size);
            if (model->bridge->n < 2 * layers * size) continue;
            model->kernels->add(cell, model->bridge_bias + (layers + number) * size, size);
            memcpy(made->start_cell + at, cell, sizeof(float) * size);
        }
}

Encoded encode(const Model *model, Pool *pool, EncoderRoom *space, const Job *job, int from, int to) {
    const int n = to - from, n_states = (int)(job->offsets[to] - job->offsets[from]);
    int32_t *lens = room(pool, &space->lens, sizeof(int32_t) * n), *first = room(pool, &space->first, sizeof(int32_t) * n);
    int32_t *tokens = room(pool, &space->tokens, sizeof(int32_t) * n_states), *order = room(pool, &space->order, sizeof(int32_t) * n_states);
    for (int b = 0; b < n; b++) {
        lens[b] = (int32_t)(job->offsets[from + b + 1] - job->offsets[from + b]);
        first[b] = (int32_t)(job->offsets[from + b] - job->offsets[from]);
        for (int s = 0; s < lens[b]; s++) {
            /* Read backwards, the end still comes last. */
            int at = model->reverse && s < lens[b] - 1 ? lens[b] - 2 - s : s;
            tokens[first[b] + s] = job->tokens[job->offsets[from + b] + at];
            order[first[b] + s] = first[b] + at;
        }
    }
    Encoded made = {.n_sources = n, .n_states = n_states, .lens = lens, .first = first};
    run_layers(model, pool, space, &made, tokens, order);
    if (model->context == CONTEXT_ATTENTION) make_memory(model, pool, space, &made);
    else make_fixed(model, pool, space, &made);
    make_start(model, pool, space, &made);
    return made;
}
