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
# same WHAT COUNT: the words of first's problems make its problems again.
same() {
    runs first
    cp "$scratch/first.words" "$scratch/second"
    runs second
    run diff <(problems first) <(problems second)
    expect_status "$1 are made again" 0
    [ "$(grep -c '^--' "$scratch/first.words")" -ge "$2" ] || wrong "$1: fewer than $2 lines became words"
}

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
same "problems of matrices" 20

# Rows go where their routing says: to experts by groups, by row ids and by range, to tokens and to choices.
cat >"$scratch/first" <<'EOS'
--grouped_matmul --reset --experts=8 --topk=4 --tokens=6 --gather=1 --scatter=reduce --topk-weights=output --topk-dt=bf16 --attr-post-ops=swiglu_oai:1.702:7:interleaved --bia-dt=bf16 --activation-params=per_expert --expert-alpha=1 64x96
--reset --experts=4 --topk=1 --tokens=9 --extra-rows=2 64x32
--reset --experts=4 --topk=1 --tokens=9 --row-grouping=starts --plain-rows=1 --row-pad=3 --max-rows-hint=8 64x32
--reset --dt=mxfp8:nvfp4:f32 --experts=4 --topk=1 --tokens=9 --scatter=permute --attr-global-scale=wei --local=1:2 --attr-deterministic=true --topk-weights=input 64x32
--reset --experts=4 --topk=3 --tokens=5 --gather=1 --row-grouping=row_ids --expert-map=1 --local=0:3 --activation-params=shared --attr-post-ops=silu:1:0:halves --weights-ptrs=1 64x32
--reset --experts=2 --topk=3 --tokens=5 --gather=1 --scatter=permute --routing=twice --extra-rows=1 --runtime-rows=1 64x32
--moe_route --reset --topk=2 --outputs=least 5x16
--moe_unpermute --reset --topk=3 7x40
--reset --dt=mxfp6:mxfp6 --topk=0 --scales-layout=128x4:linear --attr-element-packing=dense --padding=3 --row-pad=2 7x64
--grouped_matmul_backward_weights --reset --dt=mxfp8:mxfp8_e5m2:bf16 --experts=3 --dtag=ba --attr-post-ops=sum:0.5 40x16x24
--reset --row-grouping=starts --row-pad=3 40x16x24
--mx_reorder --reset --sdt=mxfp8 --ddt=bf16 --stag=ab --dtag=ab --axis=n --attr-scales-layout=src 96x64
--reset --sdt=bf16 --ddt=mxfp8 --stag=ab --dtag=ab --axis=n --given=dst 96x64
EOS
same "problems of experts" 13

# Where only the data says how many rows there are, shapes are those of as many rows.
cat >"$scratch/third" <<'EOS'
--moe_permute --ranks=2 --experts=4 --align=16 --dt=mxfp8 --row-grouping=starts 40x64
--grouped_matmul --experts=4 --topk=2 --tokens=8 --row-grouping=padded --scatter=permute 64x32
--grouped_matmul --reset --experts=8 --topk=1 --tokens=4 --active-experts=1 64x32
--moe_unpermute --topk=4 --missing=4 20x40
EOS
runs third
cp "$scratch/third.words" "$scratch/fourth"
runs fourth
output=$(cat "$scratch/third.words")
expect_says "moe_permute" "--moe_permute --reset --dt=mxfp8 --row-pad=0 --ranks=2 --experts=4 --align=16 --row-grouping=starts 40x64"
expect_says "padded groups" "--row-grouping=padded --scatter=permute"
expect_says "active experts" "--active-experts=1 64x32"
expect_says "rows that are missing" "--moe_unpermute --reset --dt=bf16:bf16 --topk=4 --row-pad=0 --missing="

# Each problem is one line, under the number of its executions and their time.
line='mxdnn_verbose,v1,primitive,exec,moe_unpermute,simd:avx2,src:bf16:blocked:ab:20x64 dst:bf16:blocked:ab:20x64,'
printf '%s,0.5\n' "$line" "$line" "${line//bf16/f32}" "$line" >"$scratch/often"
run "$root/scripts/verbose-to-bench" "$scratch/often"
expect_status "problems that come again" 0
[ "$output" = "# 3 executions, 1.5 ms
--moe_unpermute --reset --dt=bf16:bf16 --topk=0 --row-pad=0 20x64
# 1 execution, 0.5 ms
--moe_unpermute --reset --dt=f32:f32 --topk=0 --row-pad=0 20x64" ] || wrong "problems that come again: $output"

# What there are no words for is said.
printf '%s,0.5\n' "${line/dst/rounding:dst:even attr-zero-points:src:3:u8:1x32 dst}" >"$scratch/unknown"
run "$root/scripts/verbose-to-bench" "$scratch/unknown"
expect_says "zero points of rows" "# moe_unpermute src:bf16:blocked:ab:20x64 "
expect_says "zero points of rows" "its rows have zero points or a global scale"

# Whoever reads may stop early: no message, and status 0.
for ((i = 1; i <= 5000; i++)); do echo "${line//20x64/20x$i},0.5"; done >"$scratch/many"
run bash -c "set -o pipefail; '$root/scripts/verbose-to-bench' '$scratch/many' | head -n 1"
expect_status "a closed pipe" 0
[ "$output" = "# 1 execution, 0.5 ms" ] || wrong "a closed pipe: $output"

# Logs of strangers: a terminal does not obey them, no problem is a word of another kind, and no number is too long.
nines=$(printf '9%.0s' {1..400})
printf '%s,0.5\n' "${line/src:/src:$'\x1b'[31m}" "${line/dst:bf16/dst:bf16$'\t'--mode=P}" "${line/dst:/dst:Ã}" \
    "${line/20x64 /--batch=x }" >"$scratch/hostile"
printf '%s,0.5\n' "${line/20x64 dst:bf16:blocked:ab:20x64/${nines}x4 dst:bf16:blocked:ab:1${nines//9/0}x4}" >>"$scratch/hostile"
run "$root/scripts/verbose-to-bench" "$scratch/hostile"
expect_status "logs of strangers" 0
[ "$(grep -c 'no line of a verbose mxdnn reads so$' <<<"$output")" = 5 ] || wrong "logs of strangers: $output"
if grep -q -e '^--' -e $'[\x1b\t]' <<<"$output"; then wrong "logs of strangers: $output"; fi

# Bytes of any encoding are passed over, and half a line is no reason to end.
printf '\377\376\nmxdnn_verbose,v1,primitive,exec,mx_matmul,jit:avx2,src:f32:blo\n' >"$scratch/half"
printf 'mxdnn_verbose,v1,primitive,exec,mx_matmul,jit:avx2,src:f32:blocked:ab:4x4,,1\n' >>"$scratch/half"
run "$root/scripts/verbose-to-bench" "$scratch/half"
expect_status "half a line" 0
expect_says "half a line" "only 7 fields"
expect_says "half a line" "no line of a verbose mxdnn reads so"
