// CUDA C++ from a tile program and its synthesized layouts: one kernel, in text that a person likes to read.
//
// Each statement of the program stands as a comment above the code it became; tensors keep their names; every instruction is one
// call of the device interface (docs/device.md). The text compiles unchanged by nvcc and NVRTC against device/ptx and by a host
// compiler against device/emulated.
//
// What this room adds to the program, and nobody else writes: barriers between register and shared-memory statements of one role,
// full and empty barriers of pipelines, fences and waits of asynchronous instructions.
#pragma once
#include "codegen/launch_list.h"
#include "synth/synthesize.h"
namespace warploom::codegen {
Result<Kernel> emit_cuda(const tile::Program& program, const synth::Solution& solution, const target::Capabilities& capabilities);
}  // namespace warploom::codegen
