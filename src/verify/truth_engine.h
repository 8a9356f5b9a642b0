// TruthEngine: inputs, their FP64 truth and the comparison of outputs with it, all on one device.
// Runs in a process that no candidate ever runs in (device_truth.h). Within the room only.
//
//   WARPLOOM_TRY(auto engine, TruthEngine::make(device, graph, track, ranges));
//   WARPLOOM_CHECK(engine->draw(0, InputFamily::normal, seed));      // set 0 of inputs
//   WARPLOOM_TRY(const auto seen, engine->compare(0, outputs, {}));  // one Comparison an output
//
// Idea. The graph's steps (graph/steps.h) are kernels of one fixed text (resources/truth/), so that
// a new problem compiles nothing. Inputs are drawn by the counter-based generator of inputs.h, to
// the same bits. The truth of an output is made in parts of rows when it is first asked for; where
// it fits in a share of the memory it stays for all candidates, else each comparison makes it anew,
// part by part. prepare() may have less time than all of it takes: then parts at random places
// stay, and of the rest comparisons see what is unwritten. Elements that come of a number beyond
// its type are marked, in every family but the first, rather than whole blocks left out as on a
// CPU.
//
// Units: rows are those of graph::rows_of(), places and counts are in elements.
//
// Errors: no-schedule where the graph has steps that the kernels have no room for, or inputs of
// less than a byte; out-of-memory, with the bytes, where not even one row fits.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "graph/track.h"
#include "runtime/executor.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"
#include "verify/truth_kernels.h"
#include "verify/truth_steps.h"

namespace warploom::verify {
// What is compared of the outputs: all, or where the truth is not at hand a part of so many
// elements, at a place that the seed says.
struct CompareScope {
  bool whole = true;
  int64_t elements = 1 << 22;
  uint64_t seed = 0;
};

class TruthEngine {
 public:
  static Result<std::unique_ptr<TruthEngine>> make(runtime::Executor& device,
                                                   const graph::Graph& graph, Track track,
                                                   const graph::Ranges& ranges = {},
                                                   const std::set<ValueOp>& operations = {});
  // Draws a set of inputs, in place of what it held.
  Status draw(int set, InputFamily family, uint64_t seed);
  // Room for a set of inputs that are given; put() fills elements of them.
  Status make_room(int set);
  Status put(int set, size_t input, const graph::ElementRange& range, graph::Bytes whole);
  // Makes the truth of a set now; where it is not kept, of one part of each output. How many rows
  // of all outputs comparisons then know the truth of: fewer than there are where that would take
  // longer than `seconds`.
  Result<int64_t> prepare(int set, double seconds = HUGE_VAL);
  void forget(int set);
  // The tensors of a set: the graph's inputs, then its constants.
  std::vector<runtime::Buffer> tensors(int set) const;
  // `outputs`: packed, of the graph's types.
  Result<std::vector<Comparison>> compare(int set, std::span<const runtime::Buffer> outputs,
                                          const CompareScope& scope = {});
  Status move(const runtime::Buffer& from, const runtime::Buffer& to);  // as many bytes
  Result<bool> same(const runtime::Buffer& a, const runtime::Buffer& b);
  // Of an output's bytes: equal bits, equal hash.
  Result<uint64_t> hash(const runtime::Buffer& data);

  // The truth of rows [begin, end) of an output, on the host: for tests.
  Result<graph::ValueAndMagnitude> truth(int set, int output, int64_t begin, int64_t end);

 private:
  static constexpr int64_t kElementBytes = 16;  // a value and its magnitude

  // The truth of some neighbouring elements of an output.
  struct Part {
    DevicePair truth;
    DevicePair without_nan;  // Block::without_nan (oracle.h); none: the same
    bool mixed = false;
    bool marked = false;
    int64_t first = 0;
    int64_t count = 0;
  };

  struct Set {
    InputFamily family = InputFamily::normal;
    uint64_t seed = 0;
    std::vector<DeviceTensor> tensors;      // by their numbers in the primitive graph
    std::map<int, std::vector<Part>> kept;  // of outputs
    std::set<int> sampled;                  // of those, the outputs that are not kept whole
  };

  // Neighbouring elements of an output.
  struct ElementRun {
    int64_t first = 0;
    int64_t count = 0;
  };

  using Visit = std::function<Status(const Part& part)>;

  TruthEngine(runtime::Executor& device, TruthKernels kernels)
      : device_(device), kernels_(std::move(kernels)), runner_(device, kernels_) {}

  Status set_up(const graph::Graph& graph, Track track, const graph::Ranges& ranges);
  Status upload_constants();
  Status check_steps() const;
  Status draw_tensor(const Stream& stream, const runtime::Buffer& to);
  Result<DevicePair> rows(Set& set, int output, int64_t begin, int64_t end, bool drops_nan);
  Result<Part> part_of(Set& set, int output, int64_t begin, int64_t end);
  Result<bool> has_nan(const DevicePair& pair, int64_t count);
  Status for_parts(Set& set, int output, const Visit& visit);
  Status for_place(Set& set, int output, const CompareScope& scope, const Visit& visit);
  int64_t bytes_of_truth(int output) const;
  Result<int64_t> room_for_truth() const;  // bytes that one more output's may take
  // Of prepare(), truth_prepare.cpp.
  Result<int64_t> prepare_output(Set& set, int output, double seconds);
  void keep(Set& set, int output, std::vector<Part> parts);
  void forget_parts(Set& set, int output);
  void forget_spare();
  Status compare_part(const Part& part, int output, const runtime::Buffer& found, bool is_normal,
                      Comparison& sum);
  // What is unwritten between the parts that are kept.
  Status scan_rest(const Set& set, int output, const runtime::Buffer& found, Comparison& sum);
  Status scan_run(int output, const runtime::Buffer& found, ElementRun run, Comparison& sum);
  Status compare_by(tasks::CompareTask task, Comparison& sum);
  void give_back(Part part);
  void give_back(std::vector<Part> parts);
  void give_back(Set& set);

  runtime::Executor& device_;
  TruthKernels kernels_;
  StepRunner runner_;
  graph::Graph graph_;      // as it was given
  graph::Graph primitive_;  // what is evaluated
  graph::Ranges ranges_;
  std::vector<Tolerance> tolerances_;                     // of each output
  std::vector<graph::OutputRows> rows_;                   // likewise
  std::vector<int64_t> part_rows_;                        // likewise: that are made at once
  std::map<graph::TensorId, runtime::Buffer> constants_;  // of the primitive graph
  std::vector<runtime::Buffer> given_constants_;          // of the other, in their order
  std::map<int, Set> sets_;
  int64_t kept_bytes_ = 0;
  runtime::Buffer seen_;
  int64_t choices_ = 0;
  bool by_element_ = false;
};
}  // namespace warploom::verify
