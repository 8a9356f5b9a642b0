// The families, one function each; build.cpp lists them.
#pragma once
#include "kernels/family.h"
namespace warploom::kernels {
const Family& matmul_wgmma_family();  // sm_90a: copy engine, warp roles, warpgroup matrix instructions
const Family& matmul_mma_family();    // sm_80 and later: cp.async, mma.sync; convolutions, too, as those of the next
const Family& matmul_simt_family();   // any GPU: fused multiply-adds, strict fp32
const Family& rowwise_gpu_family();   // softmax, norms, reductions: rows in registers, a ring, shared memory, or read again
const Family&
direct_family();  // any target: one level of loops, by tiles of the output; on a CPU sums of products, too, by blocks
const Family& rowwise_cpu_family();  // any CPU: rows in registers, in the L2 cache, or read again
}  // namespace warploom::kernels
