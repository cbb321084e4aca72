// SPDX-License-Identifier: Apache-2.0
// Multiplies panels that a direct kernel has decoded and kept, for more rows of the source: formats that take
// long to decode are decoded once for all rows.
#include "cpu/x64/kernels/avx512_core_amx/list.hpp"
#include "cpu/x64/kernels/avx512_core_amx/tile_sums.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

class amx_kept_t : public tile_sums_t {
public:
    explicit amx_kept_t(const kernel_params_t &p) : tile_sums_t(p), steps_(div_up(p.K, int64_t(k_step))) {}

private:
    static constexpr int steps_of_turn = 4;
    const int64_t steps_;
    const Xbyak::Reg64 weights_ = r8, turns_ = rdx;

    Xbyak::Zmm spare(int i) const override { return Xbyak::Zmm(i); }
    void load_own() override { load_arg(weights_, offsetof(direct_args_t, panels)); }
    void next_group() override {} // groups are consecutive

    void walk() override {
        const int64_t turns = steps_ / steps_of_turn;
        if (turns > 0) turn(steps_of_turn);
        store_before();
        if (turns > 1) begin_destination();
        loop(turns_, turns - 1, [&] {
            fetch_destination(turns - 1);
            turn(steps_of_turn);
        });
        turn(int(steps_ % steps_of_turn));
    }

    void turn(int steps) {
        for (int s = 0; s < steps; s++)
            for (int p = 0; p < group_; p++)
                for (int i = 0; i < pieces(); i++)
                    multiply_piece(weights_ + (s * group_ + p) * amx_tile_bytes, p, i);
        add_imm(weights_, steps * group_ * amx_tile_bytes);
    }
};

} // namespace

status_t make_avx512_core_amx_kept(const char *name, const kernel_params_t &p,
        std::unique_ptr<jit_kernel_t> *kernel, const char **reason) {
    return create_jit<amx_kept_t>(name, kernel, reason, p);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
