// Where truth comes from: the GPU, by a process of its own, or this machine's cores.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "runtime/executor.h"
#include "vendor/make.h"
#include "verify/device_truth.h"
#include "verify/gpu_products.h"
#include "verify/judge.h"
#include "verify/judge_parts.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"
#include "verify/truth_engine.h"

namespace warploom::verify {
namespace {
bool is_truth_of_cores() {
  const char* const wanted = std::getenv("WARPLOOM_TRUTH");
  return wanted && std::string_view(wanted) == "cpu";
}
}  // namespace

Ahead open_ahead() {
  Ahead ahead;
  if (auto launched = DeviceTruth::launch(); launched && !is_truth_of_cores())
    ahead.truth = *std::move(launched);
  auto device = runtime::Executor::open(Engine::cuda);
  if (!device) return ahead;
  ahead.device = *std::move(device);
  vendor::open_libraries(*ahead.device);
  return ahead;
}

// Before the device: its context takes as long to make as ours.
void Judge::launch_truth() {
  if (setup_.engine != Engine::cuda) return;
  if (is_truth_of_cores()) return give_up_truth({ErrorCode::kInternal, "WARPLOOM_TRUTH=cpu"});
  truth_ = std::move(ahead_.truth);
  if (truth_) return;
  if (auto launched = DeviceTruth::launch())
    truth_ = *std::move(launched);
  else
    give_up_truth(launched.error());
}

void Judge::start_truth() {
  if (truth_) truth_->give(setup_, *device_);
}

void Judge::await_truth() {
  if (!truth_) return;
  truth_by_ = "the GPU";
  if (const Status ready = truth_->await(); !ready) give_up_truth(ready.error());
}

// What it holds is forgotten: sets of inputs are drawn anew, and evaluated here.
void Judge::give_up_truth(const Error& why) {
  truth_.reset();
  truth_lost_.reset();
  truth_by_ = "CPU cores: " + why.message;
  if (!why.found.empty()) truth_by_ += " (" + why.found + ")";
  kept_.clear();
  ring_.clear();
  fresh_.reset();
  const auto multiplies = [](const graph::Node& node) {
    return graph::multiplies(class_of(node.op));
  };
  if (std::ranges::any_of(setup_.graph.nodes, multiplies)) truth_options_.products = gpu_products();
}

std::vector<Looked> Judge::looked(const Tensors& tensors) {
  std::vector<Looked> all;
  for (const Guarded& tensor : tensors)
    all.push_back({tensor.whole, tensor.data});
  return all;
}

// Inputs on the GPU, where their buffers are made; constants come from here.
Status Judge::draw(Inputs& made, uint64_t seed) {
  const size_t inputs = setup_.graph.inputs.size();
  for (size_t i = inputs; i < given_.size(); ++i) {
    const auto& constant = *setup_.graph.tensor(given_[i]).constant;
    WARPLOOM_CHECK(device_->upload(made.tensors[i].data, constant.data(), std::ssize(constant)));
  }
  if (made.set < 0) made.set = sets_++;
  std::vector<Looked> to = looked(made.tensors);
  to.resize(inputs);
  const Status drawn = truth_->draw(made.set, made.family, seed, to);
  // For want of memory others may do.
  if (!drawn && drawn.error().code != ErrorCode::kOutOfMemory) truth_lost_ = drawn.error();
  return drawn;
}

Status Judge::make_truth(Inputs& made, uint64_t seed, double budget_ms) {
  if (is_on_gpu(made)) {
    made.truth_ms = budget_ms;
    WARPLOOM_TRY(made.rows_known, told(truth_->prepare(made.set, budget_ms / 1e3)));
    return ok();
  }
  WARPLOOM_TRY(made.truth, sample_truth(setup_.graph, made.bytes, seed, setup_.flops, budget_ms,
                                        options_for(made.family)));
  return ok();
}

Status Judge::compare_outputs(std::vector<Comparison>& seen, const Tensors& outputs,
                              const Inputs& inputs, std::span<const Block> blocks,
                              const CompareScope& scope) {
  if (!is_on_gpu(inputs)) return compare_blocks(seen, outputs, blocks, inputs.family);
  WARPLOOM_TRY(seen, told(truth_->compare(inputs.set, looked(outputs), scope)));
  return ok();
}
}  // namespace warploom::verify
