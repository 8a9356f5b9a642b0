#include "vendor/plain.h"
#include <fmt/format.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "base/value_op.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "vendor/plain_stage.h"

namespace warploom::vendor {
namespace {
using graph::Graph, graph::TensorId;
using graph::kAbsent;
using graph::Node;
using loopnest::LoopNest, loopnest::Expr, loopnest::Kind, loopnest::at;

constexpr size_t kMostNodes = 40;                // of a graph that is read as a whole
constexpr int64_t kMostKept = int64_t{1} << 27;  // elements of what is kept if dear

// Computing it takes much longer than reading it.
bool is_dear(ValueOp op) {
  using enum ValueOp;
  constexpr std::array kDear = {exp, exp2, log, tanh, sin, cos, erf, sigmoid};
  return contains(kDear, op);
}

class Lister {
 public:
  Lister(const Graph& graph, Engine engine, const std::string& arch) : graph_(graph) {
    list_.engine = engine;
    list_.arch = arch;
    for (const TensorId id : graph.inputs)
      list_.inputs.push_back(spec_of(graph.tensor(id)));
    for (const TensorId id : graph.outputs)
      list_.outputs.push_back(spec_of(graph.tensor(id)));
  }

  Result<LaunchList> run() {
    std::vector<LoopNest> nests;
    if (graph_.nodes.size() <= kMostNodes) nests = loopnest::nests_of(graph_);
    if (nests.empty()) WARPLOOM_CHECK(node_by_node());
    for (const LoopNest& nest : nests)
      WARPLOOM_CHECK(add(nest));
    const bool cuda = list_.engine == Engine::cuda;
    std::string text = fmt::format("using Real = {};\n", wide_ ? "double" : "float");
    text += resource(cuda ? "plain/cuda.h" : "plain/cpu.h");
    text += resource("plain/values.h");
    text += body_;
    for (BufferSpec& workspace : list_.workspaces)
      if (contains(values_, workspace.name)) workspace.dtype = wide_ ? Dtype::f64 : Dtype::f32;
    for (Kernel& kernel : list_.kernels)
      kernel.source = text;
    return std::move(list_);
  }

 private:
  static BufferSpec spec_of(const graph::TensorInfo& tensor) {
    return {tensor.name, tensor.dtype, tensor.shape};
  }

  static tl::unexpected<Error> refused(std::string found) {
    return fail({ErrorCode::kNoSchedule, "there is no plain kernel for a part of the graph", "",
                 "operators that have loop nests, of types of whole bytes", std::move(found), ""});
  }

  Status node_by_node() {
    for (const Node& node : graph_.nodes) {
      Graph one;
      std::map<TensorId, TensorId> known = {{kAbsent, kAbsent}};
      const auto add_tensor = [&](TensorId id) {
        if (!known.contains(id)) known[id] = one.add_tensor(graph_.tensor(id));
        return known[id];
      };
      Node copy = node;
      for (TensorId& id : copy.inputs)
        id = add_tensor(id);
      for (const auto& [from, to] : known)
        if (to != kAbsent && !one.tensor(to).constant) one.inputs.push_back(to);
      for (TensorId& id : copy.outputs) {
        id = add_tensor(id);
        if (id != kAbsent) one.outputs.push_back(id);
      }
      one.nodes.push_back(std::move(copy));
      const auto nests = loopnest::nests_of(one);
      if (nests.empty()) return refused(std::string(graph::name_of(node.op)));
      for (const TensorId id : node.outputs) {
        if (id == kAbsent || contains(graph_.outputs, id)) continue;
        list_.workspaces.push_back(spec_of(graph_.tensor(id)));
      }
      for (const LoopNest& nest : nests)
        WARPLOOM_CHECK(add(nest));
    }
    return ok();
  }

  Status check_type(Dtype dtype, bool stored) {
    const bool narrow = bits_of(dtype) < 8;
    const bool small = dtype == Dtype::e4m3 || dtype == Dtype::e5m2;
    if (narrow || (stored && small)) return refused(std::string(name_of(dtype)));
    return ok();
  }

