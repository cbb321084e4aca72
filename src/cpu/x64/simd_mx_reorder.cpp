// SPDX-License-Identifier: Apache-2.0
// A reorder streams: 16 lines (or a few times as many, where elements have to be transposed) and a few hundred
// positions go through buffers on the stack that stay in the first- and second-level cache.
#include "cpu/x64/simd_mx_reorder.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/formats/quantize_block.hpp"
#include "cpu/ref/ref_mx_reorder.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// Fewer elements than this are not worth waking a thread for.
constexpr int64_t elements_per_thread = 1 << 14;
// Lines that are transposed together where they are contiguous: whole cache lines of bytes.
constexpr int transposed_lines = 64;
constexpr int64_t values_bytes = 32 << 10, codes_bytes = 16 << 10;

bool is_high_precision(data_type_t dt) { return has_role(dt, role_high_precision); }

} // namespace

reason_t configure(reorder_conf_t &c, const problem_t &p, cpu_isa_t isa) {
    if (!mayiuse(isa)) return no("isa", isa_name(), isa_name(isa));
    // A CPU target that runs here is held to what it stands for.
    const bool capped = p.engine->kind() == mxdnn_cpu && p.engine->executes && p.engine->target->isa < isa;
    if (capped) return no("engine", p.engine->target->name, isa_name(isa));
    if (is_high_precision(p.src.dt) && is_high_precision(p.dst.dt))
        return no("src and dst", "high precision on both sides", "a quantised type on at least one");
    quant_t q;
    int axis[2] = {0, 0};
    for (bool is_src : {true, false}) {
        const memory_desc_t &md = is_src ? p.src : p.dst;
        if (is_high_precision(md.dt)) continue;
        if (quant_of(is_src ? "src" : "dst", md, is_src ? p.attr.src : p.attr.dst, q, &axis[is_src]) != mxdnn_success)
            return no(is_src ? "src" : "dst", to_string(md).c_str(), "known scales");
    }
    if (axis[0] && axis[1] && axis[0] != axis[1])
        return no("blocks", "src and dst blocked along different dims", "the same dim");
    const int blocked = axis[0] ? axis[0] : axis[1];
    reason_t r = configure_side(c.src, p, true, blocked);
    if (r.ok()) r = configure_side(c.dst, p, false, blocked);
    if (!r.ok()) return r;

    c.kernels = isa == cpu_isa_t::avx2 ? &reorder_kernels_avx2 : &reorder_kernels_avx512;
    c.moves = moves_codes(p);
    c.given = c.dst.quantised && !c.moves && !p.attr.dst.is_dynamic();
    c.measures = c.dst.quantised && !c.moves && c.dst.format.has_global
            && c.dst.global_mode != mxdnn_quantization_mode_static_sazp;

    const auto transposed = [](const reorder_side_conf_t &s) { return !s.packed && !s.along_line; };
    int64_t chunk = 256; // whole blocks of any format
    for (const reorder_side_conf_t *s : {&c.src, &c.dst})
        if (s->packed) chunk = std::max(chunk, s->tile_rows());
    if (!c.src.packed && !c.dst.packed && !transposed(c.src) && !transposed(c.dst)) chunk = reorder_max_length;
    c.group = reorder_lines;
    if (transposed(c.src) || transposed(c.dst)) {
        const int value = std::max(c.src.quantised ? 1 : c.src.value_bytes(), c.dst.quantised ? 1 : c.dst.value_bytes());
        c.group = int(std::min<int64_t>(transposed_lines, values_bytes / (chunk * value)));
    }
    c.chunk = int(chunk);
    return yes();
}

namespace {

// One thread's part of an execution.
class reorder_worker_t {
public:
    reorder_worker_t(const reorder_conf_t &conf, const exec_ctx_t &ctx, write_t how)
        : c_(conf), k_(*conf.kernels), how_(how), src_(conf.src, ctx), dst_(conf.dst, ctx) {}
    ~reorder_worker_t() {
        if (how_ == write_t::around) k_.fence();
    }

    void set_batch(const dim_t *idx) {
        src_.set_batch(idx);
        dst_.set_batch(idx);
    }
    const reorder_side_t &src() const { return src_; }
    const reorder_side_t &dst() const { return dst_; }

    // Up to conf.group lines and conf.chunk positions from (line, pos) on.
    void reorder(dim_t line, dim_t pos) {
        locate(line, pos);
        load_transposed();
        for (int l = 0; l < lines_; l += reorder_lines) {
            const int n = std::min(reorder_lines, lines_ - l);
            if (c_.moves)
                move(l, n);
            else if (c_.dst.quantised)
                quantise(l, n);
            else
                dequantise(l, n);
        }
        store_transposed();
    }

