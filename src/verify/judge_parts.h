// What the judge works with (judge.h): buffers, inputs and their truth, what runs on them, and what
// takes turns. Within the room only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "graph/reference.h"
#include "runtime/executor.h"
#include "runtime/timing.h"
#include "verify/inputs.h"
#include "verify/oracle.h"

namespace warploom::verify {
// Buffers with guard bytes round them.
inline constexpr int64_t kGuardBytes = 64 << 10;

struct Guarded {
  runtime::Buffer whole;
  runtime::Buffer data;  // at least kGuardBytes behind the whole's begin and before its end
  uint32_t word = 0;     // what the guard bytes repeat
};

namespace judging {
using Tensors = std::vector<Guarded>;

// One family's tensors, their truth, the vendor's error on them.
struct Inputs {
  InputFamily family = InputFamily::normal;
  Tensors tensors;
  // GPU only; on the CPU the tensors themselves are read.
  std::vector<std::vector<std::byte>> host;
  std::vector<graph::Bytes> bytes;
  std::vector<std::vector<uint64_t>> hashes;  // of each tensor's pieces
  Truth truth;
  Truth looked_at;         // of those that only timed calls are made on: some rows
  int64_t rows_known = 0;  // of the GPU's truth, those of all outputs that are compared
  double truth_ms = 0;     // that there were for it
  int set = -1;  // in the process of the GPU's truth; -1: what is above holds bytes and truth
  double vendor_error = -1;
  std::optional<uint64_t> output_hash;  // of the outputs that the candidate made of them first
};

// What a family may take of the time: its share, and all that is left.
struct FamilyTime {
  bool is_first = false;
  double share_ms = 0;
  double left_ms = 0;
};

// What runs: the candidate or the vendor's kernel.
struct Contender {
  runtime::Runnable kernel;
  std::map<std::string, Guarded> workspaces;  // those that share bytes as one
  runtime::Bindings placed;                   // each workspace in one of them
  std::set<std::string> prepared;             // of the workspaces' names: those kept for calls
  const Inputs* prepared_of = nullptr;        // whose contents they are made of
  bool foreign = false;                       // GPU: its text is
  int64_t local_bytes = 0;                    // GPU: of a thread's frame, the largest
};

// What calls are made on. There are several so that short calls can be timed in series on data
// that no cache holds.
struct Set {
  std::shared_ptr<Inputs> inputs;
  // the vendor's are the candidate's where memory is scarce
  Tensors outputs;
  Tensors vendor_outputs;
};

// A way to compute the graph without a candidate.
struct Reference {
  runtime::Runnable kernel;
  std::string libraries;
  double us = 0;                // 0: not timed
  std::optional<double> error;  // of its first call; nothing: not all of it was numbers
};

// Whole calls beyond those that the families' inputs take (judge_again.cpp).
struct MoreCalls {
  bool by_truth = false;   // on fresh inputs, whose truth is cheap
  bool same_bits = false;  // sums come in one order: the same inputs give the same bits
  int64_t calls = 0;
  int64_t inputs = 0;  // that calls were on, other than those of the families
  int64_t wanted = 0;  // calls, in all
  Set first = {};
};

// What takes turns, and how.
struct Contest {
  std::vector<std::vector<runtime::Call>> calls;  // the candidate's, the vendor's
  runtime::MeasureOptions options;
};

// Where bytes of the device are looked at; it grows, and is kept, since making it takes longer
// than filling it.
struct HostCopy {
  std::shared_ptr<void> memory;
  int64_t bytes = 0;
};
}  // namespace judging
}  // namespace warploom::verify
