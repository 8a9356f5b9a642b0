#include "vendor/make.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "vendor/match.h"
#include "vendor/plain.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
using graph::kAbsent;
using graph::Tensor;
using runtime::Bindings, runtime::Buffer, runtime::Executor, runtime::Runnable;

std::string Program::add_scratch(const std::string& like, int64_t bytes) {
  std::string name = fmt::format("{}@{}", like, scratch.size());
  scratch[name] = bytes;
  return name;
}

void Program::prepare_last(const std::string& buffer) {
  if (!constants.contains(buffer)) return;
  prepare.push_back(std::move(pieces.back()));
  pieces.pop_back();
}

tl::unexpected<Error> not_served(const std::string& library, std::string_view what) {
  return fail({ErrorCode::kNoSchedule, "the vendor library does not serve the problem", library,
               "a problem it serves", std::string(what), "the plain reference stands in"});
}

namespace {
using graph::Graph, graph::Node, graph::TensorId;

// The part of a graph that makes some of its tensors from others, as a graph of its own.
Graph part_of(const Graph& whole, const std::set<std::string>& given,
              const std::vector<std::string>& wanted) {
  Graph out;
  std::map<TensorId, TensorId> known = {{kAbsent, kAbsent}};
  const auto keep = [&](TensorId id) {
    if (!known.contains(id)) known[id] = out.add_tensor(whole.tensor(id));
    return known[id];
  };
  std::set<int> needed;
  std::vector<TensorId> asked;
  std::vector<TensorId> read;
  for (const std::string& name : wanted)
    asked.push_back(*whole.tensor_named(name));
  const std::vector<TensorId> outputs = asked;
  while (!asked.empty()) {
    const TensorId id = asked.back();
    asked.pop_back();
    const int maker = id == kAbsent ? -1 : whole.producer(id);
    const bool made_here = contains(outputs, id) && maker >= 0;
    if (!made_here && (maker < 0 || given.contains(whole.tensor(id).name))) {
      if (id != kAbsent && !whole.tensor(id).constant && !contains(read, id)) read.push_back(id);
      continue;
    }
    if (!needed.insert(maker).second) continue;
    for (const TensorId input : whole.nodes[maker].inputs)
      asked.push_back(input);
  }
  for (const TensorId id : read)
    out.inputs.push_back(keep(id));
  for (const int n : needed) {
    Node node = whole.nodes[n];
    for (TensorId& id : node.inputs)
      id = keep(id);
    for (TensorId& id : node.outputs)
      id = keep(id);
    out.nodes.push_back(std::move(node));
  }
  for (const TensorId id : outputs)
    out.outputs.push_back(keep(id));
  return out;
}

// The constants of a graph on the device.
Result<Bindings> constants_of(Executor& device, const Graph& graph) {
  Bindings out;
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.constant) continue;
    const auto bytes = as_int64(tensor.constant->size());
    WARPLOOM_TRY(out[tensor.name], device.allocate(bytes));
    WARPLOOM_CHECK(device.upload(out[tensor.name], tensor.constant->data(), bytes));
  }
  return out;
}

Result<Runnable> plain_runnable(Executor& device, const Graph& graph) {
  WARPLOOM_TRY(const Graph primitive, graph::decompose(graph));
  WARPLOOM_TRY(const LaunchList list, plain_list(primitive, device.engine(), device.info().arch));
  WARPLOOM_TRY(const runtime::Binary binary,
               runtime::compile(list, {.most_spills = runtime::kAnySpills}));
  WARPLOOM_TRY(const Runnable kernels, device.load(list, binary));
  WARPLOOM_TRY(const Bindings constants, constants_of(device, primitive));
  return Runnable{"plain", [kernels, constants](const Bindings& buffers) -> Result<runtime::Call> {
                    Bindings all = constants;
                    for (const auto& [name, buffer] : buffers)
                      all[name] = buffer;
                    return kernels.bind(all);
                  }};
}

// Steps given to libraries one by one.
class Assembly {
 public:
  Assembly(Executor& device, const VendorProblem& problem,
           std::vector<std::unique_ptr<Library>> libraries)
      : device_(device), problem_(problem), libraries_(std::move(libraries)) {
    std::erase(libraries_, nullptr);
    served_.resize(libraries_.size());
    for (const TensorId id : problem.graph.inputs)
      given_.insert(problem.graph.tensor(id).name);
    for (const Tensor& tensor : problem.graph.tensors)
      if (tensor.constant) given_.insert(tensor.name);
    program_.constants = problem.constants;
    for (const Tensor& tensor : problem.graph.tensors)
      if (tensor.constant) program_.constants.insert(tensor.name);
    outside_ = given_;
    for (const TensorId id : problem.graph.outputs)
      outside_.insert(problem.graph.tensor(id).name);
  }

