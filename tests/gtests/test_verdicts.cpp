// SPDX-License-Identifier: Apache-2.0
// Every verdict of check_blob, and a proof of each: native weights are executed by the target's own kernels,
// or by others that are faster on this processor.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <mxdnn/mxdnn.hpp>

#include "blob_bytes.hpp"
#include "common/formats/named_formats.hpp"
#include "common/layouts/layout_list.hpp"
#include "common/packed_desc.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "cpu/x64/matmul_plan.hpp"

using namespace mxdnn::impl;
using verdict_t = mxdnn::blob_verdict;

namespace {

constexpr dim_t matrix[] = {70, 33};
std::vector<const char *> cpu_targets() {
    std::vector<const char *> all;
    for (const x64::isa_row_t &row : x64::isa_list) all.push_back(row.target);
    return all;
}

// The name of the implementation that has all the kernels that a set of features can run.
std::string best_implementation(const x64::isa_row_t &row) {
    x64::cpu_isa_t used = x64::cpu_isa_t::none;
    x64::kernel_list().for_each([&](const x64::kernel_row_t &r) {
        if (x64::includes(row.isa, r.isa)) used = used | r.isa;
    });
    return std::string("jit:") + x64::isa_name(used);
}

// On processors that multiply bf16 faster in f32, kernels of AVX-512 can be the best of a target with BF16.
bool is_best(const std::string &implementation, const x64::isa_row_t &row) {
    return implementation == best_implementation(row)
           || (x64::preferred_compute(row.isa, x64::cpu_family()) == mxdnn_f32
                   && implementation == "jit:avx512_core");
}

bytes_t packed_blob(const named_format_t &format) {
    memory_desc_t md;
    EXPECT_EQ(init_packed(md, 2, matrix, format.elem, format.quant, target_family_t::cpu_x64), mxdnn_success);
    return blob_of(md);
}

verdict_t ask(const char *target, const bytes_t &blob) {
    return mxdnn::check_blob(mxdnn::engine::for_target(target), blob.data(), blob.size());
}

// The bytes of field `name` replaced, with a correct length and checksum.
bytes_t altered(bytes_t blob, const char *name, uint64_t value) {
    for (const field_t &f : blob_fields)
        if (!strcmp(f.name, name)) {
            const int64_t at = offset_of(f, desc_kind_t::packed, 2);
            EXPECT_GE(at, 0) << name;
            store_le(blob.data() + at, size_t(f.bytes), value);
            seal(blob);
            return blob;
        }
    ADD_FAILURE() << "no field " << name;
    return blob;
}

} // namespace

TEST(verdicts, native_where_the_target_has_kernels_of_its_own) {
    for (const named_format_t &format : named_formats)
        for (const x64::isa_row_t &row : x64::isa_list) {
            const char *const target = row.target;
            const bytes_t blob = packed_blob(format);
            if (format.decoder == decoder_t::none) {
                EXPECT_EQ(ask(target, blob), verdict_t::slower) << format.name << " on " << target;
                continue;
            }
            ASSERT_EQ(ask(target, blob), verdict_t::native) << format.name << " on " << target;
            // The promise of the verdict: the implementation of that target takes a matmul with these bytes.
            const mxdnn::engine eng = mxdnn::engine::for_target(target);
            using dt = mxdnn::memory::data_type;
            using tag = mxdnn::memory::format_tag;
            const mxdnn::mx_matmul::primitive_desc pd(eng, mxdnn::memory::desc({8, 70}, dt::bf16, tag::ab),
                    mxdnn::memory::desc(blob.data(), blob.size()),
                    mxdnn::memory::desc({8, 33}, dt::bf16, tag::ab));
            EXPECT_TRUE(is_best(pd.impl_info_str(), row))
                    << format.name << " on " << target << ": " << pd.impl_info_str();
        }
}

TEST(verdicts, native_where_the_list_of_a_cuda_target_has_an_entry_of_its_own) {
    // Shapes whose many rows cuBLASLt does not take, and takes.
    const dim_t shapes[][2] = {{70, 34}, {2880, 5760}};
    for (const named_format_t &format : named_formats)
        for (const dim_t(&dims)[2] : shapes) {
            memory_desc_t md;
            ASSERT_EQ(init_packed(md, 2, dims, format.elem, format.quant, target_family_t::cuda),
                    mxdnn_success);
            const std::string what = format.name + (" " + std::to_string(dims[0]));
            const verdict_t own = format.decoder == decoder_t::none ? verdict_t::slower : verdict_t::native;
            EXPECT_EQ(ask("cuda:sm_80", blob_of(md)), own) << what;
            // int8 has the portable kernel alone.
            EXPECT_EQ(ask("cuda:sm_90", blob_of(md)),
                    format.decoder == decoder_t::int8 ? verdict_t::slower : own)
                    << what;
            EXPECT_EQ(ask("cuda:sm_120", blob_of(md)), verdict_t::slower) << what;
            EXPECT_EQ(ask("cpu:x64:avx2", blob_of(md)), verdict_t::needs_reorder) << what;
        }
}

TEST(verdicts, native_in_the_layout_for_fp8_on_hopper_alone) {
    const layout_t &f4 = *find_layout(target_family_t::cuda, n64_f4_t::id);
    for (const named_format_t &format : named_formats) {
        const decoder_t d = format.decoder;
        if (d != decoder_t::mxfp4 && d != decoder_t::nvfp4) continue;
        memory_desc_t md;
        ASSERT_EQ(init_packed_as(md, 2, matrix, format.elem, format.quant, f4), mxdnn_success);
        EXPECT_EQ(
                ask("cuda:sm_90", blob_of(md)), d == decoder_t::mxfp4 ? verdict_t::native : verdict_t::slower)
                << format.name;
        EXPECT_EQ(ask("cuda:sm_80", blob_of(md)), verdict_t::slower) << format.name;
        EXPECT_EQ(ask("cpu:x64:avx2", blob_of(md)), verdict_t::needs_reorder) << format.name;
    }
}