    // The largest finite magnitude of the same part of the source, as f32 bits.
    uint32_t amax(dim_t line, dim_t pos) {
        locate(line, pos);
        load_transposed();
        uint32_t most = 0;
        for (int l = 0; l < lines_; l += reorder_lines)
            most = std::max(most, k_.finite_amax(source_values(l, std::min(reorder_lines, lines_ - l))));
        return most;
    }

private:
    const reorder_conf_t &c_;
    const reorder_kernels_t &k_;
    const write_t how_;
    reorder_side_t src_, dst_;
    // What is worked on, and where:
    dim_t line_ = 0, pos_ = 0;
    int lines_ = 0, length_ = 0;
    // Lines of codes, c_.chunk apart, a byte each.
    alignas(64) uint8_t codes_[codes_bytes];
    // Lines of f32, bf16 or f16; or rows of codes along the lines, before or after they are transposed.
    alignas(64) uint8_t values_[values_bytes];
    alignas(64) uint8_t src_scales_[reorder_max_length * 4], src_zps_[reorder_max_length * 4];
    alignas(64) uint8_t dst_scales_[reorder_max_length * 4], dst_zps_[reorder_max_length * 4];
    static_assert(reorder_max_length * 4 >= reorder_max_length / int(nvfp4_block) * reorder_lines * 4);

    line_params_t src_params() { return {src_scales_, c_.src.format.zp_bytes ? src_zps_ : nullptr}; }
    line_params_t dst_params() { return {dst_scales_, c_.dst.format.zp_bytes ? dst_zps_ : nullptr}; }
    uint8_t *codes(int l) { return codes_ + l * c_.chunk; }

    void locate(dim_t line, dim_t pos) {
        line_ = line;
        pos_ = pos;
        lines_ = int(std::min<dim_t>(c_.group, src_.lines() - line));
        length_ = int(std::min<dim_t>(c_.chunk, src_.length() - pos));
    }

    // ---- a side whose lines are contiguous: rows of lines_ elements at each position ----

    void load_transposed() {
        if (c_.src.packed || c_.src.along_line) return;
        const uint8_t *from = src_.at(line_, pos_);
        const int64_t pitch = src_.pos_bytes();
        if (!c_.src.quantised) {
            const int bytes = c_.src.value_bytes();
            k_.transpose(bytes, from, pitch, length_, lines_, values_, c_.chunk * bytes);
        } else if (c_.src.storage == code_storage_t::bytes) {
            k_.transpose(1, from, pitch, length_, lines_, codes_, c_.chunk);
        } else {
            for (int i = 0; i < length_; i++)
                k_.unpack_row(c_.src.storage, from + i * pitch, lines_, values_ + i * c_.group);
            k_.transpose(1, values_, c_.group, length_, lines_, codes_, c_.chunk);
        }
    }

    void store_transposed() {
        if (c_.dst.packed || c_.dst.along_line) return;
        uint8_t *to = dst_.at(line_, pos_);
        const int64_t pitch = dst_.pos_bytes();
        if (!c_.dst.quantised) {
            const int bytes = c_.dst.value_bytes();
            k_.transpose(bytes, values_, c_.chunk * bytes, lines_, length_, to, pitch);
        } else if (c_.dst.storage == code_storage_t::bytes || c_.dst.storage == code_storage_t::low_6_bits) {
            k_.transpose(1, codes_, c_.chunk, lines_, length_, to, pitch);
        } else {
            k_.transpose(1, codes_, c_.chunk, lines_, length_, values_, c_.group);
            for (int i = 0; i < length_; i++)
                k_.pack_row(c_.dst.storage, values_ + i * c_.group, lines_, to + i * pitch, write_t::cached);
        }
    }

    // ---- n of 16 lines from l on ----

    // Codes of the source into codes(l).
    void load_codes(int l, int n) {
        if (c_.src.packed)
            for_tiles(c_.src, src_, l, [&](int i, int rows, const uint8_t *from) {
                k_.n16_unpack(c_.src.bits, from, rows, codes(l) + i, c_.chunk);
            });
        else if (c_.src.along_line)
            for (int i = l; i < l + n; i++) k_.unpack_row(c_.src.storage, src_.at(line_ + i, pos_), length_, codes(i));
    }

