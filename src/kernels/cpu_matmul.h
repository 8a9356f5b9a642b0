// The CPU's blocked matmul, with pointwise operators behind it.
//
// A task computes block_m × block_n of the result. For each block_k of k it packs its part of A and of B into scratch memory that
// stays in the L2 cache, zeros beyond the edges, and runs over micro tiles of micro_m × micro_n that are held in vector
// registers; partial sums wait in scratch between blocks of k, and behind the last block the epilogue is applied before the
// one store. Operands of 16 bits become floats as they are packed; transposed ones are packed transposed.
//
//   fields   block_m, block_n, block_k  elements; made equal among the blocks of the problem and rounded up to whole micro tiles
//            micro_m, micro_n           elements; micro_n in whole vectors
//
// Matrix times vector is computed as vector times matrix.
#pragma once

#include "kernels/family.h"
#include "kernels/match.h"

namespace warploom::kernels {

const Family& cpu_matmul_family();

}  // namespace warploom::kernels
