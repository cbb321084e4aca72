// SPDX-License-Identifier: Apache-2.0
// Every quantised format that the formats' own rules allow.
#pragma once

#include "common/formats/format_list.hpp"
#include "common/formats/named_formats.hpp"

namespace mxdnn {
namespace impl {

// body(element type, how it is quantised)
template <typename F>
void for_each_format(F &&body) {
    const auto &types = data_type_table_t<all_types>::rows;
    for (const data_type_info_t &elem : types)
        for (const data_type_info_t &scale : types)
            for (dim_t block = 1; block <= 1024; block *= 2)
                for (int zp = 0; zp < 4; zp++)
                    for (const data_type_info_t &zp_type : types)
                        for (int global = 0; global < 3; global++) {
                            // Without zero points there is one case, not one per type of zero points.
                            if (zp == 0 && &zp_type != types) break;
                            quant_t q;
                            q.scale_dt = scale.id;
                            q.block = block;
                            q.zp = zero_point_kind_t(zp);
                            q.zp_dt = zp ? zp_type.id : mxdnn_data_type_undef;
                            q.global = global_scale_kind_t(global);
                            if (!check_quant(elem.id, q)) body(elem, q);
                        }
}

} // namespace impl
} // namespace mxdnn
