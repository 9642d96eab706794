/* Greedy and beam search, as in regard/decode/beam.py and greedy.py: hypotheses of all sources are rows of one
 * batch. A source has as many rows as it has unfinished hypotheses, leaves when its search is over, and makes
 * room for the next. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_STATES = 1024 }; /* most states encoded together, so that memory stays small */

/* A way that a hypothesis can go on, or has ended. */
typedef struct {
    int32_t row, token; /* the hypothesis within its source, and what it is extended by */
    float log_prob, total;
    double score;
} Candidate;

typedef struct {
    Candidate last;
    double normalised;
    int32_t step, choice, finished;
} End;

/* One source being searched. Engine row r of a step extends row parents[r] of the step before by tokens[r]. */
typedef struct {
    int32_t number, length, limit, n_rows, n_steps, first_row, over, room_steps;
    int32_t n_ended, n_kept;
    double best, *scores;
    float *keys, *values, *gates, *read;
    End *kept; /* the best ends, best first */
    int32_t *tokens, *parents;
    float *log_probs, *weights; /* by step and row; weights (steps, beam, length) */
} Source;

typedef struct {
    float **hidden, **cell, *fed;
} State;

typedef struct {
    const Model *model;
    const Settings *settings;
    Job *job;
    Result *result;
    Pool *pool;
    EncoderRoom encoder;
    Buffer scratch, scores;
    int capacity, n_rows, n_sources, n_used; /* n_used: rows of `before` that hold something */
    ptrdiff_t stride, gate_stride, logit_stride, query_stride;
    Source **sources;
    Candidate *candidates;
    State before, after;
    int32_t *row_tokens, *row_parents;
    int32_t *distinct, *row_distinct, n_distinct; /* each parent once, and where a row's is among them */
    float *recurrent, *input, *stacked, *other, *query, *context, *read, *logits;
} Search;

static float *rows_of(Search *search, ptrdiff_t stride) {
    float *made = take(search->pool, sizeof(float) * stride * search->capacity);
    memset(made, 0, sizeof(float) * stride * search->capacity);
    return made;
}

static State new_state(Search *search) {
    const int layers = search->model->decoder_layers;
    State made = {take(search->pool, sizeof(float *) * layers), take(search->pool, sizeof(float *) * layers), NULL};
    for (int number = 0; number < layers; number++) {
        made.hidden[number] = rows_of(search, search->stride);
        made.cell[number] = rows_of(search, search->stride);
    }
    if (search->model->feed_output) made.fed = rows_of(search, search->stride);
    return made;
}

static void prepare(Search *search) {
    const Model *model = search->model;
    const int beam = search->settings->beam, slots = search->settings->slots;
    search->capacity = round_up(slots * beam + slots, 2 * ROW_MULTIPLE);
    search->stride = stride_of(model->size);
    search->gate_stride = stride_of(4 * model->size);
    search->logit_stride = stride_of(model->vocabulary_size);
    search->query_stride = stride_of(model->key_size > model->size ? model->key_size : model->size);
    search->sources = take(search->pool, sizeof(Source *) * slots);
    search->candidates = take(search->pool, sizeof(Candidate) * (2 * beam + 1));
    search->before = new_state(search);
    search->after = new_state(search);
    search->row_tokens = take(search->pool, sizeof(int32_t) * search->capacity);
    search->row_parents = take(search->pool, sizeof(int32_t) * search->capacity);
    search->distinct = take(search->pool, sizeof(int32_t) * search->capacity);
    search->row_distinct = take(search->pool, sizeof(int32_t) * search->capacity);
    search->recurrent = rows_of(search, search->gate_stride);
    search->input = rows_of(search, search->gate_stride);
    search->stacked = rows_of(search, search->stride);
    search->other = rows_of(search, search->stride);
    search->query = rows_of(search, search->query_stride);
    search->context = rows_of(search, search->stride);
    search->read = rows_of(search, search->stride);
    search->logits = rows_of(search, search->logit_stride);
}