    // Codes from codes(l) to the destination.
    void store_codes(int l, int n) {
        if (!c_.dst.packed) {
            if (!c_.dst.along_line) return; // store_transposed()
            for (int i = l; i < l + n; i++)
                k_.pack_row(c_.dst.storage, codes(i), length_, dst_.at(line_ + i, pos_), how_);
            return;
        }
        // What is no element of a packed tile is zero.
        const int padded = int(round_up(length_, 32));
        for (int i = l; i < l + reorder_lines; i++) {
            const int used = i < l + n ? length_ : 0;
            if (used < padded) std::memset(codes(i) + used, 0, size_t(padded - used));
        }
        for_tiles(c_.dst, dst_, l, [&](int i, int rows, uint8_t *to) {
            k_.n16_pack(c_.dst.bits, codes(l) + i, c_.chunk, rows, to, how_);
        });
    }

    // Values of the source: where they are, or, of codes, in values_.
    source_lines_t source_values(int l, int n) {
        if (c_.src.quantised) {
            load_codes(l, n);
            src_.read_params(k_, line_ + l, n, pos_, length_, src_params());
            const int64_t pitch = c_.chunk * int(sizeof(float));
            k_.dequantise(c_.src.format, codes(l), c_.chunk, n, length_, src_.global(), src_params(), mxdnn_f32,
                    values_, pitch);
            return {values_, mxdnn_f32, pitch, n, length_, nullptr};
        }
        if (!c_.src.along_line) {
            const int64_t pitch = c_.chunk * c_.src.value_bytes();
            return {values_ + l * pitch, c_.src.dt, pitch, n, length_, nullptr};
        }
        const void *next = nullptr;
        if (pos_ + c_.chunk < src_.length())
            next = src_.at(line_, pos_ + c_.chunk);
        else if (line_ + c_.group < src_.lines())
            next = src_.at(line_ + c_.group, 0);
        return {src_.at(line_ + l, pos_), c_.src.dt, src_.line_bytes(), n, length_, next};
    }

    void quantise(int l, int n) {
        const line_params_t params = dst_params();
        const source_lines_t values = source_values(l, n);
        if (c_.given) dst_.read_params(k_, line_ + l, n, pos_, length_, params);
        if (is_direct(c_.dst) && c_.dst.bits > 4 && length_ % reorder_max_block == 0) {
            k_.quantise(c_.dst.format, c_.given, values, dst_.global(), params, dst_.at(line_ + l, pos_),
                    dst_.line_bytes(), how_);
        } else {
            k_.quantise(c_.dst.format, c_.given, values, dst_.global(), params, codes(l), c_.chunk, write_t::cached);
            store_codes(l, n);
        }
        if (!c_.given) dst_.write_params(k_, line_ + l, n, pos_, length_, params);
    }

    void dequantise(int l, int n) {
        load_codes(l, n);
        src_.read_params(k_, line_ + l, n, pos_, length_, src_params());
        const int64_t pitch = c_.chunk * c_.dst.value_bytes();
        uint8_t *to = c_.dst.along_line ? dst_.at(line_ + l, pos_) : values_ + l * pitch;
        k_.dequantise(c_.src.format, codes(l), c_.chunk, n, length_, src_.global(), src_params(), c_.dst.dt, to,
                c_.dst.along_line ? dst_.line_bytes() : pitch);
    }

    // Codes, scales and zero points as they are.
    void move(int l, int n) {
        src_.read_params(k_, line_ + l, n, pos_, length_, dst_params());
        if (!move_directly(l, n)) {
            load_codes(l, n);
            store_codes(l, n);
        }
        dst_.write_params(k_, line_ + l, n, pos_, length_, dst_params());
    }

    // Between a packed and a plain side without taking bytes apart.
    bool move_directly(int l, int n) {
        if (n < reorder_lines || length_ % 32 != 0) return false;
        const bool nibbles = c_.src.bits == 4;
        if (c_.dst.packed && is_direct(c_.src)) {
            for_tiles(c_.dst, dst_, l, [&](int i, int rows, uint8_t *to) {
                const uint8_t *from = src_.at(line_ + l, pos_ + i);
                if (nibbles)
                    k_.n16_pack_nibbles(from, src_.line_bytes(), rows, to, how_);
                else
                    k_.n16_pack(c_.src.bits, from, src_.line_bytes(), rows, to, how_);
            });
            return true;
        }
        if (c_.src.packed && is_direct(c_.dst) && nibbles) {
            for_tiles(c_.src, src_, l, [&](int i, int rows, const uint8_t *from) {
                k_.n16_unpack_nibbles(from, rows, dst_.at(line_ + l, pos_ + i), dst_.line_bytes());
            });
            return true;
        }
        return false;
    }

