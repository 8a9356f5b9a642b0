#include "search/join.h"
#include <regex>
#include <set>
namespace warploom::search {
namespace {
// Names each text's kernel so that no other has its name.
class Names {
 public:
  void apply(Kernel& kernel) {
    const auto [known, fresh] = known_.try_emplace(kernel.source);
    if (fresh) {
      std::string name = kernel.name;
      for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", kernel.name, n);
      known->second = {name, kernel.source};
      if (name != kernel.name)
        known->second.second = std::regex_replace(kernel.source, std::regex("\\b" + kernel.name + "\\b"), name);
    }
    std::tie(kernel.name, kernel.source) = known->second;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, std::pair<std::string, std::string>> known_;  // by the text as it was
};

struct Life {
  std::size_t first = 0, last = 0;  // kernels that name the workspace
  bool used = false, zeroed = false;
};

// Workspaces whose lives do not meet become one. A workspace that is cleared keeps memory of its own: clearing a larger one costs time.
void share_workspaces(LaunchList& list) {
  std::map<std::string, Life> lives;
  for (std::size_t i = 0; i < list.kernels.size(); ++i)
    for (const Argument& arg : list.kernels[i].args) {
      Life& life = lives[arg.buffer];
      if (!life.used) life.first = i;
      // A kernel that begins before this one has ended must not write here yet.
      const bool overlapped = i + 1 < list.kernels.size() && list.kernels[i + 1].overlaps;
      life = {life.first, i + overlapped, true, life.zeroed || arg.zeroed};
    }
  struct Slot {
    BufferSpec spec;
    std::size_t busy_until;
  };
  std::vector<Slot> slots;
  std::vector<BufferSpec> own;
  std::map<std::string, std::string> place;
  std::ranges::stable_sort(list.workspaces, {}, [&](const BufferSpec& spec) { return lives[spec.name].first; });
  for (const BufferSpec& spec : list.workspaces) {
    const Life& life = lives[spec.name];
    if (life.zeroed || !life.used) {
      own.push_back(spec);
      continue;
    }
    Slot* best = nullptr;  // the smallest that holds it, else the largest
    for (Slot& slot : slots) {
      if (slot.busy_until >= life.first) continue;
      const std::int64_t size = slot.spec.bytes(), held = best ? best->spec.bytes() : 0;
      if (!best || (held < spec.bytes() ? size > held : size >= spec.bytes() && size < held)) best = &slot;
    }
    if (!best) best = &slots.emplace_back(Slot{{fmt::format("workspace/{}", slots.size()), Dtype::u8, {0}}, 0});
    best->spec.shape = {std::max(best->spec.bytes(), spec.bytes())};
    best->busy_until = life.last;
    place[spec.name] = best->spec.name;
  }
  list.workspaces = std::move(own);
  for (Slot& slot : slots) list.workspaces.push_back(std::move(slot.spec));
  for (Kernel& kernel : list.kernels)
    for (Argument& arg : kernel.args)
      if (const auto found = place.find(arg.buffer); found != place.end()) arg.buffer = found->second;
}
}  // namespace
LaunchList join(const graph::Graph& whole, const Partition& partition, const std::vector<const LaunchList*>& lists) {
  LaunchList out;
  std::set<std::string> known;
  const auto add = [&](std::vector<BufferSpec>& to, BufferSpec spec) {
    if (known.insert(spec.name).second) to.push_back(std::move(spec));
  };
  const auto spec_of = [&](graph::TensorId id) {
    const graph::Tensor& tensor = whole.tensor(id);
    return BufferSpec{tensor.name, tensor.dtype, tensor.shape};
  };
  for (const auto id : whole.inputs) add(out.inputs, spec_of(id));
  for (const auto id : whole.outputs) add(out.outputs, spec_of(id));
  Names names;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (!lists[i]) continue;
    const Region& region = partition.regions[i];
    std::map<std::string, std::string> buffers;
    for (std::size_t t = 0; t < region.tensors.size(); ++t) {
      const std::string& memory = buffers[region.graph.tensors[t].name] = partition.storage.at(region.tensors[t]);
      const auto id = *whole.tensor_named(memory);
      const bool passed =
          std::ranges::find(lists[i]->inputs, region.graph.tensors[t].name, &BufferSpec::name) != lists[i]->inputs.end() ||
          static_cast<graph::TensorId>(t) == region.graph.outputs[0];
      if (passed) add(whole.tensor(id).constant ? out.inputs : out.workspaces, spec_of(id));
    }
    for (BufferSpec spec : lists[i]->workspaces) {
      spec.name = buffers[spec.name] = fmt::format("region {}/{}", i, spec.name);
      add(out.workspaces, std::move(spec));
    }
    out.engine = lists[i]->engine;
    out.arch = lists[i]->arch;
    out.predicted_us += lists[i]->predicted_us;
    for (Kernel kernel : lists[i]->kernels) {
      names.apply(kernel);
      for (Argument& arg : kernel.args) arg.buffer = buffers.at(arg.buffer);
      out.kernels.push_back(std::move(kernel));
    }
  }
  share_workspaces(out);
  return out;
}
}  // namespace warploom::search
