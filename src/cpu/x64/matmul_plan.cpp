// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/matmul_plan.hpp"

#include <algorithm>

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {
// More rows than this cost cache and gain nothing: decoding is then a few percent of the work.
constexpr int64_t most_rows = 512;
constexpr int64_t amx_direct_rows = 2;
// Prepared rows of each thread, if threads prepare their own.
constexpr int64_t own_source_bytes = 1 << 20;
// Prepared rows that threads share.
constexpr int64_t shared_source_bytes = 16 << 20;
constexpr int64_t any_rows = int64_t(1) << 40;
// Threads that copy rows themselves should have different ones. With two threads, or two calls of few rows in
// all, fewer calls than this for each part cost more: each part reads and decodes the weights.
constexpr int64_t own_calls = 3;

// The most rows of the parts of M rows that threads copy themselves, in calls of `step` rows.
int64_t own_rows(int64_t M, int64_t step, const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    if (!kernels.decodes_again)
        return own_calls * step; // whatever the number of threads: kernels depend on it
    const bool several = machine.threads >= several_threads && step == 3 * tile_source_rows;
    const int64_t rows = div_up(M - joined_rows(kernels), int64_t(machine.threads));
    return std::max(div_up(rows, step), several ? 1 : own_calls) * step;
}

// The rows of the kernel for a call of so many rows. More than two tiles have about equally many rows each,
// and a few more than whole tiles are worth a kernel with shorter tiles.
int64_t tile_kernel_rows(int64_t rows) {
    constexpr int64_t few = 4;
    const int64_t more = rows % tile_source_rows;
    return rows > 2 * tile_source_rows && more > 0 && more <= few ? rows - more + few
                                                                  : round_up(rows, tile_source_rows);
}
} // namespace

int plan_gemm_rows(int64_t M, int most, int step) {
    // Rows beyond M are multiplied in vain. A smaller kernel needs more loads for every product.
    int best = most;
    const auto cost = [&](int rows) { return div_up(M, int64_t(rows)) * (rows + 1); };
    for (int rows = most - step; rows > most / 2; rows -= step)
        if (cost(rows) < cost(best)) best = rows;
    return best;
}

int plan_tile_rows(int64_t M, int most) {
    // Calls of about equal length. Several calls have at most 48 rows each, which is fastest. If M is not
    // known, there are kernels for every number of tiles, which take long to generate.
    constexpr int few = 48;
    if (M == runtime_dim || M > most) most = std::min(most, few);
    if (M == runtime_dim) return most;
    const int64_t calls = std::max<int64_t>(div_up(M, int64_t(most)), 1);
    return int(std::max<int64_t>(round_up(div_up(M, calls), tile_source_rows), tile_source_rows));
}

int plan_direct_rows(int64_t M, int most) {
    return M == runtime_dim || M == 0 ? most : int(div_up(M, div_up(M, int64_t(most))));
}

std::vector<int> plan_direct_kernels(int64_t M, int most) {
    std::vector<int> rows;
    if (M != runtime_dim) {
        if (M % most) rows.push_back(int(M % most));
        if (M >= most || M == 0) rows.push_back(most);
        return rows;
    }
    for (int r = 1; r <= most; r++) rows.push_back(r);
    return rows;
}

std::vector<int> plan_tile_kernels(int64_t M, int most, int64_t joined) {
    std::vector<int> rows;
    if (M == runtime_dim) {
        for (int64_t r = 1; r <= most; r = rows.back() + 1)
            rows.push_back(int(std::min<int64_t>(tile_kernel_rows(r), most)));
        return rows;
    }
    int last = std::min(int(tile_kernel_rows(M % most)), most);
    if (M > most && last > 0 && last <= joined) last = int((most + joined) / 2);
    if (last && last < most) rows.push_back(last);
    if (M >= most || rows.empty()) rows.push_back(most);
    return rows;
}

std::vector<int> plan_short_runs(int64_t M, int64_t each, int most) {
    std::vector<int> rows;
    for (const int64_t run : {M - (div_up(M, each) - 1) * each, std::min(M, each)}) {
        if (run > most) continue;
        const int kernel = plan_tile_kernels(run, most).back();
        if (rows.empty() || rows.back() != kernel) rows.push_back(kernel);
    }
    return rows;
}

data_type_t preferred_compute(cpu_isa_t isa, cpu_family_t family) {
    // But for Zen, vdpbf16ps takes as long as four vfmadd231ps, for twice as many products.
    const bool slow_dots = includes(isa, cpu_isa_t::avx512_core_bf16)
                           && !includes(isa, cpu_isa_t::avx512_core_amx) && family != cpu_family_t::zen;
    return slow_dots ? mxdnn_f32 : mxdnn_data_type_undef;
}

