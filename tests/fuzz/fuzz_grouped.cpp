// SPDX-License-Identifier: Apache-2.0
// Any bytes as the index tensors of grouped_matmul: refused with a sentence and nothing written, or executed,
// and then every implementation writes the same rows with the same results.
#include "fuzz/fuzz.hpp"

#include <unordered_map>

#include "mxdnn/mxdnn.hpp"

using mxdnn::memory;
using dt = memory::data_type;
using tag = memory::format_tag;

namespace {

constexpr int E = 3, K = 32, N = 16, max_rows = 24;
constexpr float poison = -77.25f;

constexpr mxdnn::row_grouping groupings[] = {mxdnn::row_grouping::ends, mxdnn::row_grouping::starts,
        mxdnn::row_grouping::padded, mxdnn::row_grouping::row_ids};
constexpr int bounds_args[] = {
        MXDNN_ARG_GROUP_OFFSETS, MXDNN_ARG_GROUP_OFFSETS, MXDNN_ARG_GROUP_COUNTS, MXDNN_ARG_ROW_EXPERT_IDS};

// Created once: primitives of every implementation for every grouping, and their inputs.
struct fixture_t {
    mxdnn::engine engine{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream stream{engine};
    std::vector<std::vector<mxdnn::grouped_matmul>> primitives; // [grouping][implementation]
    std::vector<float> src = std::vector<float>(max_rows * K);
    memory weights;

    fixture_t() {
        mxdnn::set_max_concurrency(1);
        const mxdnn_dim_t runtime = MXDNN_RUNTIME_DIM_VAL;
        for (const mxdnn::row_grouping grouping : groupings) {
            mxdnn::primitive_attr a;
            a.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
            a.set_row_grouping(grouping);
            mxdnn::grouped_matmul::primitive_desc pd(engine, memory::desc({runtime, K}, dt::f32, tag::ab),
                    memory::desc({E, K, N}, dt::f4_e2m1, tag::any),
                    memory::desc({runtime, N}, dt::f32, tag::ab), a);
            if (!weights) weights = pack(pd.weights_desc());
            primitives.emplace_back();
            do primitives.back().emplace_back(pd);
            while (pd.next_impl());
        }
        for (size_t i = 0; i < src.size(); i++) src[i] = float(int(i * 7 % 31) - 15);
    }
    // Whole numbers, so that all results are exact.
    memory pack(const memory::desc &packed) {
        std::vector<float> w(E * K * N);
        for (size_t i = 0; i < w.size(); i++) w[i] = float(int(i * 5 % 7) - 3);
        mxdnn::primitive_attr q;
        q.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, mxdnn::quantization_mode::dynamic_mx);
        memory from(memory::desc({E, K, N}, dt::f32, tag::abc), engine, w.data()), to(packed, engine);
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(engine, from.get_desc(), engine, packed, q))
                .execute(stream, from, to);
        return to;
    }
};

