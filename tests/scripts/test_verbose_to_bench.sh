#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lines of MXDNN_VERBOSE=profile_exec become words of mxdnn-bench, which make the same problems again.
#   test_verbose_to_bench.sh MXDNN_BENCH
# shellcheck source=tests/scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bench=$1

# runs FILE: the verbose lines of its problems, and the words that they become.
runs() {
    MXDNN_VERBOSE=profile_exec "$bench" --mode=R --batch="$scratch/$1" >"$scratch/$1.verbose" || wrong "$1 does not run"
    "$root/scripts/verbose-to-bench" "$scratch/$1.verbose" >"$scratch/$1.words"
}
problems() { grep '^mxdnn_verbose,v1,primitive,exec,' "$scratch/$1.verbose" | cut -d, -f5-7 | sort -u; }

cat >"$scratch/first" <<'EOS'
--mx_matmul --dt=bf16:mxfp4:bf16 --attr-post-ops=swiglu_oai:1.702:7:interleaved --bia-dt=f32 5x96:96x64
--reset --dt=bf16:nvfp4:f32 --attr-global-scale=wei --stag=ba --dtag=ba --attr-post-ops=relu:0.5+add:f32:per_oc+mul:bf16:per_row+max:f16:per_tensor+sum:0.5 3x5x64:3x64x40
--reset --dt=mxfp8:mxfp8:mxfp8 --attr-fpmath=bf16 --attr-acc-mode=relaxed --attr-scratchpad=user --runtime-rows=1 7x64:64x64
--reset --dt=f32:mxint8:f32 --attr-src-quant=s8,f8_e4m3,mxint8 7x64:64x66
--reset --dt=bf16:u4:bf16 --wtag=ab,any --attr-scales=wei:per_ocic:bf16:64x1 --attr-zero-points=wei:per_ocic:u8 3x128:128x32
--reset --dt=s8:mxfp4:bf16 --attr-scales=src:per_ocic:f32:1x64 --attr-deterministic=true 3x64:64x32
--reset --dt=f32:mxfp4:bf16 --row-pad=8 --stag=ab,ba 2x5x64:2x64x32
--mx_reorder --reset --sdt=bf16 --ddt=mxfp4 --rounding=rceil 96x64
--reset --sdt=nvfp4 --ddt=f32 --stag=any,ab --dtag=ab --attr-global-scale=src 96x64
--reset --sdt=bf16 --ddt=mxfp8 --stag=ab --dtag=ab --axis=n 2x96x64
--moe_route --dt=f32 --topk=8 --scoring=sigmoid --flags=renormalize+bias --groups=8:4 --scale=2.5 --row-grouping=starts 5x64
--reset --dt=bf16 --topk=4 --runtime-rows=1 7x32
EOS
runs first
cp "$scratch/first.words" "$scratch/second"
runs second
run diff <(problems first) <(problems second)
expect_status "the problems are made again" 0
[ "$(grep -c . "$scratch/first.words")" -gt 20 ] || wrong "too few lines became words"

# What there are no words for is said.
echo '--grouped_matmul --experts=2 --topk=1 --tokens=3 32x32' >"$scratch/experts"
runs experts
output=$(cat "$scratch/experts.words")
expect_says "grouped_matmul" "# grouped_matmul "
expect_says "grouped_matmul" "its work depends on its indices"

# Bytes of any encoding are passed over, and half a line is no reason to end.
printf '\377\376\nmxdnn_verbose,v1,primitive,exec,mx_matmul,jit:avx2,src:f32:blo\n' >"$scratch/half"
printf 'mxdnn_verbose,v1,primitive,exec,mx_matmul,jit:avx2,src:f32:blocked:ab:4x4,,1\n' >>"$scratch/half"
run "$root/scripts/verbose-to-bench" "$scratch/half"
expect_status "half a line" 0
expect_says "half a line" "only 7 fields"
expect_says "half a line" "no line of a verbose mxdnn reads so"
