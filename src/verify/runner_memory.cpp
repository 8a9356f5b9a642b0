// A candidate's memory: copies of what it reads, what lies round them, and all of it as new.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/bytes.h"
#include "verify/cell.h"
#include "verify/cores.h"
#include "verify/runner.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
using runtime::Buffer;

namespace {
constexpr int64_t kPage = 4096;

tl::unexpected<Error> wrote_outside(const std::string& name) {
  return fail({ErrorCode::kCandidateWroteInput, "a candidate wrote outside its buffers", name,
               "writes within the output", "changed bytes before or behind the buffer"});
}
}  // namespace

Status Runner::make_copies(const Work& work) {
  constexpr uint64_t kAligned = 64;  // what every caller of a kernel keeps to
  copies_.clear();
  for (const auto& [name, buffer] : work.buffers) {
    if (!is_input(work, name) && !is_elsewhere_) continue;
    Copy& copy = copies_[name];
    copy.bytes = buffer.bytes();
    copy.before = kMargin;
    if (is_elsewhere_)
      copy.before += as_int64(kAligned * (1 + random_.below(kPage / kAligned - 1)));
    copy.of_input = is_input(work, name);
    copy.memory = memory_->allocate(copy.before + copy.bytes + kMargin);
    if (!copy.memory)
      return fail({ErrorCode::kOutOfMemory, "no memory for a candidate's inputs", name,
                   fmt::format("{} bytes", copy.bytes), "none left", "take a smaller problem"});
    copy.whole = memory_->extent_of(copy.memory.get()).bytes;
  }
  return ok();
}

Status Runner::take_scratch(const LaunchList& list, int threads) {
  scratch_bytes_ = 0;
  for (const Kernel& kernel : list.kernels)
    scratch_bytes_ = std::max(scratch_bytes_, kernel.shared_bytes);
  scratch_.clear();
  if (scratch_bytes_ == 0) return ok();
  for (int thread = 0; thread < threads; ++thread) {
    scratch_.push_back(memory_->allocate(scratch_bytes_));
    if (scratch_.back()) continue;
    return fail({ErrorCode::kOutOfMemory, "no memory for a kernel's scratch", "", "its scratch",
                 "no room", "take a smaller schedule"});
  }
  return ok();
}

// What lies in what is mapped, and in no buffer.
void Runner::note_margins(const Work& work) {
  struct Part {
    int64_t begin;
    int64_t end;
    std::string name;
  };

  std::vector<Part> parts;
  for (const auto& [name, buffer] : work.buffers) {
    const int64_t begin = memory_->offset(buffer.address());
    if (!is_input(work, name)) parts.push_back({begin, begin + buffer.bytes(), name});
  }
  std::ranges::sort(parts, {}, &Part::begin);
  margins_.clear();
  for (const SharedMemory::Extent& extent : extents_) {
    int64_t at = extent.offset;
    const int64_t end = extent.offset + extent.bytes;
    const auto add = [&](int64_t to, const std::string& name) {
      if (to > at)
        margins_.push_back({memory_->base() + at, {memory_->base() + at, as_size(to - at)}, name});
    };
    std::string beside;
    for (const Part& part : parts) {
      if (part.begin < extent.offset || part.begin >= end) continue;
      add(part.begin, part.name);
      at = std::max(at, part.end);
      beside = part.name;
    }
    add(end, beside);
  }
}

// What lies round a copy: what nobody can know, zeros, or a number again and again, since a kernel
// that looks at it must not find the same in every call.
std::string Runner::margin_of(const std::string& name, int64_t bytes, Random& margin) const {
  std::string out(as_size(bytes), '\0');
  switch ((hash64(name) + margin_seed_) % 3) {
    case 0: break;
    case 1: fill_words(out.data(), ordinary(margin), bytes); break;
    default: fill_pattern(out.data(), margin, bytes);
  }
  return out;
}

