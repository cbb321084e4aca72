// SPDX-License-Identifier: Apache-2.0
// From the tensors of a checkpoint to layers: names, shapes, and which weights go into one matmul.
#include "model.hpp"

#include <algorithm>
#include <stdexcept>

#include "synthetic.hpp"

namespace llm {

using then_t = linear_spec_t::then_t;
using named_t = std::vector<names_t::linear_t>;

namespace {

class loader_t {
public:
    loader_t(model_t &model, const load_options_t &options)
        : m_(model), t_(*model.tensors), e_(*model.engine), c_(model.config),
          mlp_(encoding_t::find(options.encoding)),
          dense_(encoding_t::find(
                  !options.dense.empty() ? options.dense
                  : mlp_.kind == encoding_t::kind_t::f32 || mlp_.kind == encoding_t::kind_t::bf16
                          ? options.encoding
                          : "stored")),
          head_(options.head.empty() ? dense_ : encoding_t::find(options.head)) {}

    // Looks at names and shapes only.
    void check() {
        const names_t &n = t_.names();
        only_checks_ = true;
        t_.check_weights(n.embedding, table_shape());
        for (size_t i = 0; i < c_.layers.size(); i++) (void)layer(i);
        t_.check_floats(n.final_norm, {c_.hidden});
        if (!c_.has_tied_head) t_.check_weights(n.head, table_shape());
        only_checks_ = false;
    }

    void load(const std::function<void(size_t, size_t)> &progress) {
        const names_t &n = t_.names();
        const size_t all = c_.layers.size() + 1;
        if (c_.experts)
            routing_ = std::make_shared<routing_t>(e_, c_.experts, c_.topk, c_.intermediate, m_.max_rows);
        m_.embedding = e_.table(t_.source(n.embedding, table_shape()));
        for (size_t i = 0; i < c_.layers.size(); i++) {
            if (progress) progress(i, all);
            m_.layers.push_back(layer(i));
        }
        if (progress) progress(all - 1, all);
        m_.final_norm = e_.put(t_.floats(n.final_norm, {c_.hidden}));
        const char *head = c_.has_tied_head ? n.embedding : n.head;
        m_.head = linear({head},
                {c_.hidden, c_.vocabulary, nullptr, then_t::store, data_type_t::f32, 0, "head"}, head_);
        e_.wait(); // weights are constant from now on
        if (progress) progress(all, all);
    }

private:
    model_t &m_;
    const tensors_t &t_;
    engine_t &e_;
    const config_t &c_;
    const encoding_t mlp_, dense_, head_;
    std::shared_ptr<routing_t> routing_;
    bool only_checks_ = false;

    shape_t table_shape() const { return shape_t::matrix(c_.vocabulary, c_.hidden); }

    // ---- linear layers ----

    // Weights [out, in] of one tensor, or of several that follow each other; null where no matmul can have
    // them together.
    std::unique_ptr<linear_t> linear(const std::vector<std::string> &names, const std::vector<int64_t> &outs,
            linear_spec_t spec, const encoding_t &encoding) {
        if (only_checks_) {
            for (size_t i = 0; i < names.size(); i++)
                t_.check_weights(names[i], shape_t::matrix(outs[i], spec.in));
            return nullptr;
        }
        if (names.size() == 1) {
            const shape_t shape = shape_t::matrix(spec.out, spec.in);
            if (stays_packed(names[0], encoding))
                return packed_linear(e_, spec, t_.packed(names[0], shape, e_));
        }
        std::vector<const source_t *> parts;
        for (size_t i = 0; i < names.size(); i++) {
            if (stays_packed(names[i], encoding)) return nullptr;
            parts.push_back(&t_.source(names[i], shape_t::matrix(outs[i], spec.in)));
        }
        const auto source = concatenated(parts);
        if (!source) return nullptr;
        if (const auto format = packed_format(*source, encoding))
            return packed_linear(e_, spec, pack(*source, *format));
        return e_.plain(spec, *source, plain_type(*source, encoding), m_.max_rows);
    }
    std::unique_ptr<linear_t> linear(
            const std::vector<std::string> &names, const linear_spec_t &spec, const encoding_t &encoding) {
        return linear(names, {spec.out}, spec, encoding);
    }

    // Whether weights are packed, and the encoding wants them so.
    bool stays_packed(const std::string &name, const encoding_t &encoding) const {
        const std::string format = t_.packed_format(name);
        if (format.empty() || encoding.kind == encoding_t::kind_t::f32
                || encoding.kind == encoding_t::kind_t::bf16)
            return false;
        if (encoding.kind == encoding_t::kind_t::format && encoding.format != format)
            throw std::runtime_error(t_.path() + ": weights '" + name + "' are packed as " + format
                                     + " already, and cannot become " + encoding.format
                                     + "; 'stored', bf16 and f32 are possible");
        return true;
    }

