#include <regex>
#include "kernels/family.h"
#include "search/partition.h"
namespace warploom::search {
namespace {
// Workspaces that are not needed at the same time become one: each takes the first place that is free when it is first named. One that
// is cleared keeps memory of its own: clearing a larger one costs time.
void share_workspaces(LaunchList& list) {
  std::map<std::string, std::size_t> last;  // kernel that needs each
  for (std::size_t i = 0; i < list.kernels.size(); ++i)
    for (const Argument& arg : list.kernels[i].args)
      last[arg.buffer] = std::max(last[arg.buffer], arg.zeroed ? list.kernels.size() : i);
  struct Place {
    BufferSpec spec;
    std::size_t busy_until;
  };
  std::vector<Place> places;
  std::map<std::string, std::size_t> place_of;
  for (std::size_t i = 0; i < list.kernels.size(); ++i)
    for (Argument& arg : list.kernels[i].args) {
      const auto spec = std::ranges::find(list.workspaces, arg.buffer, &BufferSpec::name);
      if (spec == list.workspaces.end() || last.at(arg.buffer) == list.kernels.size()) continue;
      const auto [known, fresh] = place_of.try_emplace(arg.buffer, 0);
      if (fresh) {
        const auto free = std::ranges::find_if(places, [&](const Place& place) { return place.busy_until < i; });
        known->second = static_cast<std::size_t>(free - places.begin());
        if (free == places.end()) places.push_back({{fmt::format("workspace/{}", places.size()), Dtype::u8, {0}}, 0});
        Place& place = places[known->second];
        place.spec.shape = {std::max(place.spec.bytes(), spec->bytes())};
        place.busy_until = last.at(arg.buffer);
      }
      arg.buffer = places[known->second].spec.name;
    }
  std::erase_if(list.workspaces, [&](const BufferSpec& spec) { return place_of.contains(spec.name); });
  for (Place& place : places) list.workspaces.push_back(std::move(place.spec));
}
}  // namespace
LaunchList join(const graph::Graph& whole, const Partition& partition, const std::vector<const LaunchList*>& lists) {
  LaunchList out;
  std::set<std::string> known;
  const auto add = [&](std::vector<BufferSpec>& to, BufferSpec spec) {
    if (known.insert(spec.name).second) to.push_back(std::move(spec));
  };
  for (const auto id : whole.inputs) add(out.inputs, kernels::spec_of(whole.tensor(id)));
  for (const auto id : whole.outputs) add(out.outputs, kernels::spec_of(whole.tensor(id)));
  std::set<std::string> taken;
  std::map<std::string, std::pair<std::string, std::string>> named;  // name and text of each kernel, by the text as it was
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
      if (passed) add(whole.tensor(id).constant ? out.inputs : out.workspaces, kernels::spec_of(whole.tensor(id)));
    }
    for (BufferSpec spec : lists[i]->workspaces) {
      spec.name = buffers[spec.name] = fmt::format("region {}/{}", i, spec.name);
      add(out.workspaces, std::move(spec));
    }
    out.engine = lists[i]->engine;
    out.arch = lists[i]->arch;
    out.predicted_us += lists[i]->predicted_us;
    for (Kernel kernel : lists[i]->kernels) {
      const auto [place, fresh] = named.try_emplace(kernel.source, kernel.name, kernel.source);
      if (fresh) {  // no other text's kernel has its name
        auto& [name, text] = place->second;
        for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", kernel.name, n);
        if (name != kernel.name) text = std::regex_replace(text, std::regex("\\b" + kernel.name + "\\b"), name);
      }
      std::tie(kernel.name, kernel.source) = place->second;
      for (Argument& arg : kernel.args) arg.buffer = buffers.at(arg.buffer);
      out.kernels.push_back(std::move(kernel));
    }
  }
  share_workspaces(out);
  return out;
}
}  // namespace warploom::search
