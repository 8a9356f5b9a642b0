// RowTruth: FP64 of some rows of a graph's outputs on inputs that are given, made on a device of
// this process: what a bundle's check compares with where cores would take long over it. No
// candidate runs in such a process.
//
//   WARPLOOM_TRY(const auto truth, RowTruth::open(Engine::cuda, graph));
//   WARPLOOM_CHECK(truth->put(0, {0, 4096}, bytes));               // of input 0, what rows will
//   read WARPLOOM_TRY(const auto row, truth->rows(0, 7, 8));            // output 0, row 7
//
// Rows are those of graph::rows_of(), ranges are in elements.
//
// Errors: what the executor and TruthEngine say: no device, no memory, inputs of less than a byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::runtime {
class Executor;
}

namespace warploom::verify {
class TruthEngine;

class RowTruth {
 public:
  static Result<std::unique_ptr<RowTruth>> open(Engine engine, const graph::Graph& graph);
  ~RowTruth();

  // `whole`: the bytes of the input, of which those within the range are taken.
  Status put(size_t input, const graph::ElementRange& range, graph::Bytes whole);
  Result<graph::ValueAndMagnitude> rows(int output, int64_t begin, int64_t end);

 private:
  RowTruth();

  std::unique_ptr<runtime::Executor> device_;
  std::unique_ptr<TruthEngine> engine_;
};
}  // namespace warploom::verify