int64_t direct_rows_limit(const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    // A direct call decodes again for every `direct_rows` rows. Tiles multiply so much faster than vector dot
    // products that decoding for them pays from the second or third row on.
    if (kernels.only_direct) return any_rows;
    if (kernels.direct_on_tiles) return kernels.direct_rows;
    if (kernels.best_direct_rows) return kernels.best_direct_rows;
    if (includes(machine.isa, cpu_isa_t::avx512_core_amx)) return amx_direct_rows;
    return 2 * kernels.direct_rows;
}

bool rows_conflict(int64_t stride, int64_t rows, int64_t l1d) {
    constexpr int64_t page = 4096, line = 64; // a way is a page: one line for each set
    if (rows <= l1d / page) return false;
    int64_t lines[page / line] = {}, most = 0;
    for (int64_t r = 0; r < rows; r++) most = std::max(most, ++lines[r * stride % page / line]);
    return most > l1d / page;
}

int fetch_ahead(cpu_family_t family) { return family == cpu_family_t::zen ? 4096 : 0; }

bool fetches_near(cpu_family_t family) { return family != cpu_family_t::zen; }

int64_t plan_k_chunk(int64_t K, const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    // The decoded panels of one gemm call take at most half of L2.
    const int64_t row_bytes = int64_t(kernels.gemm_panels) * panel_columns * kernels.compute_bytes;
    const int64_t fit = std::max<int64_t>(machine.l2 / 2 / row_bytes, kernels.tile_rows);
    if (round_up(K, k_step) <= fit) return round_up(K, k_step);
    // Chunks of about equal size, in whole tiles.
    const int64_t chunks = div_up(K, fit / kernels.tile_rows * kernels.tile_rows);
    return round_up(div_up(K, chunks), kernels.tile_rows);
}

int64_t plan_k_part(
        int64_t K, int64_t panel_bytes, const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    // Every group of panels reads the rows of a call again. In between, these rows and the codes of the group
    // pass through L2, which does not keep them if they take most of it. Sums of parts of K, which are stored
    // and read again, cost less than reading rows from further away.
    const int64_t bytes =
            K * kernels.row_step * kernels.compute_bytes + walked_panels(kernels.row_step) * panel_bytes;
    if (!kernels.decodes_again || bytes <= machine.l2 * 5 / 8) return 0;
    // Two calls of few rows each are parts of the rows for different threads instead.
    if (machine.threads > 1 && kernels.row_step < 3 * tile_source_rows) return 0;
    return round_up(div_up(K, div_up(bytes, machine.l2 / 2)), int64_t(kernels.tile_rows));
}

void plan_k_parts(int64_t K, int64_t panel_bytes, const matmul_machine_t &machine, int64_t M,
        matmul_kernels_t &kernels) {
    kernels.k_part = plan_k_part(K, panel_bytes, machine, kernels);
    if (M != runtime_dim || !kernels.k_part) return;
    // The largest kernel whose calls need no parts.
    matmul_kernels_t fewer = kernels;
    for (const int64_t rows : {2 * tile_source_rows, 2 * tile_source_rows + 1}) {
        fewer.row_step = int(tile_kernel_rows(rows));
        if (plan_k_part(K, panel_bytes, machine, fewer) == 0) kernels.rows_of_all_k = fewer.row_step;
    }
}

int64_t plan_tasks_together(int64_t tasks, int threads) {
    constexpr int64_t for_each_thread = 8;
    if (threads == 1) return most_tasks_together;
    return std::clamp<int64_t>(tasks / (for_each_thread * threads), 1, tasks_together_of_several);
}

int64_t max_plan_rows(
        int64_t K, int64_t rows_hint, const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    // The prepared source should stay in L2, beside the panels and the sums. Otherwise every panel reads it
    // from further away. Where every call decodes anyway, it is better to decode again for fewer rows, which
    // leave room for the results, too.
    const bool whole = kernels.fused || kernels.many || kernels.only_direct;
    const int64_t k = kernels.k_part ? kernels.k_part
                      : whole        ? round_up(K, k_step)
                                     : plan_k_chunk(K, machine, kernels);
    const int64_t row_bytes = std::max<int64_t>(1, k * (kernels.fused ? 1 : kernels.compute_bytes));
    // Where a panel is decoded once for all of them, twice as many rows pay even if they do not fit.
    const int64_t least = whole ? 128 : 256;
    const int64_t calls = machine.l2 / 2 / row_bytes / kernels.row_step;
    int64_t rows = kernels.decodes_again ? std::max<int64_t>(calls, 1) * kernels.row_step
                                         : std::max(machine.l2 * 3 / 4 / row_bytes, least);
    rows = std::min(rows, most_rows);
    if (rows_hint > 0) rows = std::min(rows, std::max(rows_hint, direct_rows_limit(machine, kernels)));
    return round_up(std::max<int64_t>(rows, kernels.direct_rows), kernels.row_step);
}

