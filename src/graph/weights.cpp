#include "graph/weights.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
using nlohmann::json;

// Elements of a constant that steps may read: shapes, single numbers, small tables.
constexpr int64_t kMostRead = 1 << 16;
// Every step rounds what it makes when it is folded, and evaluation of all of them rounds nothing.
constexpr double kRoundings = 64;

class Maker {
 public:
  Maker(const Graph& open, const std::map<std::string, Tensor>& weights)
      : open_(open), weights_(weights), producers_(open.tensors.size(), -1) {
    for (size_t id = 0; id < open.tensors.size(); ++id)
      ids_.emplace(open.tensors[id].name, static_cast<TensorId>(id));
    for (size_t n = 0; n < open.nodes.size(); ++n)
      for (const TensorId id : open.nodes[n].outputs)
        if (id != kAbsent) producers_[id] = as_int(n);
  }

  Making run(std::span<const Tensor> held) {
    std::vector<bool> is_made(open_.tensors.size(), false);
    Making making;
    for (const Tensor& tensor : held) {
      const auto id = made_again(tensor);
      if (!id) continue;
      is_made[*id] = true;
      making.made.insert(tensor.name);
    }
    for (const TensorId id : behind(targets_, {}))
      collect(id, making.carried);
    std::set<std::string> past;
    for (const TensorId id : behind(open_.outputs, is_made))
      collect(id, past);
    for (const std::string& name : past)
      making.carried.erase(name);
    making.steps = steps_to(targets_);
    return making;
  }

 private:
  // The tensor of the open graph that has the held one's elements, if it is a weight or follows of
  // weights and constants.
  std::optional<TensorId> made_again(const Tensor& held) {
    const auto found = ids_.find(held.name);
    if (found == ids_.end()) return std::nullopt;
    const TensorId id = found->second;
    const Tensor& tensor = open_.tensor(id);
    if (tensor.dtype != held.dtype || tensor.shape != held.shape) return std::nullopt;
    if (tensor.constant) {  // it does not depend on weights
      if (tensor.constant != held.constant) return std::nullopt;
      return id;
    }
    if (const auto weight = weights_.find(held.name); weight != weights_.end()) {
      if (weight->second.constant != held.constant) return std::nullopt;
    } else if (!evaluates_to(id, held)) {
      return std::nullopt;
    }
    targets_.push_back(id);
    return id;
  }

  bool evaluates_to(TensorId id, const Tensor& held) const {
    if (producers_[id] < 0) return false;
    const Graph steps = steps_to({id});
    std::vector<Bytes> bytes;
    for (const TensorId input : steps.inputs) {
      const auto weight = weights_.find(steps.tensor(input).name);
      if (weight == weights_.end()) return false;
      bytes.emplace_back(*weight->second.constant);
    }
    const auto is_large = [&](TensorId input) {
      if (input == kAbsent || !steps.tensor(input).constant) return false;
      return element_count(steps.tensor(input).shape) > kMostRead;
    };
    for (const Node& node : steps.nodes)
      if (std::ranges::any_of(node.inputs, is_large)) return false;
    const auto values = evaluate(steps, bytes);
    if (!values) return false;
    double error = 0;
    double size = 0;
    for (size_t i = 0; i < (*values)[0].size(); ++i) {
      const double wanted = load_as_double(held.dtype, held.constant->data(), i);
      const double found = (*values)[0][i];
      if (wanted == found) continue;
      error += (found - wanted) * (found - wanted);
      size += wanted * wanted;
    }
    const double allowed = is_float(held.dtype) ? kRoundings * unit_roundoff(held.dtype) : 0;
    return error <= allowed * allowed * size;  // and not where one is NaN
  }

