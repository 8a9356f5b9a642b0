#include "search/coder/written.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;
using kernels::WrittenConfig;

// What a line of declarations can hold: a word without commas, which is no key.
bool is_plain(const std::string& name) {
  constexpr size_t kLongest = 80;
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, fits);
}

int64_t hash_of(const std::string& text) {
  return static_cast<int64_t>(hash64(text) >> 1);
}

// "// warploom: kernel NAME grid=… args=…"
std::string declaration_of(const Kernel& kernel, bool gpu, const auto& alias) {
  std::vector<std::string> zeroed;
  for (const Argument& argument : kernel.args)
    if (argument.zeroed) zeroed.push_back(alias(argument.buffer));
  const auto name = [&](const Argument& argument) { return alias(argument.buffer); };
  std::string line = fmt::format("// warploom: kernel {} grid={},{},{}", kernel.name,
                                 kernel.grid[0], kernel.grid[1], kernel.grid[2]);
  if (gpu) line += fmt::format(" threads={}", kernel.threads);
  if (kernel.shared_bytes > 0) line += fmt::format(" shared={}", kernel.shared_bytes);
  line += " args=" + listed(kernel.args, name, ",");
  if (!zeroed.empty()) line += " zeroed=" + listed(zeroed, {}, ",");
  return line + "\n";
}

// Whether declarations can say how the kernel is launched.
bool is_declarable(const Kernel& kernel) {
  const auto is_plain_argument = [](const Argument& argument) {
    return !argument.tensor_map && argument.prepacked.empty();
  };
  const bool alone = kernel.cluster == std::array<int64_t, 3>{1, 1, 1};
  const bool usual = !kernel.programmatic_launch && !kernel.cooperative;
  return alone && usual && std::ranges::all_of(kernel.args, is_plain_argument);
}
}  // namespace

bool is_written(const KernelConfig& config) {
  return config.type() == &WrittenConfig::type();
}

WrittenTexts::WrittenTexts(const kernels::Region& region, const target::Capabilities& capabilities)
    : problem_{capabilities.gpu ? Engine::cuda : Engine::cpu, capabilities.arch} {
  std::set<std::string> taken;
  for (const graph::Tensor& tensor : region.graph.tensors)
    if (is_plain(tensor.name)) taken.insert(tensor.name);
  const auto add = [&](const graph::Tensor& tensor, const char* prefix, const char* role,
                       std::vector<BufferSpec>& into) {
    std::string alias = tensor.name;
    for (size_t i = into.size(); !is_plain(alias); ++i) {
      alias = fmt::format("{}{}", prefix, i);
      if (!taken.insert(alias).second) alias.clear();
    }
    BufferSpec spec = kernels::spec_of(tensor);
    spec.name = alias;
    names_.emplace(alias, tensor.name);
    buffers_.push_back(
        {alias, std::string(name_of(spec.dtype)), graph::to_text(tensor.shape), role});
    into.push_back(std::move(spec));
  };
  const graph::Graph& graph = region.graph;
  for (const graph::TensorId id : graph.inputs)
    add(graph.tensor(id), "in", "input", problem_.inputs);
  for (const graph::TensorId id : graph.outputs)
    add(graph.tensor(id), "out", "output", problem_.outputs);
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.constant) add(tensor, "in", "constant input", problem_.inputs);
}

KernelConfig WrittenTexts::add(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const int64_t hash = hash_of(text);
  texts_.emplace(hash, text);
  return WrittenConfig{.text_hash = hash};
}

std::string WrittenTexts::text_of(const KernelConfig& config) const {
  if (!is_written(config)) return "";
  const std::lock_guard lock(mutex_);
  const auto found = texts_.find(config.as<WrittenConfig>().text_hash);
  return found == texts_.end() ? "" : found->second;
}

Result<LaunchList> WrittenTexts::build(const KernelConfig& config) const {
  const std::string text = text_of(config);
  if (text.empty())
    return fail({ErrorCode::kNoSchedule, "the text of a written kernel is not at hand",
                 config.text(), "a text that a model wrote in this search or its archive"});
  WARPLOOM_TRY(LaunchList list, declared_list(text, "line", problem_));
  const auto rename = [&](std::string& name) {
    if (const auto known = names_.find(name); known != names_.end()) name = known->second;
  };
  for (Kernel& kernel : list.kernels)
    for (Argument& argument : kernel.args)
      rename(argument.buffer);
  for (std::vector<BufferSpec>* specs : {&list.inputs, &list.outputs})
    for (BufferSpec& spec : *specs)
      rename(spec.name);
  return list;
}

std::string WrittenTexts::alias_of(const std::string& name) const {
  for (const auto& [alias, real] : names_)
    if (real == name) return alias;
  return name;
}

std::string WrittenTexts::file_of(const LaunchList& list) const {
  if (list.kernels.empty() || !list.prepare.empty()) return "";
  const std::string& text = list.kernels[0].source;
  if (list.foreign) return text;
  std::string head;
  for (const BufferSpec& space : list.workspaces) {
    if (!is_plain(space.name)) return "";
    std::string shape = graph::to_text(graph::Shape(space.shape));
    head +=
        fmt::format("// warploom: workspace {} {}{}\n", space.name, name_of(space.dtype), shape);
  }
  const auto alias = [&](const std::string& name) { return alias_of(name); };
  for (const Kernel& kernel : list.kernels) {
    if (kernel.source != text || !is_declarable(kernel)) return "";
    head += declaration_of(kernel, list.engine == Engine::cuda, alias);
  }
  return head + text;
}

SearchSpace with_texts(SearchSpace space, std::shared_ptr<const WrittenTexts> texts) {
  space.build = [inner = std::move(space.build),
                 texts = std::move(texts)](const KernelConfig& config) {
    return is_written(config) ? texts->build(config) : inner(config);
  };
  return space;
}
}  // namespace warploom::search
