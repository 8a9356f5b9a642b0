// A region under one config of a CPU family, run twice: by its compiled kernels and by the
// interpreter, on the same inputs.
//
//   CpuTrial trial(graph, config, capabilities, 0, Track::fp32, [](const graph::Tensor&) {
//     return 1.0;  // every element of every input
//   });
//   for (const Kernel& kernel : trial.kernels)
//     library.add(kernel);
//   library.compile();
//   trial.call(library);       // or trial.interpret()
//   trial.result();            // what the output holds now
#pragma once
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "../codegen/cpu_run.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::test {
struct CpuTrial {
  kernels::Region region;
  kernels::KernelConfig config;
  kernels::Family::Programs made;
  std::vector<Kernel> kernels;
  std::map<std::string, std::vector<std::byte>> buffers;

  // `number` keeps the names of kernels in one library apart; `draw(tensor)` is the next element
  // of that input.
  template <typename Draw>
  CpuTrial(graph::Graph graph, kernels::KernelConfig chosen,
           const target::Capabilities& capabilities, int number, Track track, Draw draw)
      : region(std::move(graph), track), config(std::move(chosen)) {
    const auto family = kernels::family_for(region, config.family(), capabilities);
    auto programs = family->programs(config);
    EXPECT_TRUE(programs) << config.text() << (programs ? "" : describe(programs.error()));
    if (!programs) return;
    made = *std::move(programs);
    for (tile::Program& program : made.programs)
      emit(program, number, capabilities);
    for (const auto id : region.graph.inputs) {
      const auto& tensor = region.graph.tensor(id);
      std::vector<std::byte>& own = buffers[tensor.name];
      own.resize(as_size(graph::byte_count(tensor)));
      for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
        store_from_double(tensor.dtype, own.data(), as_size(i), draw(tensor));
    }
  }

  const graph::Tensor& output() const { return region.graph.tensor(region.graph.outputs[0]); }

  const std::vector<std::byte>& result() const { return buffers.at(output().name); }

  std::vector<graph::Bytes> inputs() const {
    std::vector<graph::Bytes> views;
    for (const auto id : region.graph.inputs)
      views.emplace_back(buffers.at(region.graph.tensor(id).name));
    return views;
  }

  // The kernels, one after another, over outputs and workspaces that hold no numbers.
  void call(CpuLibrary& library) {
    poison();
    for (const Kernel& kernel : kernels) {
      std::vector<void*> pointers;
      const auto& names = made.buffers[as_size(&kernel - kernels.data())];
      for (const auto& arg : kernel.args)
        pointers.push_back(buffers.at(names.at(arg.buffer)).data());
      library.run(kernel, pointers);
    }
  }

  // The same by the interpreter.
  void interpret() {
    poison();
    for (size_t i = 0; i < made.programs.size(); ++i) {
      tile::Buffers given;
      for (const auto& [name, buffer] : made.buffers[i])
        given[name] = buffers.at(buffer);
      const auto status = tile::interpret(made.programs[i], given);
      ASSERT_TRUE(status) << config.text() << describe(status.error());
    }
  }

 private:
  void emit(tile::Program& program, int number, const target::Capabilities& capabilities) {
    program.name += "_" + std::to_string(number);
    const auto valid = tile::verify(program);
    EXPECT_TRUE(valid) << config.text() << (valid ? "" : describe(valid.error()));
    const auto kernel = codegen::emit_cpu(program, capabilities);
    EXPECT_TRUE(kernel) << config.text() << (kernel ? "" : describe(kernel.error()));
    if (kernel) kernels.push_back(*kernel);
  }

  void poison() {
    buffers[output().name].assign(as_size(graph::byte_count(output())), std::byte{0xff});
    for (const BufferSpec& each : made.workspaces)
      buffers[each.name].assign(as_size(bytes_of(each.dtype, graph::element_count(each.shape))),
                                std::byte{0xff});
  }
};
}  // namespace warploom::test