TEST(verdicts, slower_where_only_the_reference_takes_it) {
    const dim_t dims[] = {70, 34};
    memory_desc_t md;
    ASSERT_EQ(init_with_tag(md, 2, dims, mxdnn_f4_e2m1, mxdnn_ba), mxdnn_success);
    for (const char *target : cpu_targets()) EXPECT_EQ(ask(target, blob_of(md)), verdict_t::slower) << target;
}

TEST(verdicts, needs_reorder_on_another_family) {
    for (const named_format_t &format : named_formats)
        EXPECT_EQ(ask("cuda:sm_90", packed_blob(format)), verdict_t::needs_reorder) << format.name;
}

TEST(verdicts, incompatible_where_something_is_newer_than_this_release) {
    const bytes_t blob = packed_blob(named_formats[0]);
    for (const char *target : cpu_targets()) {
        for (const char *field : {"layout_id", "layout_version", "target_family"})
            EXPECT_EQ(ask(target, altered(blob, field, 200)), verdict_t::incompatible) << field;
        EXPECT_EQ(ask(target, altered(altered(blob, "format_version", 200), "oldest_reader", 200)),
                verdict_t::incompatible);
        // Newer, but still readable by this release.
        EXPECT_EQ(ask(target, altered(blob, "format_version", 200)), verdict_t::native);
    }
    EXPECT_EQ(ask("cpu:x64:avx2", blob), verdict_t::native);
}

// The last error is the reason for the verdict, with the values that it is about.
TEST(verdicts, reasons) {
    const auto reason = [](const char *target, const bytes_t &blob, verdict_t want) {
        mxdnn::set_verbose("planted_by_the_test"); // a failure of before
        EXPECT_EQ(ask(target, blob), want) << target;
        const std::string text = mxdnn::get_last_error();
        EXPECT_EQ(text.find("planted_by_the_test"), text.npos) << text;
        return text;
    };
    const auto expect_has = [](const std::string &text, std::initializer_list<const char *> words) {
        for (const char *w : words) EXPECT_NE(text.find(w), text.npos) << "'" << w << "' is not in: " << text;
    };
    const bytes_t blob = packed_blob(named_formats[0]);
    EXPECT_EQ(reason("cpu:x64:avx2", blob, verdict_t::native), "");

    memory_desc_t cuda;
    const dim_t even[] = {70, 34};
    ASSERT_EQ(init_packed(cuda, 2, even, mxdnn_f4_e2m1, mx_quant, target_family_t::cuda), mxdnn_success);
    EXPECT_EQ(reason("cuda:sm_90", blob_of(cuda), verdict_t::native), "");
    expect_has(reason("cuda:sm_120", blob_of(cuda), verdict_t::slower), {"cuda:sm_120", "70x34", "f4_e2m1"});

    memory_desc_t plain;
    ASSERT_EQ(init_with_tag(plain, 2, even, mxdnn_f4_e2m1, mxdnn_ba), mxdnn_success);
    expect_has(reason("cpu:x64:avx2", blob_of(plain), verdict_t::slower), {"plain", "70x34", "mx_reorder"});
    expect_has(reason("cpu:x64:avx2", blob_of(cuda), verdict_t::needs_reorder),
            {"packed for cuda", "cpu:x64:avx2", "mx_reorder"});
    expect_has(reason("cuda:sm_90", blob, verdict_t::needs_reorder), {"packed for cpu:x64", "cuda:sm_90"});

    const auto incompatible = verdict_t::incompatible;
    expect_has(reason("cpu:x64:avx2", altered(blob, "layout_id", 200), incompatible), {"layout_id", "200"});
    expect_has(reason("cpu:x64:avx2", altered(blob, "layout_version", 200), incompatible),
            {"layout_version", "200"});
    expect_has(reason("cpu:x64:avx2", altered(blob, "target_family", 200), incompatible),
            {"target_family", "200"});
    expect_has(reason("cpu:x64:avx2", altered(altered(blob, "format_version", 200), "oldest_reader", 200),
                       incompatible),
            {"format version 200"});

    bytes_t bad = blob;
    bad[bad.size() - 1] ^= 1;
    expect_has(reason("cpu:x64:avx2", bad, verdict_t::corrupt), {"checksum"});
    bad.resize(9);
    expect_has(reason("cpu:x64:avx2", bad, verdict_t::corrupt), {"9 bytes"});
    expect_has(reason("cpu:x64:avx2", bytes_t(), verdict_t::corrupt), {"0 bytes"});
}

TEST(verdicts, corrupt_where_any_byte_differs) {
    const bytes_t blob = packed_blob(named_formats[0]);
    for (size_t i = 0; i < blob.size(); i++) {
        bytes_t bad = blob;
        bad[i] ^= 0x10;
        EXPECT_EQ(ask("cpu:x64:avx2", bad), verdict_t::corrupt) << "byte " << i;
    }
    for (size_t n = 1; n < blob.size(); n++)
        EXPECT_EQ(ask("cpu:x64:avx2", bytes_t(blob.begin(), blob.begin() + int64_t(n))), verdict_t::corrupt)
                << n;
}
