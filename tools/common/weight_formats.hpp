// SPDX-License-Identifier: Apache-2.0
// The formats that weights are quantised to by name, and how each is asked of mxdnn. Weights are described as
// checkpoints store them: [out, in], or [experts, out, in].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mxdnn/mxdnn.hpp>

namespace weight_formats {

struct format_t {
    std::string name; // in files, options and tables
    mxdnn::memory::data_type element;
    mxdnn::memory::dim block; // elements along K that share a scale
    mxdnn::memory::data_type scale;
    mxdnn::quantization_mode mode;       // of the quantiser
    mxdnn::memory::data_type zero_point; // undef where there are none
    bool global_scale;
    mxdnn::zero_points_kind zero_points_kind = mxdnn::zero_points_kind::standard;

    bool has_zero_points() const { return zero_point != mxdnn::memory::data_type::undef; }
};

// The named formats of the library and of mxdnn-bench (src/common/formats/named_formats.hpp); nvfp4 with a
// global scale, which that list leaves to who names it.
const std::vector<format_t> &formats();
std::vector<std::string> format_names();

// The format of that name, or std::runtime_error that lists them.
const format_t &find_format(std::string_view name);

// A format of the int4 family: s4 or u4, any legal group, scale and zero point. One that has a name has it
// here, another one has its parts as a name, such as "u4 f16:128 u8" or "u4 bf16:64 bf16 minimum".
format_t int4_format(mxdnn::memory::data_type element, mxdnn::memory::dim group,
        mxdnn::memory::data_type scale, mxdnn::memory::data_type zero_point,
        mxdnn::zero_points_kind kind = mxdnn::zero_points_kind::standard);
// s8, with any legal group and scale.
format_t int8_format(mxdnn::memory::dim group, mxdnn::memory::data_type scale);
// NVFP4 as weights without a global scale have it.
format_t nvfp4_without_global_scale();
// The format of packed weights; nothing of those that no function here packs.
std::optional<format_t> format_of(const mxdnn::memory::desc &packed, const mxdnn::engine &engine);

// Of weights: a matrix, or a batch of matrices, of which there may be none.
struct shape_t {
    using dim = mxdnn::memory::dim;
    static shape_t matrix(dim out, dim in) { return {std::nullopt, out, in}; }
    static shape_t batch(dim experts, dim out, dim in) { return {experts, out, in}; }

    std::optional<dim> experts;
    dim out, in;

    dim matrices() const { return experts.value_or(1); }
    bool is_empty() const { return matrices() == 0 || out == 0 || in == 0; }

private:
    shape_t(std::optional<dim> e, dim o, dim i) : experts(e), out(o), in(i) {}
};

// The descriptor of [out, in] or [experts, out, in] as mxdnn's [in, out] or [experts, in, out].
mxdnn::memory::desc as_stored(const shape_t &shape, mxdnn::memory::data_type type);

// The packed descriptor that mx_matmul wants for weights of that shape and format.
mxdnn::memory::desc packed_desc(const format_t &format, const mxdnn::engine &engine, const shape_t &shape);

// How scales of MX formats are chosen unless something else is asked for (doc/reference/mxdnn-pack.md).
constexpr mxdnn::scale_rounding default_rounding = mxdnn::scale_rounding::rceil;

// Quantises and packs f32, bf16 or f16 weights in one step; into `bytes`, or into memory of its own.
mxdnn::memory pack(const format_t &format, const mxdnn::engine &engine, const shape_t &shape,
        mxdnn::memory::data_type type, const void *weights, mxdnn::scale_rounding rounding = default_rounding,
        void *bytes = nullptr);

// The global scale that pack() would find.
float global_scale_of(
        const format_t &format, const shape_t &shape, mxdnn::memory::data_type type, const void *weights);
// The same as pack() under a global scale that is known.
mxdnn::memory pack_under(float global_scale, const format_t &format, const mxdnn::engine &engine,
        const shape_t &shape, mxdnn::memory::data_type type, const void *weights, void *bytes = nullptr);

// Weights that are quantised already: codes as as_stored() describes them, scales and zero points
// [.., out, in / block] in the same order, a global scale per matrix. Null where the format has none.
struct codes_t {
    void *codes = nullptr, *scales = nullptr, *zero_points = nullptr;
    float *global_scales = nullptr;
};
// Room for codes of a format and a shape; global scales are 0.
class code_room_t {
public:
    codes_t of(const format_t &format, const shape_t &shape);

private:
    std::vector<uint8_t> codes_, scales_, zero_points_;
    std::vector<float> global_scales_;
};
// Packs them; all of it arrives unchanged.
mxdnn::memory pack_codes(const format_t &format, const mxdnn::engine &engine, const shape_t &shape,
        const codes_t &codes, void *bytes = nullptr);
// What they are worth, as [.., out, in] in `values`.
void decode(const format_t &format, const shape_t &shape, const codes_t &codes, float *values);

// The shape of a packed descriptor of two or three dimensions; nothing of others.
std::optional<shape_t> shape_of(const mxdnn::memory::desc &packed);

// The opposite of packing: what packed weights are worth, as [.., out, in] of `type` in `values`.
void unpack(const mxdnn::memory::desc &packed, const mxdnn::engine &engine, const void *bytes,
        mxdnn::memory::data_type type, void *values);
std::vector<float> unpack(const mxdnn::memory::desc &packed, const mxdnn::engine &engine, const void *bytes);

} // namespace weight_formats