  Result<Runnable> run() {
    WARPLOOM_CHECK(passed_on());
    for (size_t i = 0; i < problem_.steps.size(); ++i) {
      const Step& step = problem_.steps[i];
      // What plain kernels are still to make goes first.
      if (!std::holds_alternative<Unmatched>(step.operation)) WARPLOOM_CHECK(flush());
      if (by_library(step))
        given_.insert(destination(step.operation)->buffer);
      else
        plain_.push_back(i);
    }
    WARPLOOM_CHECK(flush());
    if (std::ranges::all_of(served_, &std::vector<Step>::empty))
      return not_served(listed(libraries_, &Library::name), "any step");
    return finished();
  }

 private:
  // A buffer for every tensor between steps.
  Status passed_on() {
    const auto add = [&](const std::string& name) {
      const auto id = problem_.graph.tensor_named(name);
      if (id && !outside_.contains(name))
        program_.scratch[name] = graph::byte_count(problem_.graph.tensor(*id));
    };
    for (const Step& step : problem_.steps) {
      if (const Place* to = destination(step.operation)) add(to->buffer);
      if (const auto* plain = std::get_if<Unmatched>(&step.operation))
        for (const std::string& name : plain->writes)
          add(name);
    }
    return ok();
  }

  bool by_library(const Step& step) {
    if (std::holds_alternative<Unmatched>(step.operation)) return false;
    for (size_t i = 0; i < libraries_.size(); ++i) {
      if (!added(i, step)) continue;
      served_[i].push_back(step);
      return true;
    }
    return false;
  }

  // By one library, or its beginning by that and its last operation by any.
  Status added(size_t library, const Step& step) {
    for (const Place* place : sources(step))
      for (size_t other = 0; other < libraries_.size(); ++other)
        if (other != library) WARPLOOM_CHECK(libraries_[other]->release(place->buffer, program_));
    const Status whole = libraries_[library]->add(step, program_);
    const bool simple = std::holds_alternative<Elementwise>(step.operation);
    if (whole || step.after.size() <= (simple ? 1u : 0u)) return whole;
    Step head = step;
    head.after.pop_back();
    WARPLOOM_CHECK(added(library, head));
    const Place& to = *destination(step.operation);
    const Step tail{Elementwise{to, to}, {step.after.back()}};
    for (size_t any = 0; any < libraries_.size(); ++any)
      if (added(any, tail)) return ok();
    return not_served(libraries_[library]->name(), "an operation after the step");
  }

  std::vector<std::string> written_by(const Step& step) const {
    if (const auto* plain = std::get_if<Unmatched>(&step.operation)) return plain->writes;
    return {destination(step.operation)->buffer};
  }

  // Plain kernels for the steps that wait, one graph for all; of what they write, what others read.
  Status flush() {
    if (plain_.empty()) return ok();
    std::vector<std::string> made;
    for (const size_t i : plain_)
      for (const std::string& name : written_by(problem_.steps[i]))
        if (!contains(made, name)) made.push_back(name);
    std::set<std::string> wanted(outside_.begin(), outside_.end());
    for (size_t i = plain_.back() + 1; i < problem_.steps.size(); ++i) {
      for (const Place* place : sources(problem_.steps[i]))
        wanted.insert(place->buffer);
      if (const auto* plain = std::get_if<Unmatched>(&problem_.steps[i].operation))
        wanted.insert(plain->reads.begin(), plain->reads.end());
    }
    std::erase_if(made, [&](const std::string& name) { return !wanted.contains(name); });
    plain_.clear();
    if (made.empty()) return ok();
    const Graph part = part_of(problem_.graph, given_, made);
    for (const TensorId id : part.inputs)
      for (const auto& library : libraries_)
        WARPLOOM_CHECK(library->release(part.tensor(id).name, program_));
    WARPLOOM_TRY(const Runnable runnable, plain_runnable(device_, part));
    program_.pieces.push_back(runnable.bind);
    has_plain_ = true;
    given_.insert(made.begin(), made.end());
    return ok();
  }

  Result<Runnable> finished() {
    WARPLOOM_TRY(Bindings constants, constants_of(device_, problem_.graph));
    std::vector<std::string> names;
    for (size_t i = 0; i < libraries_.size(); ++i) {
      if (served_[i].empty()) continue;
      const std::string library = libraries_[i]->name();
      names.push_back(fmt::format("{} ({})", library, words_of(served_[i])));
    }
    if (has_plain_) names.push_back("plain");
    const auto bind = [&device = device_, program = std::move(program_),
                       constants =
                           std::move(constants)](const Bindings& buffers) -> Result<runtime::Call> {
      Bindings all = constants;
      for (const auto& [name, bytes] : program.scratch)
        WARPLOOM_TRY(all[name], device.allocate(bytes));
      for (const auto& [name, buffer] : buffers)
        all[name] = buffer;
      for (const Piece& piece : program.prepare) {
        WARPLOOM_TRY(const runtime::Call prepare, piece(all));
        WARPLOOM_CHECK(prepare());
      }
      std::vector<runtime::Call> calls;
      for (const Piece& piece : program.pieces)
        WARPLOOM_TRY(calls.emplace_back(), piece(all));
      // Scratch lives as long as the call.
      return [all, run = runtime::in_order(std::move(calls))] { return run(); };
    };
    return Runnable{listed(names, {}, " + "), bind};
  }

