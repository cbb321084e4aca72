// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "common/in_order.hpp"
#include "common/safetensors.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::shown;

void difference_t::add(const float *original, const float *packed, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double x = double(original[i]), y = double(packed[i]);
        if (x == y || (std::isnan(x) && std::isnan(y))) {
            if (std::isfinite(x)) signal += x * x;
            continue;
        }
        equal = false;
        if (std::isfinite(x) && std::isfinite(y)) {
            signal += x * x;
            noise += (x - y) * (x - y);
        } else {
            not_finite++;
        }
    }
}

double difference_t::decibels() const {
    if (not_finite) return -INFINITY;
    return equal ? INFINITY : 10 * std::log10(signal / noise);
}

std::string difference_t::text() const {
    if (not_finite) return std::to_string(not_finite) + " weights that are not finite on one side";
    if (equal) return "equal";
    char text[64];
    snprintf(text, sizeof(text), "%.2f dB", decibels());
    return text;
}

difference_t compare(const checkpoint_t &input, size_t entry, const source_t &original,
        const mxdnn::engine &engine, const options_t &o, unsigned threads) {
    const mxdnn::memory::desc desc = input.desc_of(input.entries[entry]);
    const std::optional<shape_t> shape = shape_of(desc);
    const shape_t &s = original.shape;
    if (!shape || shape->experts != s.experts || shape->out != s.out || shape->in != s.in)
        throw std::runtime_error("packed weights " + shown(original.name) + " are " + desc.to_string()
                                 + ", and the original is " + std::to_string(s.out) + " x "
                                 + std::to_string(s.in)
                                 + " (out x in); --transposed says which originals are [in, out]");
    const unpacking_t unpacking(uint64_t(o.part_mib) << 20, desc, engine, input.reader(entry), dt::f32);
    if (unpacking.parts() && !unpacking.has_pieces())
        throw std::runtime_error("packed weights " + shown(original.name)
                                 + " have no format that diff knows: " + desc.to_string());
    difference_t difference;
    in_order::run(unpacking.parts(), threads, [&](size_t part, const in_order::turn_t &wait_for_turn) {
        std::vector<float> given;
        read_f32(original, unpacking.piece(part), given);
        unpacking.make(part, [&](const void *values, uint64_t size) {
            wait_for_turn();
            difference.add(given.data(), static_cast<const float *>(values),
                    std::min(given.size(), size_t(size / 4)));
        });
    });
    return difference;
}

} // namespace mxdnn_pack