/* ---- sources come and go ---- */

static void *grown(Pool *pool, void *old, size_t used, size_t bytes) {
    void *made = take(pool, bytes);
    if (old) memcpy(made, old, used);
    give(pool, old);
    return made;
}

/* Make room for the trace of one more step. */
static void make_room(Search *search, Source *source) {
    if (source->n_steps < source->room_steps) return;
    const size_t used = (size_t)source->room_steps * search->settings->beam;
    const int32_t steps = source->room_steps ? 2 * source->room_steps : source->length + 8;
    const size_t n = (size_t)steps * search->settings->beam;
    source->tokens = grown(search->pool, source->tokens, used * sizeof(int32_t), n * sizeof(int32_t));
    source->parents = grown(search->pool, source->parents, used * sizeof(int32_t), n * sizeof(int32_t));
    source->log_probs = grown(search->pool, source->log_probs, used * sizeof(float), n * sizeof(float));
    if (source->keys)
        source->weights = grown(search->pool, source->weights, used * source->length * sizeof(float), n * source->length * sizeof(float));
    source->room_steps = steps;
}

static float *copied(Pool *pool, const float *from, size_t n) {
    if (from == NULL) return NULL;
    return memcpy(take(pool, sizeof(float) * n), from, sizeof(float) * n);
}

static Source *new_source(Search *search, const Encoded *encoded, int b, int number) {
    const Model *model = search->model;
    Pool *pool = search->pool;
    const ptrdiff_t key_stride = stride_of(model->key_size);
    Source *made = memset(take(pool, sizeof(Source)), 0, sizeof(Source));
    made->number = number;
    made->length = encoded->lens[b];
    made->limit = search->job->limits[number];
    made->best = -INFINITY;
    made->scores = take(pool, sizeof(double) * search->settings->beam);
    made->kept = take(pool, sizeof(End) * (search->settings->beam + 1));
    if (encoded->keys) {
        made->keys = copied(pool, encoded->keys + key_stride * encoded->first[b], (size_t)key_stride * made->length);
        made->values = copied(pool, encoded->values + search->stride * encoded->first[b], (size_t)search->stride * made->length);
    }
    if (encoded->fixed_gates) {
        const ptrdiff_t width = stride_of(model->feed_context->n);
        made->gates = copied(pool, encoded->fixed_gates + width * b, width);
    }
    if (encoded->fixed_read) made->read = copied(pool, encoded->fixed_read + search->stride * b, search->stride);
    make_room(search, made);
    made->n_rows = 1; /* all beams would start alike */
    made->scores[0] = 0.0;
    made->tokens[0] = TOKEN_EOS;
    made->log_probs[0] = 0.0f;
    return made;
}

static void drop_source(Search *search, Source *source) {
    void *parts[] = {source->scores, source->kept, source->keys, source->values, source->gates, source->read,
                     source->tokens, source->parents, source->log_probs, source->weights, source};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) give(search->pool, parts[i]);
}

/* Take sources from the job for the free slots, if there are enough of them to be encoded well. */
static void refill(Search *search) {
    const int slots = search->settings->slots, free_slots = slots - search->n_sources;
    Job *job = search->job;
    if (search->n_sources && free_slots < (slots + 3) / 4) return;
    int from = atomic_load(&job->next), to;
    do {
        if (from >= job->n_sources) return;
        for (to = from + 1; to < job->n_sources && to - from < free_slots; to++)
            if (job->offsets[to + 1] - job->offsets[from] > CHUNK_STATES) break;
    } while (!atomic_compare_exchange_weak(&job->next, &from, to));
    Encoded encoded = encode(search->model, search->pool, &search->encoder, job, from, to);
    for (int b = 0; b < encoded.n_sources; b++) {
        Source *source = new_source(search, &encoded, b, from + b);
        const int row = search->n_used++;
        source->parents[0] = row;
        for (int number = 0; number < search->model->decoder_layers; number++) {
            const ptrdiff_t at = search->stride * ((ptrdiff_t)number * encoded.n_sources + b), bytes = search->stride * sizeof(float);
            memcpy(search->before.hidden[number] + search->stride * row, encoded.start_hidden + at, bytes);
            memcpy(search->before.cell[number] + search->stride * row, encoded.start_cell + at, bytes);
        }
        if (search->before.fed) memset(search->before.fed + search->stride * row, 0, search->stride * sizeof(float));
        search->sources[search->n_sources++] = source;
    }
}

