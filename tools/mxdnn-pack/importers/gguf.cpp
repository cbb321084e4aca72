// SPDX-License-Identifier: Apache-2.0
// Tensors of GGUF files in blocks. The names are kept. The global scale of NVFP4 is a tensor of its own: of
// X.weight it is X.scale, or X.weight.scale, with a number for each matrix.
#include "importers.hpp"
#include "layer.hpp"

#include "common/gguf_blocks.hpp"
#include "common/interrupt.hpp"
#include "common/safetensors.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;

namespace {

const gguf::blocks_t *blocks_of(const checkpoint_t &input, const entry_t &e) {
    const gguf::tensor_t *t = input.gguf_of(e);
    return t ? gguf::find_blocks(*t->element) : nullptr;
}

read_codes_t codes_of(const checkpoint_t &input, const entry_t &e, const format_t &format) {
    const read_codes_t codes = gguf::codes_of(*input.shards[e.shard].gguf, *input.gguf_of(e), format);
    return [codes](const piece_t &p, const codes_t &to) {
        interrupt::check();
        codes(p, to);
    };
}

std::optional<size_t> global_scale_of(const checkpoint_t &input, const entry_t &e) {
    const layer_t layer(input, "", "GGUF");
    if (const auto scale = layer.find(e.name + ".scale")) return scale;
    return safetensors::ends_with(e.name, ".weight")
                   ? layer.find(safetensors::without(e.name, ".weight") + ".scale")
                   : std::nullopt;
}

} // namespace

std::optional<source_t> find_gguf(const import_context_t &context, size_t i) {
    const checkpoint_t &input = context.input;
    const entry_t &e = input.entries[i];
    const gguf::blocks_t *blocks = blocks_of(input, e);
    const size_t n = e.dims.size();
    if (!blocks || blocks->loss || n < 2 || n > 3) return std::nullopt;
    const dim out = e.dims[n - 2], in = e.dims[n - 1];
    const shape_t shape = n == 3 ? shape_t::batch(e.dims[0], out, in) : shape_t::matrix(out, in);
    source_t source{e.name, blocks->name, shape, {i}, blocks->format(), {}, {}, {}, {}};
    source.type = source.format->element;
    source.codes = codes_of(input, e, *source.format);
    if (source.format->scale != dt::f8_e4m3) return source;
    if (const std::optional<size_t> scale = global_scale_of(input, e)) {
        const layer_t layer(input, e.name, "GGUF NVFP4");
        source.codes = under(layer.global_scales(*scale, shape.matrices()), source.codes);
        source.format = find_format("nvfp4");
        source.entries.push_back(*scale);
    }
    return source;
}

void add_gguf_loss(const checkpoint_t &input, bool is_transposed, source_t &source) {
    const entry_t &e = input.entries[source.entries[0]];
    const gguf::blocks_t *blocks = blocks_of(input, e);
    if (!blocks || !blocks->loss) return;
    source.loss = std::string("they are ") + blocks->name + " blocks, with " + blocks->loss;
    source.nearest = blocks->format();
    if (blocks->split && !is_transposed) source.codes = codes_of(input, e, *source.nearest);
}

} // namespace mxdnn_pack
