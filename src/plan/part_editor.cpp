#include "plan/part_editor.h"
#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/groups.h"
#include "plan/joins.h"
#include "plan/legality.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::OpClass;
using graph::TensorId;
using Nodes = Groups::Nodes;

tl::unexpected<BoundaryRefusal> refuse(BoundaryRule rule, std::string found) {
  return tl::unexpected(BoundaryRefusal{rule, std::move(found)});
}

// Computing it again costs no more than a few operations an element.
bool is_cheap(OpClass kind) {
  return graph::only_moves(kind) || kind == OpClass::pointwise;
}

Nodes united(const Nodes& one, const Nodes& other) {
  Nodes both = one;
  both.insert(other.begin(), other.end());
  return both;
}
}  // namespace

PartEditor::PartEditor(const Graph& graph, Legality& legality, const Nodes& in_place,
                       const std::set<std::string>& constants, std::vector<Part> parts)
    : graph_(graph),
      legality_(legality),
      in_place_(in_place),
      prepared_(graph.tensors.size(), false),
      maker_(graph.tensors.size(), -1),
      storer_(graph.tensors.size(), -1),
      parts_(std::move(parts)) {
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    prepared_[t] = graph.tensors[t].constant || constants.contains(graph.tensors[t].name);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    const auto is_prepared = [&](TensorId id) {
      return id == graph::kAbsent || prepared_[as_size(id)];
    };
    const size_t made = as_size(node.outputs[0]);
    maker_[made] = as_int(n);
    prepared_[made] = std::ranges::all_of(node.inputs, is_prepared);
  }
  number();
}

PartEditor::Checked PartEditor::check(const BoundaryChange& change) {
  const bool is_cut = change.kind == BoundaryKind::cut_region;
  return is_cut ? check_cut(change.tensor) : check_join(change.tensor, change.other);
}

// Whoever computed the tensor anew reads it then.
PartEditor::Checked PartEditor::check_cut(const std::string& tensor) {
  using enum BoundaryRule;
  const auto id = id_of(tensor);
  if (!id) return refuse(made_inside, "there is no tensor " + tensor);
  const int maker = maker_[as_size(*id)];
  if (maker < 0) return refuse(made_inside, tensor + " is an input or a constant");
  PartEdit edit;
  for (size_t place = 0; place < parts_.size(); ++place) {
    if (!parts_[place].nodes.contains(maker)) continue;
    const bool is_first = edit.gone.empty();
    auto halves = is_first ? split(place, *id) : without(place, *id);
    if (!halves) return halves;
    edit.gone.push_back(place);
    std::ranges::move(halves->made, std::back_inserter(edit.made));
  }
  if (edit.gone.empty()) return refuse(made_inside, "nobody needs " + tensor);
  if (auto refusal = uncovered(edit.made)) return tl::unexpected(*std::move(refusal));
  return edit;
}

// A part as the one that stores the tensor, with what else it stores of what that takes, and the
// rest.
PartEditor::Checked PartEditor::split(size_t place, TensorId id) const {
  using enum BoundaryRule;
  const Part& part = parts_[place];
  const std::string& name = graph_.tensor(id).name;
  if (is_in_place(part)) return refuse(in_place, name);
  const Nodes above = computing(part.nodes, {id}, {});
  std::vector<TensorId> stored = {id};
  std::vector<TensorId> rest;
  for (const TensorId one : part.stored) {
    const bool is_above = above.contains(maker_[as_size(one)]);
    if (!is_above) rest.push_back(one);
    if (is_above && one != id) stored.push_back(one);
  }
  if (rest.empty()) return refuse(made_inside, name + " is the last that its region makes");
  const Nodes below = computing(part.nodes, rest, stored);
  if (only_moves(above) || only_moves(below))
    return refuse(computes, "a region that only moves data, at " + name);
  for (const int n : above) {
    const graph::Node& node = graph_.nodes[as_size(n)];
    if (below.contains(n) && !is_cheap(graph::class_of(node.op)))
      return refuse(computed_once, graph::place_of(node));
  }
  return PartEdit{{place}, {part_of(above, stored), part_of(below, rest)}};
}

// A part that reads the tensor which it computed.
PartEditor::Checked PartEditor::without(size_t place, TensorId id) const {
  const Part& part = parts_[place];
  if (is_in_place(part)) return refuse(BoundaryRule::in_place, graph_.tensor(id).name);
  const Nodes below = computing(part.nodes, part.stored, {id});
  if (only_moves(below))
    return refuse(BoundaryRule::computes,
                  "a region that only moves data, at " + graph_.tensor(id).name);
  return PartEdit{{place}, {part_of(below, part.stored)}};
}

