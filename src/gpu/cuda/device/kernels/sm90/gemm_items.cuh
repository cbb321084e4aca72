// SPDX-License-Identifier: Apache-2.0
// Which items a CTA of gemm does, one after the other: each a row block and a group of panels.
#pragma once

#include "gpu/cuda/device/kernels/sm90/gemm_shared.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// CTAs, or pairs of CTAs, take items in turn. Every warp finds its items itself. `at` is the number of an
// item.
template <typename format, int width>
struct items_in_turn_t {
    using shared_t = gemm_shared_t<format, width>;
    static constexpr int pair = shared_t::pair;

    const matmul_args_t &args;
    const typename shared_t::head_t &head;
    const panels_t<shared_t::panels> &panel_map;
    int pair_rank, groups, begin, end, step;

    // own: the number of this one among `ctas`.
    __device__ items_in_turn_t(const matmul_args_t &a, typename shared_t::head_t &h,
            const panels_t<shared_t::panels> &map, int own, int ctas, int pair_rank)
        : args(a), head(h), panel_map(map), pair_rank(pair_rank), groups((map.groups() + pair - 1) / pair),
          begin(own), end(h.list.shares(a) * groups), step(ctas) {}

    // Called by both CTAs of a pair, which process the same items.
    __device__ bool wanted(int at) const {
        for (int i = 0; i < pair; i++)
            if (panel_map.wanted(args.wanted, at % groups * pair + i)) return true;
        return false;
    }
    __device__ row_block_t block(int at) const {
        return head.list.block(args, at / groups, gemm_t::row_step);
    }
    __device__ int panel_group(int at) const { return at % groups * pair + pair_rank; }
    // Whether the CTAs of a pair have different row blocks.
    __device__ static bool is_apart(int) { return false; }
};

// Rounds of items, one for each CTA. Where rows of the source come meanwhile, the last CTAs start late, and
// the first rounds have no items for them.
struct rounds_t {
    const matmul_args_t &args;

    __device__ static int own() { return int(blockIdx.x); }
    __device__ static int ctas() { return int(gridDim.x); }
    __device__ int begin() const { return own() < ctas() - args.makers ? 0 : args.maker_rounds; }
    __device__ int end(int items) const {
        const int early = ctas() - args.makers;
        return min((items - own() + early - 1) / early,
                (items - own() + args.makers * args.maker_rounds + ctas() - 1) / ctas());
    }
    __device__ int item(int at) const {
        return own() + at * ctas() - args.makers * min(at, int(args.maker_rounds));
    }
};

// The same in such rounds. `at` is the number of a round.
template <typename format, int width>
struct items_in_rounds_t {
    using shared_t = gemm_shared_t<format, width>;
    static_assert(shared_t::pair == 1, "no pairs");

    const matmul_args_t &args;
    const typename shared_t::head_t &head;
    const panels_t<shared_t::panels> &panel_map;
    rounds_t rounds;
    int groups, begin, end;
    static constexpr int step = 1;

    __device__ items_in_rounds_t(const matmul_args_t &a, typename shared_t::head_t &h,
            const panels_t<shared_t::panels> &map, int, int, int)
        : args(a), head(h), panel_map(map), rounds{a}, groups(map.groups()), begin(rounds.begin()),
          end(rounds.end(h.list.shares(a) * groups)) {}

    __device__ bool wanted(int at) const { return panel_map.wanted(args.wanted, panel_group(at)); }
    __device__ row_block_t block(int at) const {
        return head.list.block(args, rounds.item(at) / groups, gemm_t::row_step);
    }
    __device__ int panel_group(int at) const { return rounds.item(at) % groups; }
    __device__ static bool is_apart(int) { return false; }
};

// The same for pairs, which have neighbouring groups of panels and one row block. Where the number of groups
// is odd, they have the last group and two row blocks: an item after all others of these blocks. (Not for
// products at the rate of FP8, where the widest blocks have no register left for that: C7511.) All warps
// together find the first items in the beginning. `at` counts the items of a pair.
//
// The last round of items of one matrix would leave some pairs without work. So as many columns (two groups
// of panels) as there are such pairs divide the rows into one block more, and all pairs end earlier. These
// columns come last, so that every pair gets about as many of their narrower blocks.
template <typename format, int width>
struct items_of_pairs_t {
    using shared_t = gemm_shared_t<format, width>;
    static constexpr int pair = 2;
    static_assert(shared_t::pair == pair, "pairs");

    const matmul_args_t &args;
    const typename shared_t::head_t &head;
    const panels_t<shared_t::panels> &panel_map;
    int pair_rank, blocks, groups, own, ctas, more, end; // more: columns with one block more
    static constexpr int begin = 0, step = 1;

