// sm_90a adds: warpgroup matrix instructions fed from shared memory, the tensor copy engine, stmatrix.

#include "target/rows.h"

namespace warploom::target {
namespace {

using layout::TvLayout;
using tile::Scope;

// The accumulator of wgmma m64nNk*, one 8-column slice: 4 warps of 16 rows each, then as in mma.m16n8. Wider N repeats the
// slice over values.
TvLayout c_64x8() { return {{64, 8}, {{4, {0, 2}}, {8, {1, 0}}, {4, {16, 0}}}, {{2, {0, 1}}, {2, {8, 0}}}}; }

Instruction wgmma(std::string_view name, Dtype operand, int k, bool transposable) {
  return {.name = name,
          .method = Method::warpgroup,
          .call = "wl::wgmma",
          .m = 64,
          .n = 0,
          .k = k,
          .operand = operand,
          .accumulator = Dtype::f32,
          .threads = 128,
          .c = c_64x8(),
          .shared_operands = true,
          .transposable = transposable,
          .cycles = 128,
          .section = "Asynchronous warpgroup level matrix instructions: wgmma.mma_async"};
}

}  // namespace

std::vector<Instruction> sm90a_rows() {
  return {
      wgmma("wgmma_bf16", Dtype::bf16, 16, true),
      wgmma("wgmma_f16", Dtype::f16, 16, true),
      wgmma("wgmma_tf32", Dtype::tf32, 8, false),
      {.name = "tma_load",
       .method = Method::tensor_copy,
       .call = "wl::tma_load",
       .from = Scope::global,
       .to = Scope::shared,
       .cycles = 32,
       .section = "Data movement: cp.async.bulk.tensor"},
      {.name = "tma_store",
       .method = Method::tensor_copy,
       .call = "wl::tma_store",
       .from = Scope::shared,
       .to = Scope::global,
       .cycles = 32,
       .section = "Data movement: cp.async.bulk.tensor"},
      {.name = "stmatrix",
       .method = Method::matrix,
       .call = "wl::stmatrix",
       .from = Scope::reg,
       .to = Scope::shared,
       .bytes = {16},
       .cycles = 2,
       .section = "Data movement: stmatrix"},
  };
}

}  // namespace warploom::target