// Takes numbers from the input; 0 beyond its end.
struct reader_t {
    const uint8_t *data;
    size_t size, at = 0;
    uint8_t byte() { return at < size ? data[at++] : 0; }
    // Mostly small numbers, as indices are; one byte value stands for four bytes of anything.
    int32_t number() {
        const uint8_t b = byte();
        if (b != 0x80) return int8_t(b);
        uint32_t x = 0;
        for (int i = 0; i < 4; i++) x = x << 8 | byte();
        return int32_t(x);
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fixture_t f;
    reader_t in{data, size};
    const int grouping = in.byte() % 4, present = in.byte();
    const bool gather = present & 4, scatter = present & 8;
    // Lengths rarely fit each other by chance, so most bytes mean the length that does.
    const auto length = [&](int fitting) {
        const int b = in.byte();
        return b <= max_rows ? b : fitting;
    };
    const int src_rows = length(8), dst_rows = length(gather || scatter ? 5 : src_rows);
    const int rows = gather ? (scatter ? 12 : dst_rows) : src_rows;

    std::unordered_map<int, std::vector<int32_t>> tensors;
    const auto read = [&](int arg, int fitting) {
        std::vector<int32_t> v(size_t(length(fitting)));
        for (int32_t &x : v) x = in.number();
        tensors[arg] = v;
        return int(v.size());
    };
    const int groups = read(bounds_args[grouping], grouping == 3 ? rows : E) - (grouping == 1);
    if (present & 1 && grouping != 3) read(MXDNN_ARG_GROUP_EXPERT_IDS, groups < 0 ? 0 : groups);
    if (present & 2) read(MXDNN_ARG_EXPERT_MAP, 6);
    if (gather) read(MXDNN_ARG_GATHER_IDX, rows);
    if (scatter) read(MXDNN_ARG_SCATTER_IDX, rows);

    std::unordered_map<int, memory> memories;
    for (auto &t : tensors)
        memories[t.first] = memory(
                memory::desc({memory::dim(t.second.size())}, dt::s32, tag::a), f.engine, t.second.data());
    // Exactly as long as declared, so that a sanitizer sees every access beyond.
    std::vector<float> src(f.src.begin(), f.src.begin() + src_rows * K);
    memories[MXDNN_ARG_SRC] = memory(memory::desc({src_rows, K}, dt::f32, tag::ab), f.engine, src.data());
    memories[MXDNN_ARG_WEIGHTS] = f.weights;

    std::vector<float> first;
    mxdnn_status_t first_status = mxdnn_success;
    for (const mxdnn::grouped_matmul &primitive : f.primitives[size_t(grouping)]) {
        std::vector<float> dst(size_t(dst_rows * N), poison);
        memories[MXDNN_ARG_DST] = memory(memory::desc({dst_rows, N}, dt::f32, tag::ab), f.engine, dst.data());
        std::vector<mxdnn_exec_arg_t> args;
        args.reserve(memories.size());
        for (const auto &m : memories) args.push_back({m.first, m.second.get()});
        const mxdnn_status_t status =
                mxdnn_primitive_execute(primitive.get(), f.stream.get(), int(args.size()), args.data());
        FUZZ_CHECK(status == mxdnn_success || status == mxdnn_invalid_arguments);
        if (status != mxdnn_success) {
            FUZZ_CHECK(is_sentence(mxdnn_get_last_error()));
            for (const float v : dst) FUZZ_CHECK(v == poison);
        }
        if (&primitive == &f.primitives[size_t(grouping)].front()) {
            first = dst;
            first_status = status;
        }
        FUZZ_CHECK(status == first_status);
        for (size_t i = 0; i < dst.size(); i++) FUZZ_CHECK(dst[i] == first[i]);
    }
    return 0;
}

std::vector<fuzz_input_t> fuzz_seeds() {
    return {
            {0, 0, 8, 8, 3, 2, 5, 8},                                   // ends
            {0, 1, 8, 8, 2, 3, 8, 2, 2, 0xff},                          // with ids, one group skipped
            {0, 2, 8, 8, 4, 1, 3, 6, 8, 4, 2, 0xff, 0, 1},              // with a map
            {1, 0, 8, 8, 4, 1, 3, 3, 7},                                // starts
            {2, 0, 9, 9, 3, 3, 0, 2},                                   // padded
            {3, 0, 4, 4, 4, 2, 0xff, 0, 1},                             // row ids
            {0, 4, 3, 6, 3, 2, 4, 6, 6, 0, 1, 2, 0, 0xff, 1},           // gather
            {0, 8, 6, 2, 3, 2, 4, 6, 6, 0, 1, 0, 1, 0xff, 0},           // scatter
            {3, 12, 2, 2, 4, 0, 1, 2, 2, 4, 0, 0, 1, 1, 4, 0, 1, 0, 1}, // both
    };
}
