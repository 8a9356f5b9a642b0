// From a program to text: one kernel in CUDA C++ or in C++ for the CPU, that a person likes to
// read.
#pragma once
#include "codegen/launch_list.h"
#include "synth/synthesize.h"

namespace warploom::codegen {
// CUDA C++ from a tile program and its synthesized layouts: one kernel, in text that a person likes
// to read.
//
// Each statement of the program stands as a comment above the code it became; tensors keep their
// names; every instruction is one call of the device interface (docs/device.md). The text compiles
// unchanged by nvcc and NVRTC against device/ptx and by a host compiler against device/emulated.
//
// What this room adds to the program, and nobody else writes: barriers between register and
// shared-memory statements of one role, full and empty barriers of pipelines, fences and waits of
// asynchronous instructions.
Result<Kernel> emit_cuda(const tile::Program& program, const synth::Solution& solution,
                         const target::Capabilities& capabilities);

// C++ for the CPU from a tile program: one kernel function, in text that a person likes to read.
//
// A block is a task: one call of the function. Shared tensors are parts of the thread's scratch
// memory, register tensors small arrays on the stack, and all of them hold floats (values of 16-bit
// tensors are rounded as they are written). The text calls device/cpu alone, whose vectors are as
// wide as capabilities.vector_bytes says.
//
// Consecutive statements on register tensors of one shape share a loop; what they hand on stays in
// vectors (cpu_fusion.cpp).
//
//   copy A[block_y * 256 +256, k +256] -> a
//     →  if (…inside…) wl::copy_rows<256, 256>(a, 272, A + …, 1024); else wl::load_rows(…);
//   fill acc 0; mma acc += a[i +6, 0 +256] * B[k +256, j +64]
//     →  wl::multiply_tile<true, 6, 64, 272, 1, 1024, 64>(acc, a + i * 272, B + …, 256);
//
// Errors: no-instruction for statements that a CPU has no counterpart for (roles, clusters,
// pipelines) and types it does not compute with; no-layout when two uses of a shared tensor
// contradict each other; resource-limit when the shared tensors exceed capabilities.shared_bytes or
// the register tensors 400 KiB of stack.
Result<Kernel> emit_cpu(const tile::Program& program, const target::Capabilities& capabilities);
}  // namespace warploom::codegen
