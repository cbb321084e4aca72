// SPDX-License-Identifier: Apache-2.0
// Attention of rows that follow each other in a sequence, by the tensor cores of Hopper (wgmma).
//
// A block has some rows of one query head: three warpgroups compute 64 of them each, and a fourth one fetches
// keys and values, 64 at a time, for all of them. A warpgroup multiplies by the values of some keys and by
// the next keys at once, then has the scores of these; while it computes with them, others multiply.
#include "attention.cuh"
#include "barrier.cuh"

namespace llm::cuda {

namespace {

constexpr int size = 64, keys = 64; // elements of a head, keys that come at once
constexpr int groups = 3, group_threads = 128, group_rows = 64, block_rows = groups * group_rows;
constexpr int threads = (groups + 1) * group_threads;
constexpr int stages = 6, in_flight = 3; // tiles that have room, tiles that are fetched at once
static_assert(stages >= in_flight + 2, "a tile of values and the one of the next keys are in use");
constexpr int row_bytes = size * 2, tile_bytes = keys * row_bytes, alignment = 1024;
constexpr int shared_bytes = stages * 2 * tile_bytes + alignment;
// Registers of the threads that fetch, and of the others: 128 * 4 = 32 + 160 * 3.
#define LLM_FETCHING_REGISTERS "32"
#define LLM_COMPUTING_REGISTERS "160"
constexpr float slack = 8; // weights are at most 2^slack

// A place in the ring of stages, and how often it has been around.
struct turn_of_ring_t {
    int stage = 0;
    uint32_t parity = 0;
    __device__ void next() {
        if (++stage == stages) stage = 0, parity ^= 1;
    }
};

// ---- wgmma ----

// sums[64 x 64] = or += a[64 x 16] * b[16 x 64]; b lies in shared memory at address / 16, rows of 128 bytes
// under the 128-byte swizzle: 16-byte chunk c of row r stands at c ^ (r % 8). Its rows are columns of the
// sums (keys), or what is added up (values).
#define LLM_SUMS(is)                                                                                         \
    is(d[0]), is(d[1]), is(d[2]), is(d[3]), is(d[4]), is(d[5]), is(d[6]), is(d[7]), is(d[8]), is(d[9]),      \
            is(d[10]), is(d[11]), is(d[12]), is(d[13]), is(d[14]), is(d[15]), is(d[16]), is(d[17]),          \
            is(d[18]), is(d[19]), is(d[20]), is(d[21]), is(d[22]), is(d[23]), is(d[24]), is(d[25]),          \
            is(d[26]), is(d[27]), is(d[28]), is(d[29]), is(d[30]), is(d[31])
#define LLM_MULTIPLY(is, adds, is_values)                                                                    \
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.u32 p, " adds ", 0; mov.b64 b, {%36, 0x40000040}; "    \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                     \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                   \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "         \
                 "{%32, %33, %34, %35}, b, p, 1, 1, " is_values ";}"                                         \
                 : LLM_SUMS(is)                                                                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b))