    // Called by all threads.
    __device__ items_of_pairs_t(const matmul_args_t &a, typename shared_t::head_t &h,
            const panels_t<shared_t::panels> &map, int own, int ctas, int pair_rank)
        : args(a), head(h), panel_map(map), pair_rank(pair_rank), blocks(h.list.shares(a)),
          groups(map.groups()), own(own), ctas(ctas), more(columns_with_more()),
          end(((blocks * groups + 1) / pair + more - own + ctas - 1) / ctas) {
        // From lane 0, so that the compiler knows that all lanes of a warp take the same branch.
        for (int at = __shfl_sync(~0u, threadIdx.x / 32, 0); at < min(end, gemm_t::known_items);
                at += shared_t::threads / 32) {
            const gemm_item_t item = find(at);
            if (threadIdx.x % 32 == 0) h.items[at] = item;
        }
        __syncthreads();
    }

    __device__ bool wanted(int at) const {
        if (!args.wanted) return true;
        const place_t p = place(at);
        return panel_map.wanted(args.wanted, p.group)
               || (!p.apart && panel_map.wanted(args.wanted, p.group + 1));
    }
    __device__ row_block_t block(int at) const { return item(at).block; }
    __device__ int panel_group(int at) const { return item(at).panel_group; }
    __device__ bool is_apart(int at) const { return place(at).apart; }

private:
    struct place_t {
        int block, group; // of the first CTA
        bool apart;
    };
    __device__ int columns_with_more() const {
        const int items = blocks * groups / pair;
        return args.grouped || groups % pair ? 0
                                             : min((items + ctas - 1) / ctas * ctas - items, groups / pair);
    }
    // Two blocks have `groups` items together.
    __device__ __forceinline__ place_t place(int at) const {
        if (more > 0) {
            const int item = own + at * ctas, others = groups / pair - more, of_more = item - others * blocks;
            return of_more < 0 ? place_t{item / others, item % others * pair, false}
                               : place_t{of_more / more, (others + of_more % more) * pair, false};
        }
        const int item = own + at * ctas, first = item / groups * 2, left = item % groups,
                  full = groups / pair, here = min(2, blocks - first);
        if (left < here * full)
            return {first + (left >= full), (left >= full ? left - full : left) * pair, false};
        return {first, full * pair, here == 2};
    }
    __device__ gemm_item_t item(int at) const { return at < gemm_t::known_items ? head.items[at] : find(at); }
    // Called by a warp.
    __device__ gemm_item_t find(int at) const {
        const place_t p = place(at);
        if (more == 0)
            return {head.list.block(args, p.block + (p.apart ? pair_rank : 0), gemm_t::row_step),
                    p.group + (p.apart ? 0 : pair_rank)};
        const int count = blocks + (p.group / pair >= groups / pair - more),
                  steps = (args.M + gemm_t::row_step - 1) / gemm_t::row_step;
        const auto begin_of = [&](int block) {
            return min(int(int64_t(block) * steps / count) * gemm_t::row_step, args.M);
        };
        const int first = begin_of(p.block);
        return {{0, args.row_begin + first, begin_of(p.block + 1) - first}, p.group + pair_rank};
    }
};

// The same for widths with short items. All warps together find the first items in the beginning, because
// finding one between two items takes as long as two stages. `at` counts the items of a CTA.
template <typename format, int width>
struct known_items_t {
    using shared_t = gemm_shared_t<format, width>;
    static_assert(shared_t::pair == 1, "no pairs");

    const matmul_args_t &args;
    const typename shared_t::head_t &head;
    const panels_t<shared_t::panels> &panel_map;
    int own, ctas, groups, end;
    static constexpr int begin = 0, step = 1;

    // Called by all threads.
    __device__ known_items_t(const matmul_args_t &a, typename shared_t::head_t &h,
            const panels_t<shared_t::panels> &map, int own, int ctas, int)
        : args(a), head(h), panel_map(map), own(own), ctas(ctas), groups(map.groups()),
          end((h.list.shares(a) * groups - own + ctas - 1) / ctas) {
        // From lane 0, so that the compiler knows that all lanes of a warp take the same branch.
        for (int at = __shfl_sync(~0u, threadIdx.x / 32, 0); at < min(end, gemm_t::known_items);
                at += shared_t::threads / 32) {
            const gemm_item_t item = find(at);
            if (threadIdx.x % 32 == 0) h.items[at] = item;
        }
        __syncthreads();
    }

    __device__ bool wanted(int at) const { return panel_map.wanted(args.wanted, panel_group(at)); }
    __device__ row_block_t block(int at) const { return item(at).block; }
    __device__ int panel_group(int at) const { return item(at).panel_group; }
    __device__ static bool is_apart(int) { return false; }

private:
    __device__ gemm_item_t item(int at) const { return at < gemm_t::known_items ? head.items[at] : find(at); }
    // Called by a warp.
    __device__ gemm_item_t find(int at) const {
        const int item = own + at * ctas;
        return {head.list.block(args, item / groups, gemm_t::row_step), item % groups};
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
