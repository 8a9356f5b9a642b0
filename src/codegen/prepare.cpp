#include "codegen/prepare.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>
#include "base/rows.h"
#include "codegen/launch_list.h"

namespace warploom {
namespace {
bool writes(const Argument& argument) {
  return argument.written || argument.zeroed;
}

bool names(const Kernel& kernel, const std::string& buffer) {
  return contains(kernel.args, buffer, &Argument::buffer);
}

bool writes_to(const Kernel& kernel, const std::string& buffer) {
  return std::ranges::any_of(kernel.args, [&](const Argument& argument) {
    return argument.buffer == buffer && writes(argument);
  });
}

// Reads no input that changes, and stores into workspaces alone.
bool may_prepare(const LaunchList& list, const Kernel& kernel) {
  bool stores = false;
  for (const Argument& argument : kernel.args) {
    const bool is_workspace = contains(list.workspaces, argument.buffer, &BufferSpec::name);
    const bool is_constant = contains(list.constants, argument.buffer) && !writes(argument);
    if (!is_workspace && !is_constant) return false;
    stores |= writes(argument);
  }
  return stores;
}

// Whether kernel `k` may do to a workspace before all calls what it does to it: none but kernels of
// the preparation write it, and none of the calls wants it as it was before `k` wrote it.
bool is_settled(const LaunchList& list, const std::set<size_t>& prepare, size_t k,
                const std::string& buffer) {
  const bool changes = writes_to(list.kernels[k], buffer);
  for (size_t other = 0; other < list.kernels.size(); ++other) {
    if (prepare.contains(other)) continue;
    if (writes_to(list.kernels[other], buffer)) return false;
    if (changes && other < k && names(list.kernels[other], buffer)) return false;
  }
  return true;
}
}  // namespace

void mark_prepare(LaunchList& list) {
  std::set<size_t> prepare;
  for (size_t k = 0; k < list.kernels.size(); ++k)
    if (may_prepare(list, list.kernels[k])) prepare.insert(k);
  const auto refused = [&](size_t k) {
    return std::ranges::any_of(list.kernels[k].args, [&](const Argument& argument) {
      const bool is_workspace = contains(list.workspaces, argument.buffer, &BufferSpec::name);
      return is_workspace && !is_settled(list, prepare, k, argument.buffer);
    });
  };
  // One that goes may take others with it.
  for (auto found = std::ranges::find_if(prepare, refused); found != prepare.end();
       found = std::ranges::find_if(prepare, refused))
    prepare.erase(found);
  list.prepare.assign(prepare.begin(), prepare.end());
}

bool prepares(const LaunchList& list, size_t kernel) {
  return contains(list.prepare, kernel);
}

std::vector<size_t> called_kernels(const LaunchList& list) {
  std::vector<size_t> called;
  for (size_t k = 0; k < list.kernels.size(); ++k)
    if (!prepares(list, k)) called.push_back(k);
  return called;
}

std::vector<BufferSpec> prepared_buffers(const LaunchList& list) {
  std::vector<BufferSpec> kept;
  for (const BufferSpec& workspace : list.workspaces) {
    bool made = false;
    bool wanted = false;
    for (size_t k = 0; k < list.kernels.size(); ++k)
      if (names(list.kernels[k], workspace.name)) (prepares(list, k) ? made : wanted) = true;
    if (made && wanted) kept.push_back(workspace);
  }
  return kept;
}

int64_t prepared_bytes(const LaunchList& list) {
  int64_t bytes = 0;
  for (const BufferSpec& kept : prepared_buffers(list))
    bytes += kept.bytes();
  return bytes;
}
}  // namespace warploom