  Executor& device_;
  const VendorProblem& problem_;
  std::vector<std::unique_ptr<Library>> libraries_;
  std::vector<std::vector<Step>> served_;  // by each library
  Program program_;
  std::set<std::string> given_;    // tensors that are there, row by row or with a library
  std::set<std::string> outside_;  // the problem's own
  std::vector<size_t> plain_;      // steps that no library serves, up to here
  bool has_plain_ = false;
};

using Libraries = std::vector<std::unique_ptr<Library>>;

Libraries libraries_of(Executor& device, const VendorProblem& problem, Track track, Layouts layouts,
                       bool blas) {
  Libraries out;
  if (device.engine() == Engine::cpu) {
    if (blas) out.push_back(openblas_library());
    out.push_back(dnnl_library(layouts, problem));
  } else {
    out.push_back(cublaslt_library(device));
    out.push_back(cudnn_library(device, layouts, track, problem));
  }
  return out;
}

template <class Kind> bool has(const VendorProblem& problem) {
  return std::ranges::any_of(
      problem.steps, [](const Step& step) { return std::holds_alternative<Kind>(step.operation); });
}
}  // namespace

std::vector<Candidate> candidates(Executor& device, const VendorProblem& problem, Track track) {
  std::vector<Candidate> out;
  const auto add_of = [&](const VendorProblem& steps, std::string words, Layouts layouts,
                          bool blas) {
    const auto make = [&device, problem = steps, track, layouts, blas]() -> Result<Runnable> {
      auto libraries = libraries_of(device, problem, track, layouts, blas);
      return Assembly(device, problem, std::move(libraries)).run();
    };
    out.push_back({std::move(words), false, make});
  };
  const auto add = [&](std::string words, Layouts layouts, bool blas) {
    add_of(problem, std::move(words), layouts, blas);
  };
  const bool cpu = device.engine() == Engine::cpu;
  const std::string library = cpu ? "oneDNN" : "cuBLASLt and cuDNN";
  const bool products = has<Matmul>(problem);
  const bool convolutions = has<Convolution>(problem) || has<Deconvolution>(problem);
  const bool windows = convolutions || has<Pooling>(problem);
  const bool nothing = std::ranges::all_of(problem.steps, [](const Step& step) {
    return std::holds_alternative<Unmatched>(step.operation) ||
           std::holds_alternative<Copy>(step.operation);
  });
  if (!nothing || (unmatched_of(problem) == 0 && !problem.steps.empty())) {
    if (windows || (cpu && products)) add(library + ", layouts of its own", Layouts::own, false);
    add(library + ", rows", Layouts::rows, false);
    // A function that a library lacks must not take the step before it along.
    const VendorProblem apart = match(problem.graph, track, Functions::apart);
    if (apart.steps.size() > problem.steps.size())
      add_of(apart, library + ", rows, functions apart", Layouts::rows, false);
    if (cpu && products) add("OpenBLAS and oneDNN", Layouts::rows, true);
  }
  const auto plain = [&device, graph = problem.graph] { return plain_runnable(device, graph); };
  out.push_back({"plain", true, plain});
  return out;
}

void open_libraries(Executor& device) {
  (void)cublaslt_library(device);
  (void)cudnn_library(device, Layouts::rows, Track::fp32, {});
}

std::string expected_reference(const VendorProblem& problem, Engine engine) {
  std::vector<Step> products;
  std::vector<Step> others;
  bool plain = problem.steps.empty();
  for (const Step& step : problem.steps) {
    if (std::holds_alternative<Unmatched>(step.operation))
      plain = true;
    else if (engine == Engine::cuda && std::holds_alternative<Matmul>(step.operation))
      products.push_back(step);
    else
      others.push_back(step);
  }
  std::vector<std::string> names;
  if (!products.empty()) names.push_back(fmt::format("cuBLASLt ({})", words_of(products)));
  const std::string_view library = engine == Engine::cuda ? "cuDNN" : "oneDNN";
  if (!others.empty()) names.push_back(fmt::format("{} ({})", library, words_of(others)));
  if (plain) names.push_back("plain");
  return listed(names, {}, " + ");
}
}  // namespace warploom::vendor
