/* The kernels for each instruction set, and the choice among them. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *aligned(size_t bytes) {
    void *made = NULL;
    return posix_memalign(&made, 64, bytes ? bytes : 64) ? NULL : made;
}

/* Round to the nearest bfloat16, to even where two are as near. */
static uint16_t to_bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

#define NAME(x) x##_portable
#define KERNELS_NAME "portable"
#define LANES 4
#define BLOCK_ROWS 4
#define PANEL 8
#include "kernels.inc"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define NAME(x) x##_avx2
#define KERNELS_NAME "AVX2"
#define LANES 8
#define BLOCK_ROWS 6
#define PANEL 16
#include "kernels.inc"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#endif
#define NAME(x) x##_avx512
#define KERNELS_NAME "AVX-512"
#define LANES 16
#define BLOCK_ROWS 12
#define PANEL 32
#include "kernels.inc"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#include "amx.inc"
#endif

const Kernels *regard_kernels(const char *limit) {
    const Kernels *chosen = &kernels_portable;
    if (limit != NULL && strcmp(limit, "portable") == 0) return chosen;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) chosen = &kernels_avx2;
    if (limit != NULL && strcmp(limit, "AVX2") == 0) return chosen;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl"))
        chosen = &kernels_avx512;
    if (limit != NULL && strcmp(limit, "AVX-512") == 0) return chosen;
#if defined(REGARD_AMX)
    static Kernels amx;
    if (chosen == &kernels_avx512 && has_amx()) {
        amx = kernels_avx512;
        amx.name = "AMX";
        amx.pack = pack_amx;
        amx.multiply = multiply_amx;
        amx.scratch_size = scratch_size_amx;
        chosen = &amx;
    }
#endif
#endif
    return chosen;
}
