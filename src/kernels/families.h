// The families, one function each: bound to a region on a target, or null where it does not cover the region. build.cpp lists them.
#pragma once
#include "kernels/family.h"
namespace warploom::kernels {
using target::Capabilities;
FamilyPtr matmul_wgmma_family(const Region&,
                              const Capabilities&);  // sm_90a: copy engine, warp roles, warpgroup matrix instructions
FamilyPtr im2win_family(const Region&,
                        const Capabilities&);  // sm_90a, fp32 convolutions: windows read from patches in shared memory
FamilyPtr matmul_mma_family(const Region&,
                            const Capabilities&);  // sm_80 and later: cp.async, mma.sync; convolutions, as the next
FamilyPtr matmul_simt_family(const Region&, const Capabilities&);  // any GPU: fused multiply-adds, strict fp32
FamilyPtr rowwise_gpu_family(const Region&, const Capabilities&);  // rows in registers, a ring, shared memory, or read again
FamilyPtr rowwise_cpu_family(const Region&, const Capabilities&);  // rows in registers, in the L2 cache, or read again
// Any target: one level of loops, by tiles of the output; on a CPU sums of products, too, by blocks.
FamilyPtr direct_family(const Region&, const Capabilities&);
}  // namespace warploom::kernels
