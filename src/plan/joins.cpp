#include "plan/joins.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "graph/graph.h"
#include "plan/groups.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::OpClass;
using graph::TensorId;

// No further apart in the order are the two that are joined: ways between them are looked for
// there.
constexpr size_t kFarthest = 256;
// Of all that the two move, what they share is so large a part at the least: less is saved than
// another form of the loops may cost.
constexpr int64_t kLeastShare = 64;
// So many of those that share most with a part are asked about.
constexpr size_t kMostAsked = 8;
}  // namespace

Joins::Joins(const graph::Graph& graph, const Groups& groups, const Groups::Nodes& alone,
             const std::set<std::string>& constants)
    : graph_(graph),
      groups_(groups),
      alone_(alone),
      place_(graph.nodes.size(), 0),
      maker_(graph.tensors.size(), -1),
      users_(graph.tensors.size()) {
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    if (tensor.constant || constants.contains(tensor.name))
      prepared_.insert(static_cast<TensorId>(t));
  }
  for (const auto& [root, nodes] : groups.all()) {
    Part part{{root}, nodes, {groups.stored(root)}, inputs_of(graph, nodes)};
    part.multiplies = groups.some_node_is(nodes, OpClass::contraction) ||
                      groups.some_node_is(nodes, OpClass::convolution);
    maker_[as_size(part.stored[0])] = root;
    for (const TensorId id : part.read)
      users_[as_size(id)].push_back(root);
    if (is_prepared(part)) prepared_.insert(part.stored[0]);
    order_.push_back(std::move(part));
  }
  number(0, order_.size());
}

void Joins::run(const Gain& gains) {
  size_t first = 0;
  while (first < order_.size())
    if (!join_at(first, gains)) ++first;
}

// Joins the part at a place to one behind it; whether it did.
bool Joins::join_at(size_t first, const Gain& gains) {
  for (const Candidate& candidate : candidates(first)) {
    const Part& one = order_[first];
    const Part& other = order_[candidate.place];
    const auto reached = reached_between(first, candidate.place);
    if (reads_any(other, first, reached)) continue;
    Part both = joined(one, other);
    if (!gains(one, other, both)) continue;
    replace(first, candidate.place, std::move(both));
    return true;
  }
  return false;
}

// Those behind a part that read what it stores or reads, and enough of that.
std::vector<Joins::Candidate> Joins::candidates(size_t first) const {
  const Part& part = order_[first];
  const auto stays = [&](const Part& each) {
    return std::ranges::any_of(each.roots, [&](int root) { return alone_.contains(root); });
  };
  if (stays(part)) return {};
  std::map<size_t, int64_t> shared;  // bytes, by place
  const auto share = [&](const std::vector<TensorId>& tensors) {
    for (const TensorId id : tensors)
      for (const size_t place : next_users(id, first))
        shared[place] += graph::byte_count(graph_.tensor(id));
  };
  share(part.stored);
  share(part.read);
  const int64_t own = bytes_of(part.stored) + bytes_of(part.read);
  std::vector<Candidate> found;
  for (const auto& [place, bytes] : shared) {
    const Part& other = order_[place];
    const int64_t all = own + bytes_of(other.stored) + bytes_of(other.read);
    const bool matters = bytes * kLeastShare >= all;
    // No family computes two products in one loop nest.
    const bool one_product = !part.multiplies || !other.multiplies;
    if (matters && one_product && !stays(other) && is_prepared(part) == is_prepared(other))
      found.push_back({place, bytes});
  }
  std::ranges::stable_sort(found, std::greater{}, &Candidate::shared);
  found.resize(std::min(found.size(), kMostAsked));
  return found;
}

// Of those behind a place that read a tensor the next few.
std::set<size_t> Joins::next_users(TensorId id, size_t first) const {
  const auto& users = users_[as_size(id)];
  std::set<size_t> places;
  auto user = std::ranges::upper_bound(users, *order_[first].roots.begin());
  for (; user != users.end() && places.size() < kMostAsked; ++user) {
    const size_t place = place_[as_size(*user)];
    if (place > first && place - first <= kFarthest) places.insert(place);
    if (place > first + kFarthest) break;
  }
  return places;
}

// Of the parts between two places, those that depend on the first, by their distance from it.
std::vector<bool> Joins::reached_between(size_t first, size_t second) const {
  std::vector<bool> reached(second - first, false);
  for (size_t place = first + 1; place < second; ++place) {
    const Part& part = order_[place];
    const auto is_made_there = [&](TensorId id) { return place_of(id) == first; };
    reached[place - first] =
        std::ranges::any_of(part.read, is_made_there) || reads_any(part, first, reached);
  }
  return reached;
}

// Whether a part reads what one of the reached makes.
bool Joins::reads_any(const Part& part, size_t first, const std::vector<bool>& reached) const {
  return std::ranges::any_of(part.read, [&](TensorId id) {
    const auto place = place_of(id);
    return place && *place > first && *place - first < reached.size() && reached[*place - first];
  });
}

// Where a tensor is made; nothing of inputs and constants.
std::optional<size_t> Joins::place_of(TensorId id) const {
  const int root = maker_[as_size(id)];
  return root < 0 ? std::nullopt : std::optional(place_[as_size(root)]);
}

// What it stores is what others read, and outputs of the graph.
Part Joins::joined(const Part& a, const Part& b) const {
  Part both{a.roots, a.nodes, {}, {}};
  both.multiplies = a.multiplies || b.multiplies;
  both.roots.insert(b.roots.begin(), b.roots.end());
  both.nodes.insert(b.nodes.begin(), b.nodes.end());
  both.read = inputs_of(graph_, both.nodes);
  const auto leaves = [&](int reader) { return !both.roots.contains(reader); };
  for (const int root : both.roots)
    if (groups_.is_output(root) || std::ranges::any_of(groups_.readers_of(root), leaves))
      both.stored.push_back(groups_.stored(root));
  const auto elements = [&](TensorId id) { return graph::element_count(graph_.tensor(id).shape); };
  std::ranges::stable_sort(both.stored, std::greater{}, elements);
  return both;
}

// What depends on the first of the two and stands between them goes behind the union.
void Joins::replace(size_t first, size_t second, Part both) {
  const auto reached = reached_between(first, second);
  std::vector<Part> before;
  std::vector<Part> behind;
  for (size_t place = first + 1; place < second; ++place)
    (reached[place - first] ? behind : before).push_back(std::move(order_[place]));
  size_t place = first;
  for (Part& part : before)
    order_[place++] = std::move(part);
  order_[place++] = std::move(both);
  for (Part& part : behind)
    order_[place++] = std::move(part);
  order_.erase(order_.begin() + as_int64(place));
  number(first, order_.size());
}

void Joins::number(size_t from, size_t end) {
  for (size_t place = from; place < end; ++place)
    for (const int root : order_[place].roots)
      place_[as_size(root)] = place;
}

bool Joins::is_prepared(const Part& part) const {
  return std::ranges::all_of(part.read, [&](TensorId id) { return prepared_.contains(id); });
}

int64_t Joins::bytes_of(const std::vector<TensorId>& tensors) const {
  int64_t bytes = 0;
  for (const TensorId id : tensors)
    bytes += graph::byte_count(graph_.tensor(id));
  return bytes;
}
}  // namespace warploom::plan
