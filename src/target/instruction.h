// Instructions: one row each, with everything that selection, code generation and emulation need to
// know of it.
//
// A matrix row carries the thread-value layouts of its operands over the tiles a (m×k), b (k×n) and
// c (m×n), for one warp (32 threads) or one warpgroup (128); operands that it reads from shared
// memory have no such layout, but say how many bytes a swizzle atom of their memory may be wide.
// Tests prove that the layouts cover their tiles exactly, with the number of threads and values
// that the row says.
//
// Source: PTX ISA 9.0, sections "Matrix multiply-accumulate operation using mma instruction",
// "Asynchronous warpgroup level matrix multiply-accumulate", "Data movement and conversion
// instructions".
#pragma once
#include "layout/tv_layout.h"
#include "tile/program.h"

namespace warploom::target {
enum class Method : uint8_t {
  plain,     // each thread moves vectors of its own
  cp_async,  // each thread starts copies that land in shared memory later
  ldmatrix,  // a warp moves 8×8 matrices of 16-bit elements (ldmatrix, stmatrix)
  tma,       // one thread starts a copy of a whole tile (cp.async.bulk.tensor)
  simt,      // one fused multiply-add a thread
  mma_sync,  // a warp multiplies fragments in its registers
  wgmma,     // four warps multiply; b (and a) come from shared memory
};

struct Instruction {
  std::string name;
  Method method;
  std::string call;  // the device interface's function
  // Matrix rows
  // n 0: any multiple of 8 up to 256, above 24 of n_step
  int m = 0;
  int n = 0;
  int k = 0;
  int n_step = 8;
  Dtype operand = Dtype::f32;
  Dtype accumulator = Dtype::f32;
  int threads = 1;
  layout::TvLayout a = {};  // empty where the operand is read from shared memory
  layout::TvLayout b = {};
  layout::TvLayout c = {};
  // read from shared memory by descriptor
  bool a_shared = false;
  bool b_shared = false;
  bool transposable = false;  // shared operands may be contiguous along m or n as well as along k
  // Copy rows
  tile::Scope from = tile::Scope::global;
  tile::Scope to = tile::Scope::global;
  bool transpose = false;  // matrix: the transposed form
  double cycles = 1;       // warpgroup: of 256 columns, for the cost model
};

// The rows of an architecture: "sm_80", "sm_89", "sm_90a". Empty for the CPU, whose code generation
// needs none.
const std::vector<Instruction>& instructions_of(const std::string& arch);
}  // namespace warploom::target
