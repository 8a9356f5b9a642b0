#include "plan/fusion.h"
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
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
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/boundary_options.h"
#include "plan/groups.h"
#include "plan/joins.h"
#include "plan/legality.h"
#include "plan/limits.h"
#include "plan/part.h"
#include "plan/part_editor.h"
#include "plan/prepare.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph, graph::Node, graph::OpClass, graph::TensorId;
using graph::OpKind;
using graph::Tensor;
using Nodes = Groups::Nodes;

// Of so many parts of one tensor each is a place in its memory.
constexpr size_t kManyParts = 8;

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

tl::unexpected<Error> nothing_to_compute(const Graph& graph) {
  return fail({ErrorCode::kNoSchedule, "there is nothing to compute", graph.name,
               "an output of 1 element or more", "outputs without elements",
               "leave the model out: its outputs are empty whatever its inputs are"});
}

Nodes nodes_in(const Region& region) {
  return {region.nodes.begin(), region.nodes.end()};
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
    find_places(constants);
    find_rows();
  }

  // The parts that fusion makes.
  std::vector<Part> fused() {
    take_everything();
    for (const bool behind_products : {false, true}) {
      legality_.take_reductions_behind_products(behind_products);
      for (Nodes& open : open_)
        for (const auto& [root, nodes] : groups_.all())
          open.insert(root);
      while (pass(false) || take_together() || pass(true)) {}
    }
    return joined_parts();
  }

  Result<Partition> regions(const std::vector<Part>& parts) {
    const auto ranges = graph::ranges_of(graph_);
    Partition out;
    for (const Tensor& tensor : graph_.tensors)
      out.storage[tensor.name] = tensor.name;
    for (const Part& part : parts) {
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
    if (out.regions.empty()) return nothing_to_compute(graph_);
    return out;
  }

  PartEditor editor(const std::vector<Part>& parts) {
    Nodes in_place = rows_;
    std::ranges::copy(std::views::keys(places_), std::inserter(in_place, in_place.end()));
    return {graph_, legality_, in_place, constants_, parts};
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
    if (takers.empty() || std::ranges::any_of(takers, stays)) return false;
    if (std::ranges::any_of(from, [&](int root) { return joins_.contains(root); })) return false;
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
  std::vector<Part> joined_parts() {
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

  // Views of something stored are that, and parts of it that lie in one piece; those that are
  // outputs give their memory to what they view, where it has none of its own.
  bool is_alias(const Region& region, int root, Partition& out) const {
    if (region.graph.inputs.empty()) return false;
    if (rows_.contains(root)) return lies_in_rows(root, out);
    const auto place = places_.find(root);
    const bool is_view = groups_.every_node_is(nodes_in(region), {OpClass::view});
    if (!is_view && place == places_.end()) return false;
    const std::string& viewed = region.tensors[region.graph.inputs[0]];
    const std::string from = out.storage.at(viewed);
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
    const TensorId source = *graph_.tensor_named(from);
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
  const Limits limits_;
  const std::set<std::string> constants_;
  Groups groups_;
  Legality legality_;
  std::map<int, int64_t> places_;  // nodes whose results stay where they are, by their roots

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
  Fuser fuser(graph, rank, limits, constants, loop_work);
  return fuser.regions(fuser.fused());
}

// What fusion made of a graph, from which every change starts.
class Boundaries::Fused {
 public:
  Fused(const Graph& graph, const Rank& rank, const Limits& limits,
        const std::set<std::string>& constants, const LoopWorkOf& loop_work)
      : graph_(graph),
        constants_(constants),
        fuser_(graph, rank, limits, constants, loop_work),
        parts_(fuser_.fused()) {}

  Result<PartEditor> edited(const BoundaryChanges& changes) {
    PartEditor editor = fuser_.editor(parts_);
    for (const BoundaryChange& change : changes) {
      const auto edit = editor.check(change);
      if (!edit) return fail(error_of(change, edit.error()));
      editor.apply(*edit);
    }
    return editor;
  }

  Result<Partition> regions(const PartEditor& editor, const BoundaryChanges& changes) {
    WARPLOOM_TRY(Partition out, fuser_.regions(editor.parts()));
    mark_constants(out, graph_, constants_);
    out.changes = changes;
    return out;
  }

  const Graph& graph() const { return graph_; }

 private:
  const Graph& graph_;
  const std::set<std::string> constants_;
  Fuser fuser_;
  const std::vector<Part> parts_;
};

Boundaries::Boundaries(const Graph& graph, const Rank& rank, const Limits& limits,
                       const std::set<std::string>& constants, const LoopWorkOf& loop_work)
    : fused_(std::make_unique<Fused>(graph, rank, limits, constants, loop_work)) {}

Boundaries::Boundaries(Boundaries&&) noexcept = default;
Boundaries& Boundaries::operator=(Boundaries&&) noexcept = default;
Boundaries::~Boundaries() = default;

Result<Partition> Boundaries::under(const BoundaryChanges& changes) {
  WARPLOOM_TRY(const PartEditor editor, fused_->edited(changes));
  return fused_->regions(editor, changes);
}

std::vector<BoundaryOption> Boundaries::options(const BoundaryChanges& changes,
                                                const Limits& limits, size_t most) {
  const auto editor = fused_->edited(changes);
  const auto partition = editor ? fused_->regions(*editor, changes) : fail(editor.error());
  if (!partition) return {};
  return options_of(fused_->graph(), *partition, *editor, limits, most);
}
}  // namespace warploom::plan