void Runner::renew_copies(const Work& work, bool inputs_alone) {
  margin_seed_ = random_.next();
  for (const auto& [name, copy] : copies_) {
    char* const begin = static_cast<char*>(copy.memory.get());
    const int64_t behind = copy.before + copy.bytes;
    Random margin(margin_seed_, name);
    const std::string before = margin_of(name, copy.before, margin);
    const std::string after = margin_of(name, copy.whole - behind, margin);
    std::memcpy(begin, before.data(), before.size());
    std::memcpy(begin + behind, after.data(), after.size());
    if (copy.of_input || !inputs_alone)
      copy_bytes(copy.data(), work.buffers.at(name).address(), copy.bytes);
  }
}

void Runner::renew_inputs(const Work& work) {
  renew_copies(work, true);
}

// What a call elsewhere left in its copies of outputs and workspaces.
void Runner::fetch_moved(const Work& work) {
  for (const auto& [name, copy] : copies_)
    if (!copy.of_input) copy_bytes(work.buffers.at(name).address(), copy.data(), copy.bytes);
}

// As it was before any call.
void Runner::renew(const Work& work) {
  const OnCore home(cell_->home(most_threads(work)));
  // First what a kernel seldom touches, last its inputs: caches keep what comes last.
  cell_->renew(random_.next());
  restore_margins();
  for (const auto& scratch : scratch_)
    fill_pattern(scratch.get(), random_, memory_->extent_of(scratch.get()).bytes);
  // Poison shows what stays unwritten. A kernel that waits for it must not be right in every call:
  // in some that are timed ordinary numbers lie there.
  const bool as_found = options_.foreign && timed_ && random_.below(3) == 0;
  const uint32_t unwritten = as_found ? ordinary(random_) : runtime::kPoison;
  const bool preparation = is_preparation(work);
  for (const auto& [name, buffer] : work.buffers) {
    if (is_input(work, name)) continue;
    const auto kept = prepared_.find(name);
    if (preparation || kept == prepared_.end())
      fill_words(buffer.address(), unwritten, buffer.bytes());
    else
      copy_bytes(buffer.address(), kept->second.data(), buffer.bytes());
  }
  renew_copies(work, false);
}

// What the preparation made is there again in every call.
void Runner::keep_prepared(const Work& work) {
  for (const size_t number : work.list->prepare) {
    for (const Argument& argument : work.list->kernels[number].args) {
      if (is_input(work, argument.buffer)) continue;
      const Buffer& buffer = work.buffers.at(argument.buffer);
      prepared_[argument.buffer].assign(static_cast<const char*>(buffer.address()),
                                        as_size(buffer.bytes()));
    }
  }
}

Status Runner::look_at_inputs(const Work& work) const {
  for (const auto& [name, copy] : copies_) {
    const char* const begin = static_cast<const char*>(copy.memory.get());
    if (copy.of_input && !same_bytes(copy.data(), work.buffers.at(name).address(), copy.bytes))
      return fail({ErrorCode::kCandidateWroteInput, "a candidate changed an input", name,
                   "the input as it was", "other bytes"});
    const int64_t behind = copy.before + copy.bytes;
    Random margin(margin_seed_, name);
    const auto is_margin = [&](const char* from, int64_t bytes) {
      const std::string expected = margin_of(name, bytes, margin);
      return same_bytes(from, expected.data(), bytes);
    };
    if (!is_margin(begin, copy.before) || !is_margin(begin + behind, copy.whole - behind))
      return wrote_outside(name);
  }
  return ok();
}

void Runner::restore_margins() {
  for (const Margin& one : margins_)
    std::memcpy(one.begin, one.bytes.data(), one.bytes.size());
}

Status Runner::look_at_margins() const {
  for (const Margin& one : margins_)
    if (std::memcmp(one.begin, one.bytes.data(), one.bytes.size()) != 0)
      return wrote_outside(one.name);
  return ok();
}

}  // namespace warploom::verify
