#include "plan/fusion.h"
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "plan/groups.h"
#include "plan/joins.h"
#include "plan/limits.h"
#include "plan/part.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph, graph::Node, graph::OpClass, graph::TensorId;
using graph::OpKind;
using graph::Tensor;
using Nodes = Groups::Nodes;

// Families are not asked about regions of several nodes that are larger, or read more tensors.
constexpr size_t kMostNodes = 64;
constexpr size_t kMostReads = 32;
// Of so many parts of one tensor each is a place in its memory.
constexpr size_t kManyParts = 8;

// Whether groups may become one: what families say of the union, beside what they say of the parts.
class Legality {
 public:
  Legality(const Graph& graph, const Rank& rank, const Limits& limits, const LoopWorkOf& loop_work)
      : graph_(graph), rank_(rank), limits_(limits), loop_work_(loop_work) {}

  bool joins_any() const { return loop_work_ != nullptr; }

  // Whether products take in reductions, which are to be whole by then.
  void take_reductions_behind_products(bool take) { behind_products_ = take; }

  // The best family's rank of a region.
  std::optional<int> rank_of(const Region& region) {
    const auto [known, fresh] = ranks_.try_emplace(region.identity);
    if (fresh) known->second = rank_(region.graph);
    return known->second;
  }

  // Whether a family no worse than those of the parts covers the groups `from` and `into` together.
  // Arithmetic before a product is done once an element, unless a family for products does it.
  bool allows(const Groups& groups, const Nodes& from, int into) {
    if (limits_.ended() || limits_.late()) return false;  // nothing changes any more
    Nodes both = groups.nodes_of(into);
    for (const int root : from) {
      const Nodes& nodes = groups.nodes_of(root);
      both.insert(nodes.begin(), nodes.end());
    }
    if (both.size() > kMostNodes || inputs_of(graph_, both).size() > kMostReads) return false;
    if (is_kept_apart(groups, both)) return false;
    const auto found = rank_of(region_of(graph_, both, {groups.stored(into)}));
    return found && *found <= wanted_rank(groups, from, into, both);
  }

  // Whether two parts are better as one: a family no worse than those of either covers it, and its
  // loops do less than theirs together.
  bool gains(const Groups& groups, const Part& first, const Part& second, const Part& both) {
    if (limits_.ended() || limits_.late()) return false;
    if (both.nodes.size() > kMostNodes || both.read.size() > kMostReads) return false;
    if (is_kept_apart(groups, both.nodes)) return false;
    const Region one = region_of(graph_, first.nodes, first.stored);
    const Region other = region_of(graph_, second.nodes, second.stored);
    const Region all = region_of(graph_, both.nodes, both.stored);
    const auto does_one = work_of(one);
    const auto does_other = work_of(other);
    const auto does_all = work_of(all);
    if (!does_one || !does_other || !does_all) return false;
    const bool fewer = does_all->values < does_one->values + does_other->values &&
                       does_all->bytes < does_one->bytes + does_other->bytes;
    if (!fewer) return false;
    const auto wanted = std::min(rank_of(one), rank_of(other));
    const auto found = rank_of(all);
    return found && *found <= wanted;
  }

 private:
  std::optional<LoopWork> work_of(const Region& region) {
    const auto [known, fresh] = work_.try_emplace(region.identity);
    if (fresh) known->second = loop_work_(region.graph);
    return known->second;
  }

  // Unions that are refused whatever a family says.
  bool is_kept_apart(const Groups& groups, const Nodes& both) const {
    const bool convolves = groups.some_node_is(both, OpClass::convolution);
    const auto backward = [&](int n) { return reads_backwards(groups.node(n)); };
    if (convolves && std::ranges::any_of(both, backward)) return true;
    return !behind_products_ && groups.some_node_is(both, OpClass::contraction) &&
           groups.some_node_is(both, OpClass::reduction);
  }

