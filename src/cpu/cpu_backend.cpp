// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_backend.hpp"

#include <array>
#include <iterator>

#include "common/blob_verdict.hpp"
#include "common/grouped_mx_reorder.hpp"
#include "cpu/cpu_impl_lists.hpp"
#include "cpu/cpu_settings.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"

namespace mxdnn {
namespace impl {

namespace {

using x64::cpu_isa_t;

struct cpu_target_t : target_t {
    cpu_isa_t isa;
};

// One target for each named ISA. All share their packed layouts.
constexpr auto target_list = [] {
    std::array<cpu_target_t, std::size(x64::isa_list)> all{};
    for (size_t i = 0; i < all.size(); i++)
        all[i] = {{x64::isa_list[i].target, mxdnn_cpu, target_family_t::cpu_x64}, x64::isa_list[i].isa};
    return all;
}();

// The best target that the machine has and the cap allows. A machine without AVX2 runs the reference under
// the name of the lowest target.
const cpu_target_t &native_target() {
    for (const cpu_target_t &t : target_list)
        if (t.isa == best_cpu_isa()) return t;
    return target_list[0];
}

class cpu_backend_t final : public backend_t {
public:
    mxdnn_engine_kind_t kind() const override { return mxdnn_cpu; }
    const char *name() const override { return "cpu"; }

    const target_t *target(size_t i) const override {
        return i < target_list.size() ? &target_list[i] : nullptr;
    }
    bool executes(const target_t &t) const override {
        return x64::includes(native_target().isa, static_cast<const cpu_target_t &>(t).isa);
    }

    size_t engine_count() const override { return 1; }
    status_t describe_engine(engine_t &engine, size_t index) const override {
        if (index >= engine_count())
            return fail(mxdnn_invalid_arguments, "cpu engine %zu; there is one, of index 0", index);
        engine.target = &native_target();
        return mxdnn_success;
    }

    impl_list_t impl_list(const problem_t &p) const override {
        if (!is_zero(p.dst_1)) return cpu_two_reorders_list();
        return is_grouped_reorder(p) ? cpu_grouped_reorders_list() : cpu_impl_list(p.kind);
    }
    mxdnn_blob_verdict_t verdict(const engine_t &engine, const memory_desc_t &packed) const override;

    void fix_settings() const override { fix_cpu_isa(); }
    int max_concurrency() const override { return impl::max_concurrency(); }
};

// The lists of kernels also answer for targets that this machine does not have. The weights are native if one
// of the kernels that a matmul would use has the features of the target, as far as any kernel does.
mxdnn_blob_verdict_t cpu_backend_t::verdict(const engine_t &engine, const memory_desc_t &md) const {
    using x64::kernel_kind_t;
    const cpu_isa_t isa = isa_of(engine);
    const x64::kernel_row_t *decode = x64::find_kernel(kernel_kind_t::decode, isa, md.dt, md.packed.quant);
    if (!decode)
        return because(mxdnn_blob_slower, "no kernel of %s takes %s; the reference does", engine.target->name,
                to_string(md).c_str());
    for (const kernel_kind_t kind :
            {kernel_kind_t::decode, kernel_kind_t::gemm, kernel_kind_t::direct, kernel_kind_t::many}) {
        const x64::kernel_row_t *row =
                x64::find_kernel(kind, isa, md.dt, md.packed.quant, decode->compute_dt);
        if (row && requires_most(*row, isa)) return because(mxdnn_blob_native, "%s", "");
    }
    return because(mxdnn_blob_slower, "no kernel of %s's own takes %s; the best is %s", engine.target->name,
            to_string(md).c_str(), decode->name);
}

} // namespace

const backend_t &cpu_backend() {
    static const cpu_backend_t b;
    return b;
}

cpu_isa_t isa_of(const engine_t &engine) {
    return engine.kind() == mxdnn_cpu ? static_cast<const cpu_target_t *>(engine.target)->isa
                                      : cpu_isa_t::none;
}

} // namespace impl
} // namespace mxdnn
