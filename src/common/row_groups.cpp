// SPDX-License-Identifier: Apache-2.0
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {

status_t row_groups_t::check() const {
    switch (grouping) {
    case mxdnn_row_grouping_row_ids: break;
    case mxdnn_row_grouping_padded:
        for (int64_t g = 0; g < groups; g++)
            if (bounds[g] < 0 || bounds[g] > rows / groups)
                return fail(mxdnn_invalid_arguments, "GROUP_COUNTS[%lld] is %d; a group has 0 to %lld rows",
                        (long long)g, bounds[g], (long long)(rows / groups));
        break;
    default: {
        const int64_t n = groups + (grouping == mxdnn_row_grouping_starts);
        for (int64_t i = 0; i < n; i++) {
            if (bounds[i] < 0 || bounds[i] > rows)
                return fail(mxdnn_invalid_arguments, "GROUP_OFFSETS[%lld] is %d; there are rows 0 to %lld",
                        (long long)i, bounds[i], (long long)rows);
            if (i > 0 && bounds[i] < bounds[i - 1])
                return fail(mxdnn_invalid_arguments,
                        "GROUP_OFFSETS[%lld] is %d, but the one before is %d; offsets never decrease",
                        (long long)i, bounds[i], bounds[i - 1]);
        }
    }
    }
    const bool by_row = grouping == mxdnn_row_grouping_row_ids;
    const int32_t *given = by_row ? bounds : group_ids;
    for (int64_t i = 0; given && i < groups; i++)
        if (given[i] < -1 || given[i] >= ids)
            return fail(mxdnn_invalid_arguments, "%s[%lld] is %d; ids are -1 (skip) and 0 to %lld",
                    by_row ? "ROW_EXPERT_IDS" : "GROUP_EXPERT_IDS", (long long)i, given[i],
                    (long long)(ids - 1));
    for (int64_t i = 0; map && i < ids; i++)
        if (map[i] < -1 || map[i] >= experts)
            return fail(mxdnn_invalid_arguments,
                    "EXPERT_MAP[%lld] is %d; entries are -1 (not here) and 0 to %lld, the experts of the weights",
                    (long long)i, map[i], (long long)(experts - 1));
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
