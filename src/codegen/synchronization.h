// Where the barriers, fences and waits of a CUDA kernel stand. A pass of its own decides it before
// any text is written; the writer (cuda_*.cpp) prints what was decided at each statement.
//
// The pass follows a role's statements in order and keeps a state: which shared tensors its threads
// have written or read since they last met at a barrier, what tma stores may still read, which
// registers wgmma still writes or reads. Where a statement needs something of this to be over, an
// action is noted for it.
//
//   copy x -> s        s is written
//   copy s -> y        before it: meet, since other threads wrote what this one reads
//   mma acc += a * b   open_wgmma; acc is in flight
//   map acc = acc * 2  before it: commit_wgmma, wait_wgmma 0
//
// Control comes to a loop's head from before the loop and from the end of its body: the state there
// is the join of both. The program is followed as a whole until the states at all heads stay what
// they are, three or four times in practice, and once more to note the actions; so the work does
// not grow with how deep loops lie inside one another.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>
#include "codegen/cuda_analysis.h"

namespace warploom::codegen {
enum class SyncKind : uint8_t {
  meet,                   // a barrier of all threads of the role
  meet_warp,              // of the threads of each warp
  fence_async,            // what threads wrote to shared memory is seen by tma and wgmma
  wait_tma_reads,         // tma stores have read what is about to be overwritten
  wait_tma_stores,        // tma stores have landed in global memory
  open_wgmma,             // the first wgmma of a group may follow: registers are as it expects
  commit_wgmma,           // ends a group of wgmma
  wait_wgmma,             // until at most `groups` of them are in flight
  finish_cluster_reduce,  // the others' parts have arrived and are combined
};

struct SyncAction {
  SyncKind kind;
  int groups = 0;                      // wait_wgmma
  std::vector<TensorId> tensors = {};  // open_wgmma, wait_wgmma: accumulators that it concerns
};

// A place in a statement's text.
enum class SyncPart : uint8_t { before, inside, after };

struct SyncPlace {
  StatementId statement = kNoStatement;
  SyncPart part = SyncPart::before;
  int number = 0;  // of several places inside
  friend auto operator<=>(const SyncPlace&, const SyncPlace&) = default;
};

class Synchronization {
 public:
  explicit Synchronization(const CudaAnalysis& analysis);

  const std::vector<SyncAction>& at(const SyncPlace& place) const;
  const std::vector<SyncAction>& at_end_of(int role) const;  // -1: of what stands outside roles

  // How many statements were followed in all.
  int64_t steps() const { return steps_; }

 private:
  friend class SyncPass;
  std::map<SyncPlace, std::vector<SyncAction>> actions_;
  std::map<int, std::vector<SyncAction>> ends_;
  int64_t steps_ = 0;
};
}  // namespace warploom::codegen