  // One kernel a value that is kept, then one an output.
  Status add(const LoopNest& nest) {
    const std::vector<std::string> none_yet(nest.values.size());
    Stages stages{nest, none_yet};
    for (const loopnest::Access& load : nest.loads)
      WARPLOOM_CHECK(check_type(load.dtype, false));
    for (const LoopNest::Output& output : nest.outputs) {
      WARPLOOM_CHECK(check_type(output.place.dtype, true));
      const Dtype dtype = output.place.dtype;
      const bool wide_integer = is_integer(dtype) && bits_of(dtype) > 8;
      wide_ = wide_ || dtype == Dtype::f64 || wide_integer;
    }
    const auto kept = kept_values(nest);
    for (size_t v = 0; v < nest.values.size(); ++v) {
      if (!kept[v]) continue;
      const std::string name = next_name();
      const std::string buffer = name + "_value";
      const auto id = as_int(v);
      const Shape shape = stages.shape_of(id);
      list_.workspaces.push_back({buffer, Dtype::f32, shape});
      values_.insert(buffer);
      const Stage stage{.value = id, .to = buffer};
      push(stages, stage, name);
      stages.kept[v] = buffer;
    }
    for (const LoopNest::Output& output : nest.outputs) {
      const std::string name = next_name();
      Stage stage{.value = output.value, .to = output.place.name};
      stage.place = &output.place;
      push(stages, stage, name);
    }
    return ok();
  }

  std::string next_name() const { return fmt::format("plain_{}", list_.kernels.size()); }

  // Reductions, scans, and what is dear and would be computed again within a reduction.
  static std::vector<bool> kept_values(const LoopNest& nest) {
    std::vector<bool> kept(nest.values.size());
    std::vector<bool> dear(nest.values.size());
    for (size_t v = 0; v < nest.values.size(); ++v) {
      const Expr& value = nest.values[v];
      kept[v] = value.kind == Kind::reduce || value.kind == Kind::scan;
      dear[v] = value.kind == Kind::apply && is_dear(value.op);
      if (kept[v]) keep_dear(nest, v, dear, kept);
      for (const int operand : value.operands) {
        const bool dear_within = dear[at(operand)] && !kept[at(operand)];
        if (dear_within && !kept[v]) dear[v] = true;
      }
    }
    return kept;
  }

  static void keep_dear(const LoopNest& nest, size_t reduction, const std::vector<bool>& dear,
                        std::vector<bool>& kept) {
    const Expr& whole = nest.values[reduction];
    auto loops = whole.varies;
    for (const size_t axis : whole.axes)
      loops[axis] = true;
    auto todo = whole.operands;
    while (!todo.empty()) {
      const size_t v = at(todo.back());
      todo.pop_back();
      if (kept[v] || !dear[v]) continue;
      int64_t count = 1;
      bool fewer = false;
      for (size_t axis = 0; axis < nest.axes.size(); ++axis) {
        const bool varies = nest.values[v].varies[axis];
        if (varies) count *= nest.axes[axis];
        fewer = fewer || (loops[axis] && !varies);
      }
      const auto& operands = nest.values[v].operands;
      if (fewer && count <= kMostKept)
        kept[v] = true;
      else
        todo.insert(todo.end(), operands.begin(), operands.end());
    }
  }

  void push(const Stages& stages, const Stage& stage, const std::string& name) {
    const bool cuda = list_.engine == Engine::cuda;
    const StageText made = cuda ? cuda_stage(stages, stage, name) : cpu_stage(stages, stage, name);
    body_ += made.text;
    Kernel kernel{.name = name, .threads = made.threads};
    kernel.grid = {made.blocks, 1, 1};
    for (const std::string& buffer : made.buffers) {
      kernel.args.push_back({.buffer = buffer});
      declare(buffer);
    }
    list_.kernels.push_back(std::move(kernel));
  }

  // A constant that is read comes as an input.
  void declare(const std::string& buffer) {
    for (const auto* known : {&list_.inputs, &list_.outputs, &list_.workspaces})
      if (contains(*known, buffer, &BufferSpec::name)) return;
    if (const auto id = graph_.tensor_named(buffer))
      list_.inputs.push_back(spec_of(graph_.tensor(*id)));
  }

  const Graph& graph_;
  LaunchList list_;
  std::string body_;
  std::set<std::string> values_;  // workspaces of type Real
  bool wide_ = false;             // Real is double
};
}  // namespace

Result<LaunchList> plain_list(const Graph& graph, Engine engine, const std::string& arch) {
  WARPLOOM_TRY(const Graph primitive, graph::decompose(graph));
  return Lister(primitive, engine, arch).run();
}
}  // namespace warploom::vendor
