#include "plan/link.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "plan/fusion.h"
#include "plan/prepare.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::TensorId;

class Linker {
 public:
  Linker(const Graph& whole, const Partition& partition) : whole_(whole), partition_(partition) {
    for (size_t t = 0; t < whole.tensors.size(); ++t)
      ids_.emplace(whole.tensors[t].name, static_cast<TensorId>(t));
    for (const TensorId id : whole.inputs)
      add(out_.inputs, kernels::spec_of(whole.tensor(id)));
    for (const TensorId id : whole.outputs)
      add(out_.outputs, kernels::spec_of(whole.tensor(id)));
  }

  void append(size_t number, const LaunchList& list) {
    const auto buffers = add_buffers(number, list);
    out_.engine = list.engine;
    out_.arch = list.arch;
    out_.predicted_us += list.predicted_us;
    out_.special = std::max(out_.special, list.special);
    out_.foreign = out_.foreign || list.foreign;
    for (Kernel kernel : list.kernels) {
      name(kernel);
      for (Argument& argument : kernel.args) {
        const Memory& memory = buffers.at(argument.buffer);
        argument.buffer = memory.buffer;
        argument.offset = memory.offset;
        argument.bytes = memory.bytes;
      }
      out_.kernels.push_back(std::move(kernel));
    }
  }

  LaunchList take() { return std::move(out_); }

 private:
  struct Memory {
    std::string buffer;
    int64_t offset = 0;
    int64_t bytes = 0;  // of a part; else 0
  };

  void add(std::vector<BufferSpec>& to, BufferSpec spec) {
    if (known_.insert(spec.name).second) to.push_back(std::move(spec));
  }

  // The buffers of a region's list in the whole, and what the whole calls each.
  std::map<std::string, Memory> add_buffers(size_t number, const LaunchList& list) {
    const Region& region = partition_.regions[number];
    std::map<std::string, Memory> buffers;
    for (size_t t = 0; t < region.tensors.size(); ++t) {
      const std::string& own = region.graph.tensors[t].name;
      const std::string& memory = partition_.storage.at(region.tensors[t]);
      buffers[own] = {memory};
      const auto offset = partition_.offsets.find(region.tensors[t]);
      if (offset != partition_.offsets.end())
        buffers[own] = {memory, offset->second, graph::byte_count(region.graph.tensors[t])};
      const auto& tensor = whole_.tensor(ids_.at(memory));
      const bool is_input = contains(list.inputs, own, &BufferSpec::name);
      const bool is_output = contains(region.graph.outputs, static_cast<TensorId>(t));
      if (!is_input && !is_output) continue;
      add(tensor.constant ? out_.inputs : out_.workspaces, kernels::spec_of(tensor));
    }
    for (BufferSpec spec : list.workspaces) {
      const std::string name = fmt::format("region {}/{}", number, spec.name);
      buffers[spec.name] = {name};
      spec.name = name;
      add(out_.workspaces, std::move(spec));
    }
    return buffers;
  }

  // Gives the kernel a name that no other text's kernel has.
  void name(Kernel& kernel) {
    const auto [place, fresh] = named_.try_emplace(kernel.source, kernel.name);
    std::string& symbol = place->second;
    // No kernel of another text has it.
    for (int n = 2; fresh && !taken_.insert(symbol).second; ++n)
      symbol = fmt::format("{}_{}", kernel.name, n);
    if (symbol != kernel.name) kernel = renamed(std::move(kernel), symbol);
  }

  const Graph& whole_;
  const Partition& partition_;
  LaunchList out_;
  std::map<std::string, TensorId> ids_;       // of the whole's tensors, by name
  std::set<std::string> known_;               // buffers
  std::set<std::string> taken_;               // names of kernels
  std::map<std::string, std::string> named_;  // the symbol of each kernel, by its text as it was
};
}  // namespace

LaunchList link(const Graph& whole, const Partition& partition,
                const std::vector<const LaunchList*>& lists,
                const std::set<std::string>& constants) {
  Linker linker(whole, partition);
  for (size_t i = 0; i < lists.size(); ++i)
    if (lists[i]) linker.append(i, *lists[i]);
  LaunchList out = linker.take();
  add_prepare(out, whole, constants);
  return out;
}
}  // namespace warploom::plan