  // Weights that lie backwards, those of transposed convolutions, are laid anew: few families take
  // them as they are.
  bool reads_backwards(const Node& node) const {
    if (node.op != OpKind::Slice || node.inputs.size() <= 4) return false;
    const auto steps = graph::constant_integers(graph_, node.inputs.back());
    return steps && std::ranges::min(*steps) < 0;
  }

  // The phases that a transposed convolution leaves are laid side by side by a family for products,
  // or by a program of their own.
  bool interleaves(const Groups& groups, int n) const {
    constexpr int64_t kFew = 8;
    if (groups.node(n).op != OpKind::Transpose) return false;
    const auto& shape = graph_.tensor(groups.stored(n)).shape;
    return shape.back() <= kFew;
  }

  int rank_of_group(const Groups& groups, int root) {
    const Region region = region_of(graph_, groups.nodes_of(root), {groups.stored(root)});
    return rank_of(region).value_or(std::numeric_limits<int>::max());
  }

  // The worst rank that a union's family may have.
  int wanted_rank(const Groups& groups, const Nodes& from, int into, const Nodes& both) {
    int wanted = rank_of_group(groups, into);
    for (const int root : from) {
      const Nodes& nodes = groups.nodes_of(root);
      const bool computes = !groups.every_node_is(nodes, {OpClass::view, OpClass::movement});
      const bool again = computes && groups.is_multiplied(root, groups.nodes_of(into));
      const int better = again ? kLastRank - 1 : 0;
      wanted = std::min(wanted, rank_of_group(groups, root) - better);
    }
    const auto lays_phases = [&](int n) { return interleaves(groups, n); };
    if (groups.some_node_is(both, OpClass::convolution) && std::ranges::any_of(both, lays_phases))
      wanted = std::min(wanted, 0);
    return wanted;
  }

  const Graph& graph_;
  const Rank& rank_;
  const Limits& limits_;
  const LoopWorkOf& loop_work_;
  bool behind_products_ = true;
  std::map<std::string, std::optional<int>> ranks_;      // by identity
  std::map<std::string, std::optional<LoopWork>> work_;  // by identity
};

// What can be done about a region that no family covers.
std::string remedy_for(const Graph& region) {
  const auto scans_integers = [&](const Node& node) {
    if (graph::class_of(node.op) != OpClass::scan) return false;
    return is_integer(region.tensor(node.outputs[0]).dtype);
  };
  if (std::ranges::any_of(region.nodes, scans_integers))
    return "cast to f32 before the CumSum and back behind it (exact below 2^24), or take the "
           "target "
           "cpu";
  return "take another target or track, or cast to a type of kernels before it";
}

tl::unexpected<Error> not_covered(const Region& region, const Node& root) {
  const auto has_no_elements = [](const Tensor& tensor) {
    return graph::element_count(tensor.shape) == 0;
  };
  const bool empty = std::ranges::any_of(region.graph.tensors, has_no_elements);
  Error error{ErrorCode::kNoSchedule};
  error.message = "no family of schedules covers a part of the graph on this target";
  error.place = graph::place_of(root);
  error.expected = empty ? "tensors of 1 element or more"
                         : "operators that families know, in types they compute";
  error.found = graph::to_text(region.graph);
  error.remedy = empty ? "leave out what has no elements" : remedy_for(region.graph);
  return fail(error);
}

// Whether a product makes a tensor, or what follows one of it.
bool is_made_by_product(const Graph& graph, TensorId id) {
  const int maker = id == graph::kAbsent ? -1 : graph.producer(id);
  if (maker < 0) return false;
  const Node& node = graph.nodes[as_size(maker)];
  switch (graph::class_of(node.op)) {
    case OpClass::contraction: return true;
    case OpClass::view:
    case OpClass::movement:
      return node.op != OpKind::Concat && is_made_by_product(graph, node.inputs[0]);
    case OpClass::pointwise:
      return std::ranges::any_of(node.inputs,
                                 [&](TensorId i) { return is_made_by_product(graph, i); });
    default: return false;
  }
}

