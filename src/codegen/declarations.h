// Declarations: the launch list of a kernel file that anybody may write, in comment lines. No other code of it runs than the kernels.
//
//   // warploom: workspace partial f32[128,64]
//   // warploom: kernel rows grid=128 threads=256 args=x,w,partial
//   // warploom: kernel finish grid=8,4,1 threads=64 shared=4096 args=partial,y zeroed=y
//
// Kernels are launched in the order of their lines, each seeing what the ones before it wrote; one may come several times. Buffers have
// the names of the model's tensors, or are workspaces of a line above. What may be left out: threads=N of a block (128; GPU only),
// shared=BYTES (on the CPU of scratch) and zeroed=…, those args that are filled with zeros before the launch.
//
// Errors: kernel-invalid with the line.
#pragma once
#include "codegen/launch_list.h"
namespace warploom {
// The launch list that `text` declares; `problem` says its engine, architecture, inputs and outputs. `place` names the file.
Result<LaunchList> declared_list(const std::string& text, const std::string& place, const LaunchList& problem);
}  // namespace warploom
