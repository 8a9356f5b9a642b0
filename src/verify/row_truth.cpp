#include "verify/row_truth.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "runtime/executor.h"
#include "verify/truth_engine.h"

namespace warploom::verify {
namespace {
constexpr int kSet = 0;
}  // namespace

RowTruth::RowTruth() = default;
RowTruth::~RowTruth() = default;

Result<std::unique_ptr<RowTruth>> RowTruth::open(Engine engine, const graph::Graph& graph) {
  auto made = std::unique_ptr<RowTruth>(new RowTruth);
  WARPLOOM_TRY(made->device_, runtime::Executor::open(engine));
  // The track sets tolerances, which nobody asks for here.
  WARPLOOM_TRY(made->engine_, TruthEngine::make(*made->device_, graph, Track::fp32));
  WARPLOOM_CHECK(made->engine_->make_room(kSet));
  return made;
}

Status RowTruth::put(size_t input, const graph::ElementRange& range, graph::Bytes whole) {
  return engine_->put(kSet, input, range, whole);
}

Result<graph::ValueAndMagnitude> RowTruth::rows(int output, int64_t begin, int64_t end) {
  return engine_->truth(kSet, output, begin, end);
}
}  // namespace warploom::verify