// The nodes that join what constants alone make: their result is made once, and who reads it loads
// it as one tensor.
Nodes joins_of_constants(const Graph& graph) {
  std::set<TensorId> known = {graph::kAbsent};
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].constant) known.insert(static_cast<TensorId>(t));
  Nodes joins;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!std::ranges::all_of(node.inputs, [&](TensorId id) { return known.contains(id); }))
      continue;
    known.insert(node.outputs[0]);
    if (node.op == OpKind::Concat) joins.insert(as_int(n));
  }
  return joins;
}

// The next of those to be looked at again behind `last`, which then is not.
std::optional<int> next_open(const Groups& groups, Nodes& open, int last) {
  while (true) {
    const auto next = open.upper_bound(last);
    if (next == open.end()) return std::nullopt;
    const int root = *next;
    open.erase(next);
    if (groups.all().contains(root)) return root;
  }
}

class Fuser {
 public:
  Fuser(const Graph& graph, const Rank& rank, const Limits& limits,
        const std::set<std::string>& constants, const LoopWorkOf& loop_work)
      : graph_(graph),
        limits_(limits),
        constants_(constants),
        groups_(graph),
        legality_(graph, rank, limits, loop_work),
        joins_(joins_of_constants(graph)) {
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      ids_.emplace(graph.tensors[t].name, static_cast<TensorId>(t));
    find_places(constants);
    find_rows();
  }

  Result<Partition> run() {
    take_everything();
    for (const bool behind_products : {false, true}) {
      legality_.take_reductions_behind_products(behind_products);
      for (Nodes& open : open_)
        for (const auto& [root, nodes] : groups_.all())
          open.insert(root);
      while (pass(false) || take_together() || pass(true)) {}
    }
    return regions();
  }

 private:
  // What one family computes as a whole need not be found step by step.
  void take_everything() {
    if (groups_.all().empty()) return;
    Nodes others;
    for (const auto& [root, nodes] : groups_.all())
      others.insert(root);
    const int last = *others.rbegin();
    others.erase(last);
    if (graph_.outputs == std::vector{groups_.stored(last)}) take(others, {last});
  }

  // Makes `from` part of each of `takers`, if all of the unions are allowed.
  bool take(const Nodes& from, const Nodes& takers) {
    const auto allowed = [&](int taker) { return legality_.allows(groups_, from, taker); };
    const auto stays = [&](int root) { return stays_alone(root); };
    const auto joins = [&](int root) { return joins_.contains(root); };
    if (takers.empty() || std::ranges::any_of(takers, stays)) return false;
    if (std::ranges::any_of(from, joins)) return false;
    if (!std::ranges::all_of(takers, allowed)) return false;
    groups_.merge(from, takers);
    for (const int taker : takers)
      look_again(taker);
    return true;
  }

  // At what a change of a group may allow: of itself, of what reads it, of what it reads, and of
  // what alone reads that.
  void look_again(int root) {
    const auto open = [&](int one) {
      for (Nodes& each : open_)
        each.insert(one);
    };
    open(root);
    for (const int reader : groups_.readers_of(root))
      open(reader);
    for (const int source : groups_.read_by(root)) {
      open(source);
      if (const auto only = groups_.only_reader_of(source)) open(*only);
    }
  }

  // Takes in what can be, groups of views alone or the others; whether anything was. A result that
  // is stored anyway, as an output or for a reader that cannot compute it, is computed once.
  bool pass(bool views) {
    bool changed = false;
    Nodes& open = open_[views ? kViews : kOthers];
    for (auto root = next_open(groups_, open, -1); root; root = next_open(groups_, open, *root)) {
      if (groups_.is_output(*root) || stays_alone(*root)) continue;
      if (groups_.every_node_is(groups_.nodes_of(*root), {OpClass::view}) != views) continue;
      const Nodes readers = groups_.readers_of(*root);
      if (readers.size() == 1 || groups_.is_free(*root)) changed |= take({*root}, readers);
    }
    return changed;
  }

