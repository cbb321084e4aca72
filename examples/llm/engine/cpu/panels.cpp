// SPDX-License-Identifier: Apache-2.0
#include "panels.hpp"

#include <algorithm>

#include "loops.hpp"
#include "parallel.hpp"

namespace llm {

panels_t::panels_t(engine_t &engine, const source_t &weights, int64_t matrix, data_type_t type, order_t order)
    : in_(weights.shape.in), width_(order == order_t::halves ? 2 : 1), type_(type) {
    const int64_t columns = weights.shape.out / width_;
    panels_ = (columns + panel - 1) / panel;
    bytes_ = engine.allocate(size_t(panels_ * width_ * panel * in_)
                             * (type == data_type_t::bf16 ? sizeof(uint16_t) : sizeof(float)));
    auto *const halves = bytes_.as<uint16_t>();
    auto *const floats = bytes_.as<float>();
    parallel(panels_ * width_, 4, [&](int64_t begin, int64_t end) {
        std::vector<float> rows;
        for (int64_t i = begin; i < end; i++) {
            const int64_t first = i / width_ * panel, count = std::min(panel, columns - first);
            read_f32(weights, {matrix, first + i % width_ * columns, count}, rows);
            rows.resize(size_t(panel * in_), 0.f); // columns that fill the last panel
            for (int64_t k = 0; k < in_; k++)
                for (int64_t c = 0; c < panel; c++) {
                    const int64_t at = (i * in_ + k) * panel + c;
                    const float v = rows[size_t(c * in_ + k)];
                    if (type == data_type_t::bf16)
                        halves[at] = bf16_of(v);
                    else
                        floats[at] = v;
                }
        }
    });
}

void panels_t::multiply(int64_t index, int64_t rows, const float *x, int64_t x_stride, float *sums) const {
    for (int i = 0; i < width_; i++) {
        const int64_t at = (index * width_ + i) * in_ * panel;
        if (type_ == data_type_t::bf16)
            loops().multiply_bf16(rows, in_, x, x_stride, bytes_.as<uint16_t>() + at, panel, sums + i * panel,
                    width_ * panel, false);
        else
            loops().multiply_f32(rows, in_, x, x_stride, bytes_.as<float>() + at, panel, sums + i * panel,
                    width_ * panel, false);
    }
}

} // namespace llm