/* Number the engine's rows: those of each source, in order. Hypotheses of one parent share its recurrent product. */
static void lay_rows(Search *search) {
    int row = 0, n_distinct = 0;
    for (int i = 0; i < search->n_sources; i++) {
        Source *source = search->sources[i];
        const int32_t *tokens = source->tokens + (size_t)source->n_steps * search->settings->beam;
        const int32_t *parents = source->parents + (size_t)source->n_steps * search->settings->beam;
        const int first_before = source->n_steps ? source->first_row : 0, first_distinct = n_distinct;
        source->first_row = row;
        for (int r = 0; r < source->n_rows; r++, row++) {
            const int parent = first_before + parents[r];
            int place = first_distinct;
            while (place < n_distinct && search->distinct[place] != parent) place++;
            if (place == n_distinct) search->distinct[n_distinct++] = parent;
            search->row_tokens[row] = tokens[r];
            search->row_parents[row] = parent;
            search->row_distinct[row] = place;
        }
    }
    search->n_rows = row;
    search->n_distinct = n_distinct;
}

/* ---- one step of the model ---- */

static void product(Search *search, const Product *weights, Rows x, float *y, ptrdiff_t stride, int add) {
    multiply(search->model, search->pool, &search->scratch, weights, x, search->n_rows, y, stride, add);
}

/* Weights of each row, into the trace, and the weighted sum of the values. */
static void attend(Search *search, Rows queries) {
    const Model *model = search->model;
    const Kernels *kernels = model->kernels;
    const ptrdiff_t key_stride = stride_of(model->key_size);
    if (model->query) {
        product(search, model->query, queries, search->query, search->query_stride, 0);
        queries = (Rows){search->query, search->query_stride, NULL};
    }
    for (int i = 0; i < search->n_sources; i++) {
        Source *source = search->sources[i];
        const int n = source->length;
        for (int r = 0; r < source->n_rows; r++) {
            const int row = source->first_row + r;
            const float *query = queries.data + queries.stride * (queries.index ? queries.index[row] : row);
            float *weights = source->weights + ((size_t)source->n_steps * search->settings->beam + r) * n;
            float highest = -INFINITY, sum = 0.0f, *context = search->context + search->stride * row;
            for (int s = 0; s < n; s++) {
                const float *key = source->keys + key_stride * s;
                weights[s] = model->additive ? kernels->additive(model->score_vector, query, key, model->key_size)
                                             : kernels->dot(query, key, model->key_size);
                highest = weights[s] > highest ? weights[s] : highest;
            }
            for (int s = 0; s < n; s++) sum += weights[s] = expf(weights[s] - highest);
            memset(context, 0, sizeof(float) * model->size);
            for (int s = 0; s < n; s++) {
                weights[s] /= sum;
                kernels->add_scaled(context, source->values + search->stride * s, weights[s], model->size);
            }
        }
    }
}