PartEditor::Checked PartEditor::check_join(const std::string& one, const std::string& other) {
  using enum BoundaryRule;
  const auto place = storer_of(one);
  const auto beside = storer_of(other);
  if (!place) return refuse(stored_here, "no region stores " + one);
  if (!beside) return refuse(stored_here, "no region stores " + other);
  if (*place == *beside) return refuse(two_regions, "one region stores " + one + " and " + other);
  const size_t first = std::min(*place, *beside);
  const size_t second = std::max(*place, *beside);
  if (auto refusal = refused_pair(first, second)) return tl::unexpected(*std::move(refusal));
  Part both = joined(first, second);
  if (auto refusal = refused_union(parts_[first], parts_[second], both))
    return tl::unexpected(*std::move(refusal));
  return PartEdit{{first, second}, {std::move(both)}};
}

// By how the two stand to each other and to the others.
std::optional<BoundaryRefusal> PartEditor::refused_pair(size_t first, size_t second) const {
  using enum BoundaryRule;
  const Part& one = parts_[first];
  const Part& other = parts_[second];
  const std::string& name = graph_.tensor(one.stored[0]).name;
  const std::string& last = graph_.tensor(other.stored[0]).name;
  if (is_in_place(one)) return BoundaryRefusal{in_place, name};
  if (is_in_place(other)) return BoundaryRefusal{in_place, last};
  if (only_moves(one.nodes) && only_moves(other.nodes)) return BoundaryRefusal{computes, name};
  const auto is_shared = [&](TensorId id) {
    return contains(one.stored, id) || contains(one.read, id);
  };
  if (std::ranges::none_of(other.read, is_shared))
    return BoundaryRefusal{adjacent, "nothing that both know"};
  if (is_prepared(one) != is_prepared(other)) return BoundaryRefusal{prepared_alike, name};
  if (is_way_round(first, second))
    return BoundaryRefusal{no_way_round, "a region between that reads " + name};
  return std::nullopt;
}

// By what families say of the union.
std::optional<BoundaryRefusal> PartEditor::refused_union(const Part& first, const Part& second,
                                                         const Part& both) {
  using enum BoundaryRule;
  const Region region = region_of(graph_, both.nodes, both.stored);
  const std::string& name = region.graph.name;
  const bool is_large = both.nodes.size() > kMostNodes || both.read.size() > kMostReads;
  if (is_large) return BoundaryRefusal{few_nodes, name};
  const bool was_backward =
      legality_.reads_backwards(first.nodes) || legality_.reads_backwards(second.nodes);
  if (!was_backward && legality_.reads_backwards(both.nodes))
    return BoundaryRefusal{weights_laid, name};
  const auto found = legality_.rank_of(region);
  if (!found) return BoundaryRefusal{covered, name};
  constexpr int kNone = std::numeric_limits<int>::max();
  int least = kNone;
  int most = 0;
  int of_products = kNone;
  for (const Part* part : {&first, &second}) {
    const int rank =
        legality_.rank_of(region_of(graph_, part->nodes, part->stored)).value_or(kNone);
    least = std::min(least, rank);
    most = std::max(most, rank);
    if (part->multiplies) of_products = std::min(of_products, rank);
  }
  const bool is_made = *found < kLastRank;
  const bool loses_product = both.multiplies && *found > of_products && !is_made;
  if (loses_product || (is_multiplied(first, second) && !is_made))
    return BoundaryRefusal{product_kept, name};
  if (*found > most) return BoundaryRefusal{suit_kept, name};
  return std::nullopt;
}

std::optional<BoundaryRefusal> PartEditor::uncovered(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const Region region = region_of(graph_, part.nodes, part.stored);
    if (!legality_.rank_of(region))
      return BoundaryRefusal{BoundaryRule::covered, region.graph.name};
  }
  return std::nullopt;
}

// What it stores is in the order in which joins have it: the largest first, then as it is made.
Part PartEditor::part_of(const Nodes& nodes, std::vector<TensorId> stored) const {
  const auto elements = [&](TensorId id) { return graph::element_count(graph_.tensor(id).shape); };
  std::ranges::sort(stored, {}, [&](TensorId id) { return maker_[as_size(id)]; });
  std::ranges::stable_sort(stored, std::greater{}, elements);
  Part part{{}, nodes, std::move(stored), inputs_of(graph_, nodes)};
  for (const TensorId id : part.stored)
    part.roots.insert(maker_[as_size(id)]);
  part.multiplies = std::ranges::any_of(nodes, [&](int n) {
    return graph::multiplies(graph::class_of(graph_.nodes[as_size(n)].op));
  });
  return part;
}

// It stores what others read, and outputs of the graph.
Part PartEditor::joined(size_t first, size_t second) const {
  std::vector<TensorId> stored;
  for (const size_t place : {first, second})
    for (const TensorId id : parts_[place].stored) {
      bool is_needed = contains(graph_.outputs, id);
      for (size_t reader = first + 1; reader < parts_.size() && !is_needed; ++reader)
        is_needed = reader != second && contains(parts_[reader].read, id);
      if (is_needed) stored.push_back(id);
    }
  return part_of(united(parts_[first].nodes, parts_[second].nodes), std::move(stored));
}

