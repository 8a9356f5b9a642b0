// sm_90a adds: warpgroup matrix instructions, the tensor copy engine, stmatrix.

#include "target/instruction.h"

namespace warploom::target {
namespace {

using tile::Scope;

// Four warps of 16 rows each; an 8-column slice of the accumulator, which wider N repeats over values. Operands come from shared
// memory, or the first from registers, in the fragments of mma.sync.
Instruction wgmma(std::string_view name, Dtype operand, bool a_in_registers) {
  const int e = 4 / bytes_of(operand);
  Instruction row;
  row.name = name, row.call = a_in_registers ? "wl::wgmma_rs" : "wl::wgmma", row.method = Method::warpgroup;
  row.m = 64, row.k = 8 * e, row.threads = 128, row.cycles = 128;
  if (operand == Dtype::i8) row.n_step = 16;
  row.operand = operand, row.accumulator = accumulator_of(operand);
  if (a_in_registers) row.a = fragment_a(e, 4);
  row.c = fragment_c(4);
  row.a_shared = !a_in_registers, row.b_shared = true, row.transposable = bytes_of(operand) == 2;
  row.section = "Asynchronous warpgroup level matrix instructions: wgmma.mma_async";
  return row;
}

Instruction engine(std::string_view name, std::string_view call, Scope from, Scope to) {
  Instruction row;
  row.name = name, row.call = call, row.method = Method::tensor_copy, row.from = from, row.to = to, row.cycles = 32;
  row.section = "Data movement: cp.async.bulk.tensor";
  return row;
}

}  // namespace

std::vector<Instruction> sm90a_rows() {
  Instruction stmatrix, transposed;
  stmatrix.name = "stmatrix", stmatrix.call = "wl::stmatrix", stmatrix.method = Method::matrix;
  stmatrix.from = Scope::reg, stmatrix.to = Scope::shared, stmatrix.bytes = {16}, stmatrix.cycles = 2;
  stmatrix.section = "Data movement: stmatrix";
  transposed = stmatrix, transposed.name = "stmatrix_trans", transposed.transpose = true;
  return {
      wgmma("wgmma_bf16", Dtype::bf16, false),
      wgmma("wgmma_f16", Dtype::f16, false),
      wgmma("wgmma_tf32", Dtype::tf32, false),
      wgmma("wgmma_e4m3", Dtype::e4m3, false),
      wgmma("wgmma_e5m2", Dtype::e5m2, false),
      wgmma("wgmma_s8", Dtype::i8, false),
      wgmma("wgmma_rs_bf16", Dtype::bf16, true),
      wgmma("wgmma_rs_f16", Dtype::f16, true),
      wgmma("wgmma_rs_tf32", Dtype::tf32, true),
      wgmma("wgmma_rs_e4m3", Dtype::e4m3, true),
      wgmma("wgmma_rs_e5m2", Dtype::e5m2, true),
      wgmma("wgmma_rs_s8", Dtype::i8, true),
      engine("tma_load", "wl::tma_load", Scope::global, Scope::shared),
      engine("tma_store", "wl::tma_store", Scope::shared, Scope::global),
      stmatrix,
      transposed,
  };
}

}  // namespace warploom::target