  // Everything that `ids` are made of, themselves among it; what is in front of a tensor of
  // `stops` is not looked at, nor is the tensor.
  std::set<TensorId> behind(const std::vector<TensorId>& ids,
                            const std::vector<bool>& stops) const {
    std::set<TensorId> seen;
    std::vector<TensorId> open(ids.begin(), ids.end());
    while (!open.empty()) {
      const TensorId id = open.back();
      open.pop_back();
      const bool stopped = id != kAbsent && !stops.empty() && stops[id];
      if (id == kAbsent || stopped || !seen.insert(id).second) continue;
      if (producers_[id] < 0 || open_.tensor(id).constant) continue;
      const Node& node = open_.nodes[producers_[id]];
      for (const TensorId input : node.inputs)
        open.push_back(input);
    }
    return seen;
  }

  void collect(TensorId id, std::set<std::string>& names) const {
    const std::string& name = open_.tensor(id).name;
    if (weights_.contains(name)) names.insert(name);
  }

  // What lies between weights and `ids`, those that are weights themselves left out.
  Graph steps_to(const std::vector<TensorId>& ids) const {
    const auto needed = behind(ids, {});
    Graph steps;
    std::map<TensorId, TensorId> renamed = {{kAbsent, kAbsent}};
    for (const TensorId id : needed) {
      renamed[id] = steps.add_tensor(open_.tensor(id));
      const bool is_input = producers_[id] < 0 && !open_.tensor(id).constant;
      if (is_input) steps.inputs.push_back(renamed[id]);
    }
    for (const TensorId id : ids)
      if (producers_[id] >= 0) steps.outputs.push_back(renamed.at(id));
    for (size_t n = 0; n < open_.nodes.size(); ++n) {
      Node node = open_.nodes[n];
      const TensorId made = node.outputs[0];
      const bool is_step = needed.contains(made) && !open_.tensor(made).constant;
      if (!is_step) continue;
      for (TensorId& id : node.inputs)
        id = renamed.at(id);
      for (TensorId& id : node.outputs) {
        const auto known = renamed.find(id);
        id = known == renamed.end() ? kAbsent : known->second;
      }
      steps.nodes.push_back(std::move(node));
    }
    return steps;
  }

  const Graph& open_;
  const std::map<std::string, Tensor>& weights_;
  std::vector<int> producers_;  // a node, or -1
  std::map<std::string, TensorId> ids_;
  std::vector<TensorId> targets_;  // held constants that weights make
};

json element_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}
}  // namespace

Making making_of(const Graph& open, const std::map<std::string, Tensor>& weights,
                 std::span<const Tensor> held) {
  return Maker(open, weights).run(held);
}

json to_json(const Making& making, const std::map<std::string, Tensor>& weights) {
  const auto of = [](const Tensor& tensor) {
    return json{{"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}};
  };
  json out;
  out["carried"] = json::array();
  out["steps"] = json::array();
  out["values"] = json::object();
  for (const std::string& name : making.carried) {
    json row = of(weights.at(name));
    row["name"] = name;
    out["carried"].push_back(std::move(row));
  }
  for (const Node& node : making.steps.nodes) {
    json row = of(making.steps.tensor(node.outputs[0]));
    row["op"] = name_of(node.op);
    row["output"] = making.steps.tensor(node.outputs[0]).name;
    row["inputs"] = json::array();
    for (const TensorId id : node.inputs) {
      if (id == kAbsent)
        row["inputs"].push_back(nullptr);
      else
        row["inputs"].push_back(making.steps.tensor(id).name);
    }
    row["attributes"] = json::object();
    for (const auto& [key, value] : node.attributes)
      std::visit([&](const auto& held) { row["attributes"][key] = held; }, value);
    out["steps"].push_back(std::move(row));
  }
  for (const Tensor& tensor : making.steps.tensors) {
    if (!tensor.constant) continue;
    json row = of(tensor);
    row["elements"] = json::array();
    for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
      const double element = load_as_double(tensor.dtype, tensor.constant->data(), i);
      row["elements"].push_back(element_json(element));
    }
    out["values"][tensor.name] = std::move(row);
  }
  return out;
}
}  // namespace warploom::graph