// Of some nodes those that take part in computing tensors, where others are known.
Nodes PartEditor::computing(const Nodes& within, const std::vector<TensorId>& wanted,
                            const std::vector<TensorId>& known) const {
  Nodes found;
  std::vector<TensorId> left = wanted;
  while (!left.empty()) {
    const TensorId id = left.back();
    left.pop_back();
    const int maker = id == graph::kAbsent ? -1 : maker_[as_size(id)];
    if (maker < 0 || contains(known, id) || !within.contains(maker)) continue;
    if (!found.insert(maker).second) continue;
    const auto& inputs = graph_.nodes[as_size(maker)].inputs;
    left.insert(left.end(), inputs.begin(), inputs.end());
  }
  return found;
}

std::optional<TensorId> PartEditor::id_of(const std::string& name) const {
  return graph_.tensor_named(name);
}

std::optional<size_t> PartEditor::storer_of(const std::string& name) const {
  const auto id = id_of(name);
  if (!id || storer_[as_size(*id)] < 0) return std::nullopt;
  return as_size(storer_[as_size(*id)]);
}

// Whether the second reads what is computed of the first by a part between.
bool PartEditor::is_way_round(size_t first, size_t second) const {
  std::vector<bool> reached(second - first, false);
  const auto reads_reached = [&](const Part& part) {
    return std::ranges::any_of(part.read, [&](TensorId id) {
      const int storer = storer_[as_size(id)];
      const bool is_between = storer > as_int(first) && storer < as_int(second);
      return is_between && reached[as_size(storer) - first];
    });
  };
  for (size_t place = first + 1; place < second; ++place) {
    const auto is_first = [&](TensorId id) { return storer_[as_size(id)] == as_int(first); };
    reached[place - first] =
        std::ranges::any_of(parts_[place].read, is_first) || reads_reached(parts_[place]);
  }
  return reads_reached(parts_[second]);
}

bool PartEditor::is_in_place(const Part& part) const {
  const auto is_there = [&](int n) { return in_place_.contains(n); };
  const auto is_empty = [&](TensorId id) {
    return graph::element_count(graph_.tensor(id).shape) == 0;
  };
  return std::ranges::any_of(part.nodes, is_there) || std::ranges::any_of(part.stored, is_empty);
}

bool PartEditor::is_prepared(const Part& part) const {
  return std::ranges::all_of(part.read, [&](TensorId id) { return prepared_[as_size(id)]; });
}

bool PartEditor::only_moves(const Nodes& nodes) const {
  return std::ranges::all_of(nodes, [&](int n) {
    return graph::only_moves(graph::class_of(graph_.nodes[as_size(n)].op));
  });
}

// Whether a product of the second takes what the first computes, each element many times.
bool PartEditor::is_multiplied(const Part& first, const Part& second) const {
  if (only_moves(first.nodes)) return false;
  return std::ranges::any_of(second.nodes, [&](int n) {
    const graph::Node& node = graph_.nodes[as_size(n)];
    if (!graph::multiplies(graph::class_of(node.op))) return false;
    std::vector<TensorId> read = node.inputs;
    for (const int before : computing(second.nodes, node.inputs, {})) {
      const auto& inputs = graph_.nodes[as_size(before)].inputs;
      read.insert(read.end(), inputs.begin(), inputs.end());
    }
    return std::ranges::any_of(read, [&](TensorId id) { return contains(first.stored, id); });
  });
}

// In an order in which they can run: the earliest place that is ready first.
void PartEditor::apply(const PartEdit& edit) {
  std::vector<Part> all;
  for (size_t place = 0; place < parts_.size(); ++place) {
    if (place == edit.gone.back()) all.insert(all.end(), edit.made.begin(), edit.made.end());
    if (!contains(edit.gone, place)) all.push_back(std::move(parts_[place]));
  }
  parts_ = std::move(all);
  number();
  std::vector<int> missing(parts_.size(), 0);  // parts that it reads and that are not placed yet
  std::vector<std::set<size_t>> readers(parts_.size());
  for (size_t place = 0; place < parts_.size(); ++place)
    for (const TensorId id : parts_[place].read) {
      const int storer = storer_[as_size(id)];
      if (storer >= 0 && readers[as_size(storer)].insert(place).second) ++missing[place];
    }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t place = 0; place < parts_.size(); ++place)
    if (missing[place] == 0) ready.push(place);
  std::vector<Part> order;
  while (!ready.empty()) {
    const size_t place = ready.top();
    ready.pop();
    order.push_back(std::move(parts_[place]));
    for (const size_t reader : readers[place])
      if (--missing[reader] == 0) ready.push(reader);
  }
  parts_ = std::move(order);
  number();
}

void PartEditor::number() {
  std::ranges::fill(storer_, -1);
  for (size_t place = 0; place < parts_.size(); ++place)
    for (const TensorId id : parts_[place].stored)
      storer_[as_size(id)] = as_int(place);
}
}  // namespace warploom::plan
