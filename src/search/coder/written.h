// Written texts: kernel files that a language model wrote, as candidates among others.
//
// A text's config is of the family `written`, whose one field is the text's hash: so its identity
// in the strategy, the measurer, the archive and the bundle is what it says, and the same text
// again is the same candidate. What it is built to is what its own lines declare
// (codegen/launch_list.h), and the launch list says that it is foreign: it is compiled by the
// strict path, judged in a process to itself, and never run outside of one by this program.
//
//   WrittenTexts texts(region, capabilities);
//   const KernelConfig config = texts.add(text);        // "written text_hash=5063…"
//   const Result<LaunchList> list = texts.build(config);
//
// Models may give tensors any name. Kernel files call those that are no plain words in0, in1, …,
// out0, …, and build() gives them their names back.
//
// Threads share it: compilers ask while a model writes. Errors of build(): kernel-invalid with the
// line; no-schedule for a text that nobody added.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "llm/prompt.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
bool is_written(const kernels::KernelConfig& config);

class WrittenTexts {
 public:
  WrittenTexts(const kernels::Region& region, const target::Capabilities& capabilities);

  kernels::KernelConfig add(const std::string& text);
  // "": nobody added it.
  std::string text_of(const kernels::KernelConfig& config) const;
  Result<LaunchList> build(const kernels::KernelConfig& config) const;

  // The tensors as kernel files call them.
  const std::vector<llm::BufferRow>& buffers() const { return buffers_; }

  // A list that this program built, as a kernel file: what a model may begin with. "" where a
  // kernel file cannot say it: prepared or prepacked operands, tensor maps, several texts.
  std::string file_of(const LaunchList& list) const;

 private:
  std::string alias_of(const std::string& name) const;

  LaunchList problem_;                        // without kernels, tensors by their aliases
  std::map<std::string, std::string> names_;  // of tensors, by alias
  std::vector<llm::BufferRow> buffers_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::string> texts_;  // by hash
};

// The same space, which builds written texts too.
SearchSpace with_texts(SearchSpace space, std::shared_ptr<const WrittenTexts> texts);
}  // namespace warploom::search