    std::vector<float> floats(const std::string &name, const std::vector<int64_t> &dims) const {
        if (!only_checks_) return t_.floats(name, dims);
        t_.check_floats(name, dims);
        return {};
    }
    buffer_t put(const std::vector<float> &values) { return only_checks_ ? buffer_t() : e_.put(values); }

    packed_t pack(const source_t &source, const weight_formats::format_t &format) {
        return llm::pack(e_, source, format, t_.has_equal_experts());
    }

    // Biases one after the other, in memory of the engine.
    const float *biases(layer_t &to, const std::vector<std::string> &names,
            const std::vector<std::vector<int64_t>> &dims) {
        std::vector<float> all;
        for (size_t i = 0; i < names.size(); i++) {
            const std::vector<float> one = floats(names[i], dims[i]);
            all.insert(all.end(), one.begin(), one.end());
        }
        to.biases.push_back(put(all));
        return to.biases.back().as<float>();
    }

    static std::vector<std::string> weights_of(const named_t &names, size_t layer) {
        std::vector<std::string> all;
        for (const auto &n : names) all.push_back(of_layer(n.weight, layer));
        return all;
    }
    static std::vector<std::string> biases_of(const named_t &names, size_t layer) {
        std::vector<std::string> all;
        for (const auto &n : names) all.push_back(of_layer(n.bias, layer));
        return all;
    }

    // ---- a layer ----

    layer_t layer(size_t i) {
        const names_t &n = t_.names();
        layer_t l;
        l.attention_norm = norm(n.attention_norm, i);
        l.mlp_norm = norm(n.mlp_norm, i);
        if (c_.has_sinks) l.sinks = put(floats(of_layer(n.sinks, i), {c_.heads}));
        add_attention(l, i);
        if (c_.experts)
            add_experts(l, i);
        else
            add_mlp(l, i);
        return l;
    }

    buffer_t norm(const char *name, size_t i) { return put(floats(of_layer(name, i), {c_.hidden})); }

    void add_attention(layer_t &l, size_t i) {
        const names_t &n = t_.names();
        const int64_t q = c_.heads * c_.head_size, kv = c_.kv_heads * c_.head_size;
        const bool is_one = n.qkv.weight;
        const named_t names = is_one ? named_t{n.qkv} : named_t{n.q, n.k, n.v};
        const std::vector<int64_t> outs =
                is_one ? std::vector<int64_t>{q + 2 * kv} : std::vector<int64_t>{q, kv, kv};
        const auto weights = weights_of(names, i);
        const float *bias = nullptr;
        if (c_.has_attention_bias) {
            std::vector<std::vector<int64_t>> dims;
            dims.reserve(outs.size());
            for (const int64_t o : outs) dims.push_back({o});
            bias = biases(l, biases_of(names, i), dims);
        }
        linear_spec_t spec{c_.hidden, q + 2 * kv, bias, then_t::store, data_type_t::f32, c_.qkv(), "qkv"};
        if (auto one = linear(weights, outs, spec, dense_)) {
            l.qkv.push_back({std::move(one), 0});
        } else {
            int64_t column = 0;
            for (size_t j = 0; j < outs.size(); column += outs[j++]) {
                spec.out = outs[j];
                spec.bias = bias ? bias + column : nullptr;
                l.qkv.push_back({linear({weights[j]}, spec, dense_), column});
            }
        }
        const float *out_bias = c_.has_attention_bias
                                        ? biases(l, {of_layer(n.attention_out.bias, i)}, {{c_.hidden}})
                                        : nullptr;
        l.attention_out = linear({of_layer(n.attention_out.weight, i)},
                {q, c_.hidden, out_bias, then_t::add, data_type_t::f32, 0, "attention out"}, dense_);
    }

    void add_mlp(layer_t &l, size_t i) {
        const names_t &n = t_.names();
        const int64_t H = c_.hidden, I = c_.intermediate;
        const named_t names = {n.gate, n.up};
        const auto weights = weights_of(names, i);
        const float *bias = c_.has_mlp_bias ? biases(l, biases_of(names, i), {{I}, {I}}) : nullptr;
        const data_type_t type = e_.activation();
        l.gate = linear(weights, {I, I}, {H, 2 * I, bias, then_t::gated_silu, type, 0, "gate and up"}, mlp_);
        if (!l.gate) {
            l.gate = linear({weights[0]}, {H, I, bias, then_t::silu, data_type_t::f32, 0, "gate"}, mlp_);
            l.up = linear(
                    {weights[1]}, {H, I, bias ? bias + I : nullptr, then_t::multiply, type, 0, "up"}, mlp_);
        }
        const float *down_bias = c_.has_mlp_bias ? biases(l, {of_layer(n.down.bias, i)}, {{H}}) : nullptr;
        l.down = linear({of_layer(n.down.weight, i)},
                {I, H, down_bias, then_t::add, data_type_t::f32, 0, "down"}, mlp_);
    }