    // Plain codes that stand as kernels take and leave them.
    bool is_direct(const reorder_side_conf_t &side) const {
        return !side.packed && side.along_line && side.storage != code_storage_t::dense_6;
    }

    // body(position, rows of codes, codes) for the packed tiles of 16 lines.
    template <typename F>
    void for_tiles(const reorder_side_conf_t &conf, const reorder_side_t &side, int l, F &&body) {
        for (int i = 0; i < length_; i += int(conf.tile_rows())) {
            const int rows = std::min(int(conf.tile_rows()), length_ - i);
            body(i, int(round_up(rows, 32)),
                    side.tile(line_ + l, pos_ + i) + n16_frame_t::header_bytes(conf.shape, rows));
        }
    }
};

} // namespace

status_t simd_mx_reorder_base_t::execute(const exec_ctx_t &ctx) const {
    const reorder_conf_t &c = conf_;
    const memory_t &to = *ctx.memory(MXDNN_ARG_DST);
    const memory_desc_t &md = to.md;
    const dim_t lines = md.dims[c.dst.line_dim], length = md.dims[c.dst.pos_dim], batch = batch_of(md);
    // What is no element of a swizzled destination is zero; packed tiles are written whole.
    if (c.dst.swizzled && !c.given) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        std::memset(scales.handle, 0, size_t(size_of(scales.md)));
    }
    if (lines == 0 || length == 0 || batch == 0) {
        if (c.dst.packed) std::memset(to.handle, 0, size_t(size_of(md)));
        return mxdnn_success;
    }

    // What does not stay in cache anyhow is written around it.
    const int64_t bytes = size_of(ctx.memory(MXDNN_ARG_SRC)->md) + size_of(md);
    const write_t how = bytes > cache_sizes().l3_per_core ? write_t::around : write_t::cached;
    const int64_t groups = div_up(lines, c.group), chunks = div_up(length, c.chunk), items = groups * chunks;
    const auto threads_for = [&](int64_t batches) {
        const int64_t useful = div_up(batches * lines * length, elements_per_thread);
        const int most = threads_of(ctx.stream, ctx.pd.problem.max_concurrency);
        return int(std::min<int64_t>({most, useful, batches * items}));
    };
    const auto index_of = [&](int64_t entry, dim_t *idx) {
        for (int d = md.ndims - 3; d >= 0; d--) {
            idx[d] = entry % md.dims[d];
            entry /= md.dims[d];
        }
    };

    if (c.dst.quantised && c.dst.format.has_global) {
        const memory_t *given = c.moves || c.measures ? nullptr : ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        for (int64_t entry = 0; entry < batch; entry++) {
            dim_t idx[max_ndims] = {};
            index_of(entry, idx);
            reorder_side_t dst(c.dst, ctx);
            dst.set_batch(idx);
            if (given) {
                // The caller's is where it belongs, unless it goes into packed bytes.
                const float *g = static_cast<const float *>(given->handle);
                if (c.dst.packed) dst.set_global(g[given->md.dims[0] == 1 ? 0 : entry]);
                continue;
            }
            if (c.moves) {
                reorder_side_t src(c.src, ctx);
                src.set_batch(idx);
                dst.set_global(src.global());
                continue;
            }
            std::atomic<uint32_t> most {0};
            parallel(ctx.stream, threads_for(1), [&](int ithr, int nthr) {
                reorder_worker_t worker(c, ctx, write_t::cached);
                worker.set_batch(idx);
                int64_t begin, end;
                balance(items, nthr, ithr, begin, end);
                uint32_t mine = 0;
                for (int64_t i = begin; i < end; i++)
                    mine = std::max(mine, worker.amax(i / chunks * c.group, i % chunks * c.chunk));
                uint32_t so_far = most.load();
                while (so_far < mine && !most.compare_exchange_weak(so_far, mine)) {
                }
            });
            dst.set_global(nvfp4_global_scale(float_of(most.load())));
        }
    }

    // Neighbouring items share no byte: groups are 16 lines, chunks whole blocks.
    parallel(ctx.stream, threads_for(batch), [&](int ithr, int nthr) {
        reorder_worker_t worker(c, ctx, how);
        int64_t begin, end, entry = -1;
        balance(batch * items, nthr, ithr, begin, end);
        for (int64_t i = begin; i < end; i++) {
            if (i / items != entry) {
                entry = i / items;
                dim_t idx[max_ndims] = {};
                index_of(entry, idx);
                worker.set_batch(idx);
            }
            const int64_t item = i % items;
            worker.reorder(item / chunks * c.group, item % chunks * c.chunk);
        }
    });
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