/* The inputs' share of the first layer's gates that is not in its table; NULL if there is none. */
static const float *input_gates(Search *search) {
    const Model *model = search->model;
    const Layer *layer = &model->decoder[0];
    Rows fed = {search->before.fed, search->stride, search->row_parents};
    int added = 0;
    if (layer->table == NULL) {
        product(search, layer->input, (Rows){model->target_embedding, model->embedding_size, search->row_tokens}, search->input, search->gate_stride, 0);
        added = 1;
    }
    if (model->feed_output) product(search, model->feed_output, fed, search->input, search->gate_stride, added), added = 1;
    if (!model->feed_context) return added ? search->input : NULL;
    if (model->context == CONTEXT_ATTENTION) {
        attend(search, (Rows){search->before.hidden[model->decoder_layers - 1], search->stride, search->row_parents});
        product(search, model->feed_context, (Rows){search->context, search->stride, NULL}, search->input, search->gate_stride, added);
        return search->input;
    }
    for (int i = 0; i < search->n_sources; i++)
        for (int r = 0; r < search->sources[i]->n_rows; r++) {
            float *gates = search->input + search->gate_stride * (search->sources[i]->first_row + r);
            if (!added) memset(gates, 0, sizeof(float) * model->feed_context->n);
            model->kernels->add(gates, search->sources[i]->gates, model->feed_context->n);
        }
    return search->input;
}

/* Run the recurrent layers; returns the last one's outputs. */
static const float *recur(Search *search) {
    const Model *model = search->model;
    const float *gates = input_gates(search), *outputs = NULL;
    for (int number = 0; number < model->decoder_layers; number++) {
        const Layer *layer = &model->decoder[number];
        const float *before = search->before.hidden[number], *cell_before = search->before.cell[number];
        float *after = search->after.hidden[number], *cell = search->after.cell[number];
        if (number) {
            product(search, layer->input, (Rows){outputs, search->stride, NULL}, search->input, search->gate_stride, 0);
            gates = search->input;
        }
        multiply(model, search->pool, &search->scratch, layer->recurrent, (Rows){before, search->stride, search->distinct},
                 search->n_distinct, search->recurrent, search->gate_stride, 0);
        for (int row = 0; row < search->n_rows; row++) {
            const ptrdiff_t from = search->stride * search->row_parents[row], to = search->stride * row;
            Gates share = {
                .base = layer->table && !number ? layer->table + (size_t)layer->recurrent->n * search->row_tokens[row] : layer->base,
                .input = gates ? gates + search->gate_stride * row : model->zeros,
                .recurrent = search->recurrent + search->gate_stride * search->row_distinct[row],
                .recurrent_bias = layer->recurrent_bias,
            };
            model->kernels->step(layer->cell, layer->size, share, before + from, cell_before + from, cell + to, after + to);
        }
        if (number && model->residual) {
            float *sum = number % 2 ? search->stacked : search->other;
            memcpy(sum, after, sizeof(float) * search->stride * search->n_rows);
            for (int row = 0; row < search->n_rows; row++)
                model->kernels->add(sum + search->stride * row, outputs + search->stride * row, model->size);
            outputs = sum;
        } else {
            outputs = after;
        }
    }
    return outputs;
}

/* The feed-forward layer, and the logits without their bias. */
static void read_out(Search *search, const float *outputs) {
    const Model *model = search->model;
    Rows states = {outputs, search->stride, NULL};
    const int attends = model->context == CONTEXT_ATTENTION;
    if (attends && !model->feed_context) attend(search, states);
    product(search, model->read_state, states, search->read, search->stride, 0);
    if (attends && model->read_context)
        product(search, model->read_context, (Rows){search->context, search->stride, NULL}, search->read, search->stride, 1);
    for (int i = 0; i < search->n_sources; i++) {
        const Source *source = search->sources[i];
        for (int r = 0; r < source->n_rows; r++) {
            const ptrdiff_t at = search->stride * (source->first_row + r);
            const float *context = source->read ? source->read : model->values ? search->context + at : model->zeros;
            model->kernels->squash(search->read + at, model->read_bias, context, model->size);
        }
    }
    if (search->after.fed) memcpy(search->after.fed, search->read, sizeof(float) * search->stride * search->n_rows);
    product(search, model->output, (Rows){search->read, search->stride, NULL}, search->logits, search->logit_stride, 0);
}

/* ---- one step of the search ---- */

