// SPDX-License-Identifier: Apache-2.0
#include "fuzz/draw_parts.hpp"

namespace fuzz {

namespace {

bool draw_bias(choices_t &c, problem_t &p, const shape_t &to) {
    if (c.one_in(2)) return true;
    shape_t s;
    for (int d = int(c.below(to.n)); d < to.n; d++) s.add(d < to.n - 1 && !c.one_in(5) ? 1 : to.at[d]);
    return draw_plain(c, p.bias, s, c.of(high_precision));
}

} // namespace

bool draw_mx_matmul(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    shape_t src, wei, dst;
    for (int64_t i = c.one_in(3) ? 1 + c.below(c.one_in(8) ? 4 : 2) : 0; i > 0; i--) {
        const dim_t b = dims.batch();
        dst.add(b);
        src.add(c.one_in(4) ? 1 : b);
        wei.add(c.one_in(2) ? 1 : b);
    }
    const dim_t K = dims.length(300), M = dims.length(K > 100 ? 33 : 130),
                N = dims.length(double(M) * double(K) > 3000 ? 17 : 160);
    src.add(M), src.add(K);
    wei.add(K), wei.add(N);
    dst.add(M), dst.add(N);
    draw_modes(c, p.attr);
    const data_type_t sum_dt = c.of(high_precision);
    if (c.one_in(2)) draw_post_ops(c, p.attr, dst, sum_dt, true);
    if (!draw_bias(c, p, dst)) return false;
    if (p.attr.gated()) dst.at[dst.n - 1] = c.one_in(60) ? N : N / 2;
    if (c.one_in(80)) c.of({&src, &wei, &dst})->at[c.below(dst.n)] ^= 1;
    return draw_side(c, p, MXDNN_ARG_SRC, p.src, src) && draw_weights(c, p, wei)
           && draw_side(c, p, MXDNN_ARG_DST, p.dst, dst);
}

} // namespace fuzz