__device__ void begin_keys(float (&d)[32], const uint32_t (&a)[4], uint32_t b) {
    LLM_MULTIPLY("=f", "0", "0");
}
__device__ void add_keys(float (&d)[32], const uint32_t (&a)[4], uint32_t b) { LLM_MULTIPLY("+f", "1", "0"); }
__device__ void add_values(float (&d)[32], const uint32_t (&a)[4], uint32_t b) {
    LLM_MULTIPLY("+f", "1", "1");
}
// Registers that products work on have their values here; the compiler moves nothing across.
__device__ void settle(float (&d)[32]) {
#pragma unroll
    for (int i = 0; i < 32; i++) asm volatile("" : "+f"(d[i])::"memory");
}
// Before products, and after them.
__device__ void open_products(float (&result)[32]) {
    settle(result);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void close_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wait_for_products(float (&scores)[32], float (&result)[32]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    settle(scores);
    settle(result);
}

// ---- fetching ----

// 16 bytes into shared memory, as they arrive, or zeros.
__device__ void fetch(uint32_t to, const bf16_t *from, bool is_there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
}
// Waits until at most `pending` tiles of this thread are on their way, and shows the others to wgmma.
template <int pending>
__device__ void wait_for_fetches() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__global__ void __launch_bounds__(threads, 1)
        attend_span_hopper_kernel(const attention_t a, int sequence, int rows, int position, bf16_t *y) {
    extern __shared__ uint8_t room[];
    __shared__ uint64_t full[stages], empty[stages];
    const uint32_t tiles = (shared_address(room) + alignment - 1) / alignment * alignment;
    const int group = threadIdx.x / group_threads, lane = threadIdx.x % 32;
    const int head = blockIdx.x, kv = head / int(a.heads / a.kv_heads), capacity = int(a.capacity);
    // The last rows have the most keys; they begin first.
    const int block_row = int(gridDim.y - 1 - blockIdx.y) * block_rows;
    const int end = position + min(block_row + block_rows, rows);
    const int first_tile = first_seen(a, position + block_row) / keys, end_tile = (end - 1) / keys + 1;
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; i++) {
            init(full[i], group_threads);
            init(empty[i], groups * group_threads / 32);
        }
        show_barriers();
    }
    __syncthreads();
    begin_work();
    turn_of_ring_t turn;

    if (group == groups) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 " LLM_FETCHING_REGISTERS ";");
        // A thread fetches the same part of some keys and values.
        constexpr int parts = row_bytes / 16, together = group_threads / parts;
        const int part = threadIdx.x % parts, first_key = threadIdx.x % group_threads / parts;
        const int64_t at = (int64_t(sequence) * a.kv_heads + kv) * a.capacity * size + part * 8;
        const bf16_t *const key_rows = static_cast<const bf16_t *>(a.keys) + at;
        const bf16_t *const value_rows = static_cast<const bf16_t *>(a.values) + at;
        const uint32_t to_part = tiles + first_key * row_bytes + (part ^ first_key % 8) * 16;
        int slot = first_tile * keys % capacity, announced = 0;
        turn_of_ring_t ready;
        for (int tile = first_tile; tile < end_tile; tile++, turn.next()) {
            wait_for(empty[turn.stage], turn.parity ^ 1);
            const uint32_t to = to_part + turn.stage * 2 * tile_bytes;
#pragma unroll
            for (int key = 0; key < keys; key += together) {
                int of = slot + first_key + key;
                while (of >= capacity) of -= capacity;
                const bool is_there = tile * keys + first_key + key < end;
                fetch(to + key * row_bytes, key_rows + of * size, is_there);
                fetch(to + tile_bytes + key * row_bytes, value_rows + of * size, is_there);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            slot += keys;
            while (slot >= capacity) slot -= capacity;
            if (tile - first_tile < in_flight) continue;
            wait_for_fetches<in_flight>();
            arrive(full[ready.stage]);
            ready.next();
            announced++;
        }
        wait_for_fetches<0>();
        for (; announced < end_tile - first_tile; announced++, ready.next()) arrive(full[ready.stage]);
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 " LLM_COMPUTING_REGISTERS ";");
    const int group_row = block_row + group * group_rows, last_row = min(group_row + group_rows, rows) - 1;
    // This lane has rows r and r + 8.
    const int r = group_row + threadIdx.x % group_threads / 32 * 16 + lane / 4;
    bf16_t *const of_lane = y + (int64_t(r) * a.heads + head) * size + lane % 4 * 2;
    const int64_t next_8 = 8 * a.heads * size;
    uint32_t q[size / 16][4];
    for (int e = 0; e < size / 16; e++)
        for (int i = 0; i < 4; i++)
            q[e][i] = r + i % 2 * 8 < rows ? *reinterpret_cast<const uint32_t *>(
                              of_lane + i % 2 * next_8 + e * 16 + i / 2 * 8)
                                           : 0;
    float scores[32], result[32] = {}, top[2] = {no_score, no_score}, sum[2] = {};
    uint32_t weights[keys / 16][4];
    int last_stage = 0;

    const auto release = [&](int stage) {
        if (lane == 0) arrive(empty[stage]);
    };
    const auto pass = [&] {
        wait_for(full[turn.stage], turn.parity);
        release(turn.stage);
        turn.next();
    };
    const auto multiply_keys = [&](int stage) {
        const uint32_t b = (tiles + stage * 2 * tile_bytes) / 16;
#pragma unroll
        for (int e = 0; e < size / 16; e++)
            e ? add_keys(scores, q[e], b + e * (16 * 2 / 16)) : begin_keys(scores, q[e], b);
    };
    const auto multiply_values = [&](int stage) {
        const uint32_t b = (tiles + (stage * 2 + 1) * tile_bytes) / 16;
#pragma unroll
        for (int n = 0; n < keys / 16; n++) add_values(result, weights[n], b + n * (16 * row_bytes / 16));
    };
    // From scores to weights; what is there already is corrected for larger scores.
    const auto weigh = [&](int key) {
        // Only where some row does not see all of the keys.
        if (key + keys > position + group_row + 1 || key < first_seen(a, position + last_row)) {
#pragma unroll
            for (int i = 0; i < 32; i++) {
                const int p = key + i / 4 * 8 + lane % 4 * 2 + i % 2, of = position + r + i / 2 % 2 * 8;
                if (p > of || p < first_seen(a, of)) scores[i] = unseen;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float most = top[h];
#pragma unroll
            for (int i = 2 * h; i < 32; i += 4) most = fmaxf(most, fmaxf(scores[i], scores[i + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            // Only for scores that are much larger.
            if (__any_sync(~0u, most > top[h] + slack)) {
                const float factor = power_of_2(top[h] - most);
                top[h] = most;
                sum[h] *= factor;
#pragma unroll
                for (int i = 2 * h; i < 32; i += 4) result[i] *= factor, result[i + 1] *= factor;
            }
#pragma unroll
            for (int n = 0; n < keys / 8; n++) {
                const float *s = scores + n * 4 + 2 * h;
                const float low = power_of_2(s[0] - top[h]), high = power_of_2(s[1] - top[h]);
                sum[h] += low + high;
                weights[n / 2][n % 2 * 2 + h] = pair_of(low, high);
            }
        }
    };

    const bool has_rows = group_row < rows;
    const int begin = has_rows ? first_seen(a, position + group_row) / keys : end_tile;
    const int group_end = has_rows ? (position + last_row) / keys + 1 : end_tile;
    int tile = first_tile;
    for (; tile < begin; tile++) pass();
    if (has_rows) {
        wait_for(full[turn.stage], turn.parity);
        open_products(result);
        multiply_keys(turn.stage);
        close_products();
        for (; tile + 1 < group_end; tile++) {
            wait_for_products(scores, result);
            if (tile > begin) release(last_stage);
            weigh(tile * keys);
            last_stage = turn.stage;
            turn.next();
            wait_for(full[turn.stage], turn.parity);
            open_products(result);
            multiply_values(last_stage);
            multiply_keys(turn.stage);
            close_products();
        }
        wait_for_products(scores, result);
        if (tile > begin) release(last_stage);
        weigh(tile * keys);
        open_products(result);
        multiply_values(turn.stage);
        close_products();
        wait_for_products(scores, result);
        release(turn.stage);
        turn.next();
        tile++;
    }
    for (; tile < end_tile; tile++) pass();

#pragma unroll
    for (int h = 0; h < 2; h++) {
        float all = sum[h];
        all += __shfl_xor_sync(~0u, all, 1);
        all += __shfl_xor_sync(~0u, all, 2);
        float factor = add_sink(a, head, top[h], all);
        factor /= all;
        if (r + h * 8 >= rows) continue;
        bf16_t *const to = of_lane + h * next_8;
#pragma unroll
        for (int n = 0; n < size / 8; n++)
            put_pair(to + n * 8, result[n * 4 + 2 * h] * factor, result[n * 4 + 2 * h + 1] * factor);
    }
}

} // namespace

bool can_attend_span_on_hopper(const attention_t &a) {
    if (a.cache != type_t::bf16 || a.result != type_t::bf16 || a.head_size != size) return false;
    int device = 0, major = 0;
    check(cudaGetDevice(&device), "ask for the device");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "ask the device");
    return major == 9;
}

void attend_span_on_hopper(
        stream_t s, const attention_t &a, int64_t sequence, int64_t rows, int64_t position, void *y) {
    check(cudaFuncSetAttribute(
                  attend_span_hopper_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
            "use shared memory");
    launch(s, attend_span_hopper_kernel,
            dim3(unsigned(a.heads), unsigned((rows + block_rows - 1) / block_rows)), threads, shared_bytes, a,
            int(sequence), int(rows), int(position), static_cast<bf16_t *>(y));
}

} // namespace llm::cuda