static double length_penalty(const Settings *settings, int n_tokens) {
    return pow((5.0 + n_tokens) / 6.0, settings->length_penalty);
}

/* The best continuations of a source, best first; of equal ones the first. Returns their number. */
static int best_candidates(Search *search, const Source *source) {
    const Model *model = search->model;
    const int wanted = search->settings->beam == 1 ? 1 : 2 * search->settings->beam;
    Candidate *candidates = search->candidates;
    int n = 0;
    for (int r = 0; r < source->n_rows; r++) {
        float *logits = search->logits + search->logit_stride * (source->first_row + r);
        const float sum = model->kernels->log_sum_exp(logits, model->output_bias, model->vocabulary_size);
        const float score = (float)source->scores[r];
        for (int token = TOKEN_PAD + 1; token < model->vocabulary_size; token++) {
            const float log_prob = logits[token] - sum, total = log_prob + score;
            if (!(total > (n < wanted ? -INFINITY : candidates[n - 1].total))) continue;
            int place = n < wanted ? n++ : n - 1;
            for (; place && total > candidates[place - 1].total; place--) candidates[place] = candidates[place - 1];
            candidates[place] = (Candidate){r, token, log_prob, total, source->scores[r] + log_prob};
        }
    }
    return n;
}

/* Whether one end ranks before another: finished ones first, each kind by score, the earlier of equal ones. */
static int ranks_before(const End *one, const End *other) {
    if (one->finished != other->finished) return one->finished;
    return one->normalised > other->normalised;
}

static void note_end(Search *search, Source *source, const Candidate *last, int choice, int finished) {
    End end = {*last, last->score / length_penalty(search->settings, source->n_steps), source->n_steps - 1, choice, finished};
    int place = source->n_kept;
    for (; place && ranks_before(&end, &source->kept[place - 1]); place--) source->kept[place] = source->kept[place - 1];
    source->kept[place] = end;
    if (source->n_kept < search->settings->beam) source->n_kept++;
    source->n_ended++;
    if (finished && end.normalised > source->best) source->best = end.normalised;
}

/* Choose how a source goes on, or end its search. */
static void choose(Search *search, Source *source) {
    const int beam = search->settings->beam, n = best_candidates(search, source);
    const int at_limit = ++source->n_steps >= source->limit;
    int n_rows = 0;
    make_room(search, source);
    const size_t at = (size_t)source->n_steps * beam;
    for (int choice = 0; choice < n; choice++) {
        const Candidate *candidate = &search->candidates[choice];
        const int ends = candidate->token == TOKEN_EOS;
        /* An end counts if it is among the best `beam`; at the limit all others are cut. */
        if (ends && choice < beam) note_end(search, source, candidate, choice, 1);
        else if (!ends && at_limit) note_end(search, source, candidate, choice, 0);
        if (ends || n_rows == beam) continue;
        source->tokens[at + n_rows] = candidate->token;
        source->parents[at + n_rows] = candidate->row;
        source->log_probs[at + n_rows] = candidate->log_prob;
        source->scores[n_rows++] = candidate->score;
    }
    source->n_rows = n_rows;
    source->over = at_limit || n_rows == 0;
    if (!source->over && beam > 1)
        source->over = source->n_ended >= beam
                       && !(source->scores[0] / length_penalty(search->settings, source->limit) > source->best);
}

/* ---- results ---- */

static void *enlarged(Search *search, void *data, int64_t wanted, int64_t *has, size_t size) {
    if (wanted <= *has) return data;
    int64_t n = wanted + wanted / 2 + 1024;
    void *made = realloc(data, n * size);
    if (made == NULL) longjmp(search->pool->refused, 1);
    *has = n;
    return made;
}