  // All that a group alone reads, at once: two operands may make sense only together.
  bool take_together() {
    Nodes& open = open_[kTogether];
    for (auto into = next_open(groups_, open, -1); into; into = next_open(groups_, open, *into)) {
      Nodes from = groups_.read_by_alone(*into);
      std::erase_if(from, [&](int root) { return stays_alone(root); });
      if (from.size() > 1 && take(from, {*into})) return true;
    }
    return false;
  }

  // The groups, those joined that gain by it.
  std::vector<Part> parts() {
    Nodes alone;
    for (const auto& [root, nodes] : groups_.all()) {
      const bool is_empty = graph::element_count(graph_.tensor(groups_.stored(root)).shape) == 0;
      if (is_empty || stays_alone(root) || groups_.every_node_is(nodes, {OpClass::view}))
        alone.insert(root);
    }
    Joins joins(graph_, groups_, alone, constants_);
    const auto gains = [&](const Part& first, const Part& second, const Part& both) {
      return legality_.gains(groups_, first, second, both);
    };
    if (legality_.joins_any()) joins.run(gains);
    return joins.parts();
  }

  Result<Partition> regions() {
    const auto ranges = graph::ranges_of(graph_);
    Partition out;
    for (const Tensor& tensor : graph_.tensors)
      out.storage[tensor.name] = tensor.name;
    for (const Part& part : parts()) {
      WARPLOOM_CHECK(limits_.check());
      const int root = *part.roots.rbegin();
      if (graph::element_count(graph_.tensor(part.stored[0]).shape) == 0)
        continue;  // nothing to do
      Region region = region_of(graph_, part.nodes, part.stored);
      region.alias = part.roots.size() == 1 && is_alias(region, root, out);
      if (!region.alias && !legality_.rank_of(region))
        return not_covered(region, groups_.node(root));
      add_ranges(region, ranges);
      out.regions.push_back(std::move(region));
    }
    WARPLOOM_CHECK(limits_.check());
    if (out.regions.empty())
      return fail({ErrorCode::kNoSchedule, "there is nothing to compute", graph_.name,
                   "an output of 1 element or more", "outputs without elements",
                   "leave the model out: its outputs are empty whatever its inputs are"});
    return out;
  }

  // Views of something stored are that, and parts of it that lie in one piece; those that are
  // outputs give their memory to what they view, where it has none of its own.
  bool is_alias(const Region& region, int root, Partition& out) const {
    if (region.graph.inputs.empty()) return false;
    if (rows_.contains(root)) return lies_in_rows(root, out);
    const auto place = places_.find(root);
    const bool is_view = groups_.every_node_is(groups_.nodes_of(root), {OpClass::view});
    if (!is_view && place == places_.end()) return false;
    const std::string& viewed = region.tensors[region.graph.inputs[0]];
    const std::string from = out.storage.at(viewed);
    const TensorId source = ids_.at(from);
    const std::string& name = graph_.tensor(groups_.stored(root)).name;
    const auto within = out.offsets.find(viewed);
    if (!groups_.is_output(root)) {
      const int64_t begin = within == out.offsets.end() ? 0 : within->second;
      const int64_t bytes = begin + (is_view ? 0 : place->second);
      if (bytes != 0) out.offsets[name] = bytes;
      out.storage[name] = from;
      return true;
    }
    if (within != out.offsets.end()) return false;
    if (!groups_.is_made(source) || contains(graph_.outputs, source)) return false;
    for (auto& [tensor, memory] : out.storage)
      if (memory == from) memory = name;
    return true;
  }

