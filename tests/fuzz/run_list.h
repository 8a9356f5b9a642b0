// A launch list on this CPU, as kernels meet it at their worst: the pages before and behind a
// buffer fault, scratch holds NaNs.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>
#include "codegen/launch_list.h"
#include "runtime/compile.h"

namespace warploom::fuzz {
using Storage = std::map<std::string, std::vector<std::byte>>;  // by buffer

template <class Views> Views views_of(Storage& storage) {
  Views views;
  for (auto& [name, bytes] : storage)
    views[name] = bytes;
  return views;
}

// Texts in one: what they define or include first once, each in a namespace of its own.
std::string joined(const std::vector<std::string>& texts);

// `storage` holds every buffer of the list, workspaces too.
Status run_on_cpu(const LaunchList& list, const runtime::Binary& binary, Storage& storage);
}  // namespace warploom::fuzz