bool is_small(int64_t M, int64_t K, int64_t N) {
    constexpr int64_t most = int64_t(1) << 17; // products
    return M <= most && K <= most && N <= most && M * K <= most && M * K * N <= most;
}

int plan_parts_together(int64_t M, int64_t rows, int64_t bytes, const matmul_machine_t &machine,
        const matmul_kernels_t &kernels) {
    // Kernels that decode once for all rows of a part have larger parts.
    if (machine.threads <= 1 || !kernels.decodes_again) return 1;
    int64_t parts = std::min<int64_t>(most_parts_together, shared_source_bytes / std::max<int64_t>(bytes, 1));
    if (M != runtime_dim) parts = std::min(parts, div_up(M, std::max<int64_t>(rows, 1)));
    return int(std::max<int64_t>(parts, 1));
}

int64_t own_parts_t::first_of_share(int n, int i) const {
    if (i >= n) return all_tasks();
    const double before = double(M) * double(tasks) * i / n; // rows of tasks
    const int64_t part = std::min(int64_t(before / double(rows * tasks)), parts - 1);
    const int64_t at =
            std::min(int64_t((before - double(part * rows * tasks)) / double(rows_of(part))), tasks);
    const int64_t little = all_tasks() / n / 6;
    return part * tasks + (at <= little ? 0 : tasks - at <= little ? tasks : at);
}

bool threads_share_batch(int64_t batch, int64_t M, int64_t K, int threads) {
    // If two threads work on a matrix, both prepare it. This is for few threads per matrix, or if it costs
    // nothing.
    return batch > 1 && threads > 1 && (batch >= threads || M * K <= serial_elements);
}

int64_t own_source_rows(int64_t most, int64_t K, const matmul_kernels_t &kernels) {
    const int64_t fit = own_source_bytes / std::max<int64_t>(1, K * kernels.compute_bytes);
    const int64_t least = round_up(std::max(kernels.row_step, 2 * kernels.direct_rows), kernels.row_step);
    return std::min(most, std::max(fit / kernels.row_step * kernels.row_step, least));
}

matmul_plan_t plan_mx_matmul(const matmul_shape_t &s, int64_t rows_hint, const matmul_machine_t &machine,
        const matmul_kernels_t &kernels) {
    matmul_plan_t p;
    p.direct = s.M <= direct_rows_limit(machine, kernels);
    p.many = !p.direct && kernels.many;
    p.fused = !p.direct && kernels.fused;
    const int64_t most = max_plan_rows(s.K, rows_hint, machine, kernels);
    // Parts of about equal length, in whole calls.
    const int64_t step = p.direct ? kernels.direct_rows : kernels.row_step;
    const int64_t joined = joined_rows(kernels);
    int64_t fit = std::max(most / step * step, step);
    if (s.own_parts) fit = std::min(fit, own_rows(s.M, step, machine, kernels));
    const int64_t parts = parts_of(s.M, fit, joined);
    p.rows = p.direct && parts == 1 ? std::max<int64_t>(s.M, 1)
                                    : round_up(div_up(parts > 1 ? s.M - joined : s.M, parts), step);
    p.k_chunk = plan_k_chunk(s.K, machine, kernels);
    p.k_part = kernels.k_part;

    const int64_t dst_n = s.gated ? s.N / 2 : s.N;
    const int64_t least =
            std::max<int64_t>(s.column_step, p.direct ? panel_columns : kernels.gemm_panels * panel_columns);
    p.columns = plan_columns(least, s.column_step,
            wanted_tasks(matmul_tasks_for(s.M, kernels), machine.threads), [&](int64_t columns) {
                return div_up(dst_n, columns) * (s.own_parts ? parts_of(s.M, p.rows, joined) : s.batch);
            });
    return p;
}

std::string describe(const matmul_plan_t &p) {
    std::string s = p.direct ? "direct" : p.many ? "many" : p.fused ? "fused" : "decode+gemm";
    s += ":rows" + std::to_string(p.rows) + ":columns" + std::to_string(p.columns);
    const int64_t k = p.direct || p.many || p.fused ? p.k_part : p.k_chunk;
    return k ? s + ":k" + std::to_string(k) : s;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
