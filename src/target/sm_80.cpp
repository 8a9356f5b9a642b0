// sm_80: mma.sync, ldmatrix, cp.async, and plain vector accesses.

#include "target/rows.h"

namespace warploom::target {
namespace {

using layout::TvLayout;
using tile::Scope;

// Fragments of mma.m16n8k16 for 16-bit types: lane = 4·group + member.
TvLayout a_16x16() { return {{16, 16}, {{4, {0, 2}}, {8, {1, 0}}}, {{2, {0, 1}}, {2, {8, 0}}, {2, {0, 8}}}}; }
TvLayout b_16x8() { return {{16, 8}, {{4, {2, 0}}, {8, {0, 1}}}, {{2, {1, 0}}, {2, {8, 0}}}}; }
TvLayout c_16x8() { return {{16, 8}, {{4, {0, 2}}, {8, {1, 0}}}, {{2, {0, 1}}, {2, {8, 0}}}}; }
// Fragments of mma.m16n8k8 for tf32.
TvLayout a_16x8_tf32() { return {{16, 8}, {{4, {0, 1}}, {8, {1, 0}}}, {{2, {8, 0}}, {2, {0, 4}}}}; }
TvLayout b_8x8_tf32() { return {{8, 8}, {{4, {1, 0}}, {8, {0, 1}}}, {{2, {4, 0}}}}; }
TvLayout one() { return {{1, 1}, {}, {}}; }

Instruction matrix(std::string_view name, std::string_view call, Dtype operand, int k, TvLayout a, TvLayout b) {
  return {.name = name,
          .method = Method::warp,
          .call = call,
          .m = 16,
          .n = 8,
          .k = k,
          .operand = operand,
          .accumulator = Dtype::f32,
          .threads = 32,
          .a = std::move(a),
          .b = std::move(b),
          .c = c_16x8(),
          .cycles = 16,
          .section = "Warp-level matrix instructions: mma"};
}
Instruction copy(std::string_view name, std::string_view call, Method method, Scope from, Scope to,
                 std::vector<int> bytes, bool transpose, double cycles, std::string_view section) {
  return {.name = name,
          .method = method,
          .call = call,
          .from = from,
          .to = to,
          .bytes = std::move(bytes),
          .transpose = transpose,
          .cycles = cycles,
          .section = section};
}

}  // namespace

std::vector<Instruction> sm80_rows() {
  const Instruction fma = {.name = "fma_f32",
                           .method = Method::simt,
                           .call = "wl::fma",
                           .m = 1,
                           .n = 1,
                           .k = 1,
                           .operand = Dtype::f32,
                           .accumulator = Dtype::f32,
                           .threads = 1,
                           .a = one(),
                           .b = one(),
                           .c = one(),
                           .cycles = 1,
                           .section = "Floating point instructions: fma"};
  return {
      matrix("mma_m16n8k16_bf16", "wl::mma_m16n8k16", Dtype::bf16, 16, a_16x16(), b_16x8()),
      matrix("mma_m16n8k16_f16", "wl::mma_m16n8k16", Dtype::f16, 16, a_16x16(), b_16x8()),
      matrix("mma_m16n8k8_tf32", "wl::mma_m16n8k8", Dtype::tf32, 8, a_16x8_tf32(), b_8x8_tf32()),
      fma,
      copy("cp_async", "wl::cp_async", Method::async, Scope::global, Scope::shared, {16, 8, 4}, false, 2,
           "Data movement: cp.async"),
      copy("ldmatrix", "wl::ldmatrix", Method::matrix, Scope::shared, Scope::reg, {16}, false, 2,
           "Data movement: ldmatrix"),
      copy("ldmatrix_trans", "wl::ldmatrix", Method::matrix, Scope::shared, Scope::reg, {16}, true, 2,
           "Data movement: ldmatrix"),
      copy("ld_shared", "wl::ld_shared", Method::plain, Scope::shared, Scope::reg, {16, 8, 4, 2, 1}, false, 2,
           "Data movement: ld"),
      copy("st_shared", "wl::st_shared", Method::plain, Scope::reg, Scope::shared, {16, 8, 4, 2, 1}, false, 2,
           "Data movement: st"),
      copy("ld_global", "wl::ld_global", Method::plain, Scope::global, Scope::reg, {16, 8, 4, 2, 1}, false, 4,
           "Data movement: ld"),
      copy("st_global", "wl::st_global", Method::plain, Scope::reg, Scope::global, {16, 8, 4, 2, 1}, false, 4,
           "Data movement: st"),
  };
}

}  // namespace warploom::target