  // What many tensors are joined to is their memory, each part where it lies: nothing is copied.
  // Those that are something else as well, or whose memory is another's, are copied.
  bool lies_in_rows(int root, Partition& out) const {
    const Node& node = groups_.node(root);
    const std::string& name = graph_.tensor(groups_.stored(root)).name;
    std::map<std::string, int64_t> begins;
    int64_t end = 0;
    for (const TensorId id : node.inputs) {
      const std::string& part = graph_.tensor(id).name;
      const bool own = out.storage.at(part) == part;
      const bool is_free = own && groups_.is_made(id) && !contains(graph_.outputs, id);
      if (!is_free || !begins.emplace(part, end).second) return false;
      end += graph::byte_count(graph_.tensor(id));
    }
    for (auto& [tensor, memory] : out.storage) {
      const auto begin = begins.find(memory);
      if (begin == begins.end()) continue;
      out.offsets[tensor] += begin->second;
      memory = name;
    }
    return true;
  }

  bool stays_alone(int root) const { return places_.contains(root) || rows_.contains(root); }

  // Parts of what a node makes, or of an input, that lie in one piece of its memory, as the steps
  // of a sequence do: where there are many, they are left where they are, and what reads them is
  // the same for each. So are the parts that all of a product is (graph/stack_products.h).
  void find_places(const std::set<std::string>& constants) {
    std::map<TensorId, std::map<int, int64_t>> parts;  // bytes, by nodes, by what they are of
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!only_moves(graph::class_of(node.op)) || groups_.is_output(as_int(n))) continue;
      const TensorId of = node.inputs[0];
      const Tensor& whole = graph_.tensor(of);
      if (whole.constant || constants.contains(whole.name)) continue;
      if (const auto begin = begin_of_part(graph_, node)) parts[of][as_int(n)] = *begin;
    }
    for (const auto& [of, nodes] : parts)
      if (nodes.size() >= kManyParts || are_all_of_a_product(of, nodes))
        places_.insert(nodes.begin(), nodes.end());
  }

  // Whether parts of equal size are all that is read of what a product makes, and nobody reads
  // more.
  bool are_all_of_a_product(TensorId of, const std::map<int, int64_t>& parts) const {
    int64_t bytes = 0;
    for (const auto& [n, begin] : parts)
      bytes += graph::byte_count(graph_.tensor(groups_.stored(n)));
    const bool whole = bytes == graph::byte_count(graph_.tensor(of));
    const bool read_apart = graph_.consumers(of).size() == parts.size();
    return whole && read_apart && parts.size() > 1 && !contains(graph_.outputs, of) &&
           is_made_by_product(graph_, of);
  }

  // Many tensors joined, each in one piece; and what such are joined to.
  void find_rows() {
    std::set<TensorId> made;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.op != OpKind::Concat || !lies_in_pieces(graph_, node)) continue;
      const auto is_row = [&](TensorId id) { return made.contains(id); };
      const bool many = node.inputs.size() >= kManyParts;
      if (!many && std::ranges::none_of(node.inputs, is_row)) continue;
      rows_.insert(as_int(n));
      made.insert(node.outputs[0]);
    }
  }

  const Graph& graph_;
  const Limits& limits_;
  const std::set<std::string>& constants_;
  Groups groups_;
  Legality legality_;
  std::map<std::string, TensorId> ids_;  // by name
  std::map<int, int64_t> places_;        // nodes whose results stay where they are, by their roots

  // Groups to be looked at, by each of the ways to take something in.
  enum Way { kViews, kOthers, kTogether };

  std::array<Nodes, 3> open_;
  std::set<int> rows_;  // those whose inputs may be made in their place
  Nodes joins_;         // those that join constants
};
}  // namespace

bool Partition::trivial(const Graph& whole) const {
  if (regions.size() != 1 || regions[0].alias || whole.outputs.size() != 1) return false;
  const int tensors = as_int(whole.tensors.size());
  const auto holds = [&](TensorId id) { return is_weight(whole, id); };
  return std::ranges::none_of(std::views::iota(0, tensors), holds);
}

Result<Partition> partition(const Graph& graph, const Rank& rank, const Limits& limits,
                            const std::set<std::string>& constants, const LoopWorkOf& loop_work) {
  return Fuser(graph, rank, limits, constants, loop_work).run();
}
}  // namespace warploom::plan