    void add_experts(layer_t &l, size_t i) {
        const names_t &n = t_.names();
        const int64_t H = c_.hidden, I = c_.intermediate, E = c_.experts;
        const encoding_t as_stored; // the router is small
        l.router = linear({of_layer(n.router.weight, i)},
                {H, E, biases(l, {of_layer(n.router.bias, i)}, {{E}}), then_t::store, data_type_t::f32, 0,
                        "router"},
                mlp_.kind == encoding_t::kind_t::f32 ? mlp_ : as_stored);
        const bool is_one = !n.gate_experts.weight || t_.has(of_layer(n.gate_up_experts.weight, i));
        const named_t names = is_one ? named_t{n.gate_up_experts} : named_t{n.gate_experts, n.up_experts};
        const auto weights = weights_of(names, i);
        const std::string down = of_layer(n.down_experts.weight, i);
        experts_spec_t spec{E, c_.topk, H, I, expert_bias(l, biases_of(names, i)),
                biases(l, {of_layer(n.down_experts.bias, i)}, {{E, H}}), !is_one || n.is_interleaved,
                c_.swiglu_alpha, c_.swiglu_limit, routing_, "experts"};
        const shape_t gate_up_shape = shape_t::batch(E, 2 * I, H), down_shape = shape_t::batch(E, H, I);
        if (only_checks_) {
            for (const std::string &w : weights)
                t_.check_weights(w, shape_t::batch(E, is_one ? 2 * I : I, H));
            return t_.check_weights(down, down_shape);
        }
        if (is_one && stays_packed(weights[0], mlp_) && stays_packed(down, mlp_)) {
            l.experts = packed_experts(
                    e_, spec, t_.packed(weights[0], gate_up_shape, e_), t_.packed(down, down_shape, e_));
            return;
        }
        const auto gate_up = is_one ? std::optional<source_t>(t_.source(weights[0], gate_up_shape))
                                    : interleaved(t_.source(weights[0], shape_t::batch(E, I, H)),
                                            t_.source(weights[1], shape_t::batch(E, I, H)));
        if (!gate_up)
            throw std::runtime_error(t_.path() + ": gate and up of the experts of layer " + std::to_string(i)
                                     + " are stored in two formats");
        const source_t &down_source = t_.source(down, down_shape);
        const auto format = packed_format(*gate_up, mlp_), down_format = packed_format(down_source, mlp_);
        if (format.has_value() != down_format.has_value())
            throw std::runtime_error(t_.path() + ": the experts of layer " + std::to_string(i)
                                     + " are stored in several formats; --encoding names one for all");
        if (format)
            l.experts = packed_experts(e_, spec, pack(*gate_up, *format), pack(down_source, *down_format));
        else
            l.experts = e_.plain(spec, *gate_up, down_source, plain_type(*gate_up, mlp_));
    }

    // [experts, gate and up]: of one tensor, or of two whose elements take turns.
    const float *expert_bias(layer_t &l, const std::vector<std::string> &names) {
        const int64_t I = c_.intermediate, E = c_.experts;
        if (names.size() == 1) return biases(l, names, {{E, 2 * I}});
        std::vector<float> all;
        const std::vector<float> gate = floats(names[0], {E, I}), up = floats(names[1], {E, I});
        for (size_t j = 0; j < gate.size(); j++) all.insert(all.end(), {gate[j], up[j]});
        l.biases.push_back(put(all));
        return l.biases.back().as<float>();
    }
};

} // namespace

model_t load(const std::string &path, const load_options_t &options,
        const std::function<void(size_t, size_t)> &progress) {
    model_t m;
    m.config = read_config(path);
    m.tensors = is_synthetic(path) ? synthetic_tensors(path) : read_tensors(path);
    const bool is_f32 = encoding_t::find(options.encoding).kind == encoding_t::kind_t::f32;
    m.engine = make_engine(options.engine, is_f32 ? precision_t::f32 : precision_t::native);
    m.max_rows = options.max_rows;
    loader_t loader(m, options);
    loader.check();
    loader.load(progress);
    return m;
}

void model_t::for_linears(const std::function<void(const linear_t &)> &f) const {
    for (const layer_t &l : layers) {
        for (const auto &p : l.qkv) f(*p.linear);
        for (const auto *one : {&l.attention_out, &l.router, &l.gate, &l.up, &l.down})
            if (*one) f(**one);
    }
    f(*head);
}

size_t model_t::bytes() const {
    size_t n = embedding->bytes();
    for_linears([&](const linear_t &l) { n += l.bytes(); });
    for (const layer_t &l : layers)
        if (l.experts) n += l.experts->bytes();
    return n;
}

size_t model_t::linear_bytes() const {
    size_t n = 0;
    for_linears([&](const linear_t &l) { n += l.bytes(); });
    return n;
}

} // namespace llm
