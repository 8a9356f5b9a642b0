// StepRunner: carries out the steps of the reference (graph/steps.h) on a device, with the kernels
// of resources/truth/. Within the room only.
//
//   StepRunner runner(device, kernels);
//   WARPLOOM_TRY(DevicePair made, runner.run(steps, given, {.marks = true}));
//
// What steps leave behind is kept for the next ones of the same size: making memory of a device
// takes longer than filling it.
//
// Errors: no-schedule where a step is more than the kernels' records have room for (of axes, of
// terms); out-of-memory.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/steps.h"
#include "runtime/executor.h"
#include "verify/truth_kernels.h"

namespace warploom::verify {
// Doubles and their magnitudes, or whole numbers of 64 bits alone.
struct DevicePair {
  runtime::Buffer data;
  runtime::Buffer magnitude;  // none: all are 0
  Dtype dtype = Dtype::f64;   // i64: whole numbers

  tasks::Numbers numbers() const;
};

// A tensor that is given, in its own type.
struct DeviceTensor {
  runtime::Buffer data;
  Dtype dtype = Dtype::f32;
};

struct StepOptions {
  bool drops_nan = false;  // graph::EvalOptions
  bool marks = false;      // likewise
};

class StepRunner {
 public:
  StepRunner(runtime::Executor& device, TruthKernels& kernels)
      : device_(device), kernels_(kernels) {}

  // `given[i]`: tensor i of the graph, where it is an input or a constant. The result's memory
  // comes back by give_back().
  Result<DevicePair> run(const graph::Steps& steps, std::span<const DeviceTensor> given,
                         const StepOptions& options);
  // Memory for so many elements and, where wanted, their magnitudes.
  Result<DevicePair> make(int64_t elements, bool with_magnitudes, Dtype dtype = Dtype::f64);
  void give_back(DevicePair pair);
  void forget_free();  // what is kept for later goes back to the device
  Status copy(const DevicePair& from, const DevicePair& to, int64_t at, int64_t count);

  // Whether runs that marked since this was asked last found a number beyond its type.
  bool take_beyond() { return std::exchange(beyond_, false); }

  // Whether the kernels' records have room for all of it.
  static Status check(const graph::Steps& steps);

 private:
  struct Running {
    const graph::Steps& steps;
    std::span<const DeviceTensor> given;
    StepOptions options;
    std::vector<DevicePair> made;

    tasks::Numbers numbers(int storage) const {
      const auto number = static_cast<size_t>(storage);
      const graph::TensorId id = steps.storages[number].given;
      if (id == graph::kAbsent) return made[number].numbers();
      const DeviceTensor& tensor = given[static_cast<size_t>(id)];
      return {address_of(tensor.data), 0, static_cast<int64_t>(tensor.dtype)};
    }

    bool is_whole(const graph::Step& step) const {
      return steps.storages[static_cast<size_t>(step.to)].dtype == Dtype::i64;
    }
  };

  Result<runtime::Buffer> take(int64_t bytes);
  void give(runtime::Buffer buffer);
  Status carry_out(Running& running, const graph::Step& step);
  Status pointwise(Running& running, const graph::Step& step, const graph::PointwiseStep& work);
  Status moved(Running& running, const graph::Step& step, const graph::CopyStep& work);
  Status gather(Running& running, const graph::Step& step, const graph::GatherStep& work);
  Status reduce(Running& running, const graph::Step& step, const graph::ReduceStep& work);
  Status scan(Running& running, const graph::Step& step, const graph::ScanStep& work);
  Status product(Running& running, const graph::Step& step, const graph::ProductStep& work);
  Result<runtime::Buffer> uploaded(const std::vector<int64_t>& words);
  Status multiply(Running& running, const graph::Step& step, tasks::ProductTask task);
  Status mark(Running& running, const graph::Step& step);

  runtime::Executor& device_;
  TruthKernels& kernels_;
  std::multimap<int64_t, runtime::Buffer> free_;  // by bytes
  // Tables of the latest products, by a hash of their words: parts of an output have the same.
  std::map<uint64_t, runtime::Buffer> tables_;
  bool beyond_ = false;
};
}  // namespace warploom::verify