/* Read a hypothesis off the trace, from its end to its beginning. */
static void write_end(Search *search, const Source *source, const End *end, int place) {
    Result *result = search->result;
    const int beam = search->settings->beam, n = end->step + 1, keeps = source->keys && search->settings->keep_weights;
    const int64_t n_weights = keeps ? (int64_t)n * source->length : 0;
    int64_t has = result->room_tokens;
    result->found = enlarged(search, result->found, result->n_found + 1, &result->room_found, sizeof(Found));
    result->log_probs = enlarged(search, result->log_probs, result->n_tokens + n, &has, sizeof(float));
    result->tokens = enlarged(search, result->tokens, result->n_tokens + n, &result->room_tokens, sizeof(int32_t));
    result->weights = enlarged(search, result->weights, result->n_weights + n_weights, &result->room_weights, sizeof(float));
    result->found[result->n_found++] = (Found){
        .source = source->number, .n_tokens = n, .finished = end->finished, .place = place, .score = end->last.score,
        .normalised = end->normalised, .tokens_at = result->n_tokens, .weights_at = result->n_weights};
    int32_t *tokens = result->tokens + result->n_tokens, row = end->last.row;
    float *log_probs = result->log_probs + result->n_tokens, *weights = result->weights + result->n_weights;
    tokens[n - 1] = end->last.token;
    log_probs[n - 1] = end->last.log_prob;
    for (int step = n - 1; step >= 0; step--) {
        const size_t at = (size_t)step * beam + row;
        if (keeps) memcpy(weights + (size_t)step * source->length, source->weights + at * source->length, sizeof(float) * source->length);
        if (step == 0) break;
        tokens[step - 1] = source->tokens[at];
        log_probs[step - 1] = source->log_probs[at];
        row = source->parents[at];
    }
    result->n_tokens += n;
    result->n_weights += n_weights;
}

static void run_search(Search *search) {
    prepare(search);
    for (;;) {
        refill(search);
        if (search->n_sources == 0) return;
        lay_rows(search);
        read_out(search, recur(search));
        State swapped = search->before;
        search->before = search->after, search->after = swapped;
        search->n_used = search->n_rows;
        int n_going = 0;
        for (int i = 0; i < search->n_sources; i++) {
            Source *source = search->sources[i];
            choose(search, source);
            if (!source->over) {
                search->sources[n_going++] = source;
                continue;
            }
            for (int place = 0; place < source->n_kept && place < search->settings->nbest; place++)
                write_end(search, source, &source->kept[place], place);
            drop_source(search, source);
        }
        search->n_sources = n_going;
    }
}

/* ---- what Python calls ---- */

/* Search for outputs of a job's sources; 0, or 1 if memory was refused. Several threads may share a job, each
 * with a result of its own, which `regard_free` frees. */
int regard_decode(const Model *model, const Settings *settings, Job *job, Result *result) {
    Pool pool = {0};
    Search *search = calloc(1, sizeof(Search));
    if (search == NULL) return 1;
    *search = (Search){.model = model, .settings = settings, .job = job, .result = result, .pool = &pool};
    const int refused = setjmp(pool.refused);
    if (!refused) run_search(search);
    empty(&pool);
    free(search);
    return refused;
}

void regard_free(Result *result) {
    free(result->found);
    free(result->tokens);
    free(result->log_probs);
    free(result->weights);
    memset(result, 0, sizeof *result);
}

/* Pack weights (n, k); 0, or 1 if memory was refused. */
int regard_pack(const Kernels *kernels, const float *weights, Product *product) {
    product->packed = kernels->pack(weights, product->n, product->k, product->precision);
    return product->packed == NULL;
}

void regard_unpack(Product *product) {
    free(product->packed);
    product->packed = NULL;
}

const char *regard_name(const Kernels *kernels) { return kernels->name; }

/* A digest of the mirrored structures' sizes, which library.py checks. */
int64_t regard_layout(void) {
    return (int64_t)sizeof(Model) * 1000000000 + sizeof(Layer) * 1000000 + sizeof(Settings) * 10000 + sizeof(Job) * 100 + sizeof(Found)
           + sizeof(Result) + sizeof(Product);
}
