#include "search/partition.h"
#include "kernels/family.h"

namespace warploom::search {
namespace {
using graph::Graph, graph::Node, graph::OpClass, graph::TensorId;

constexpr int64_t kMostKept =
    1 << 16;  // elements of a constant that stays one if it is no floating-point data
constexpr size_t kMostNodes = 64;
constexpr size_t kMostReads =
    32;  // of a region of several: families are not asked about larger ones

// 0, 1, 2 ..: of such a table kernels load nothing, however long it is.
bool are_places(const graph::Tensor& tensor) {
  for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
    if (load_as_double(tensor.dtype, tensor.constant->data(), static_cast<size_t>(i)) !=
        static_cast<double>(i))
      return false;
  return true;
}

// A number that a network may have learned: it has axes, as the bias of a layer with one output,
// and none of its readers makes anything of knowing it, as a power does of its exponent. Kernels
// load it, so that they are right with another.
bool is_learned(const Graph& graph, TensorId id) {
  using enum graph::OpKind;
  constexpr std::array kReaders = {Add, Sub, Mul, Div, PRelu, MatMul, Conv};
  const auto reads = [&](int n) { return contains(kReaders, graph.nodes[n].op); };
  return !graph.tensor(id).shape.empty() && std::ranges::all_of(graph.consumers(id), reads);
}

// A constant that kernels load, and do not hold in their text.
bool is_weight(const Graph& graph, TensorId id) {
  const graph::Tensor& tensor = graph.tensor(id);
  if (!tensor.constant) return false;
  const int64_t count = graph::element_count(tensor.shape);
  if (!is_float(tensor.dtype)) return count > kMostKept && !are_places(tensor);
  return count > 1 || (count == 1 && is_learned(graph, id));
}

// "MatMul+Add+Gelu", the first few of long chains.
std::string name_of(const std::vector<Node>& nodes) {
  constexpr size_t kNamed = 6;
  const auto first = std::span(nodes).first(std::min(nodes.size(), kNamed));
  return listed(
             first, [](const Node& node) { return graph::name_of(node.op); }, "+") +
         (nodes.size() > kNamed ? "+.." : "");
}

// What can be done about a region that no family covers.
std::string remedy_for(const Graph& region) {
  const auto scans_integers = [&](const graph::Node& node) {
    return graph::class_of(node.op) == graph::OpClass::scan &&
           is_integer(region.tensor(node.outputs[0]).dtype);
  };
  if (std::ranges::any_of(region.nodes, scans_integers))
    return "cast to f32 before the CumSum and back behind it (exact below 2^24), or take the "
           "target "
           "cpu";
  return "take another target or track, or cast to a type of kernels before it";
}

class Partitioner {
 public:
  Partitioner(const Graph& graph, const Rank& rank, const Limits& limits)
      : graph_(graph), rank_(rank), limits_(limits), ranges_(graph::ranges_of(graph)) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const int number = static_cast<int>(n);
      maker_[graph.nodes[n].outputs[0]] = number;
      for (const TensorId id : graph.nodes[n].inputs) uses_[id].push_back(number);
      groups_[number] = holders_[number] = {number};
    }
    promised_.insert(graph.outputs.begin(), graph.outputs.end());
  }

  Result<Partition> run() {
    // What one family computes as a whole need not be found step by step.
    Nodes others;
    for (const auto& [root, nodes] : groups_) others.insert(root);
    const int last = others.empty() ? 0 : *others.rbegin();
    others.erase(last);
    if (!groups_.empty() && graph_.outputs == std::vector{stored(last)}) take(others, {last});
    for (const bool behind_products : {false, true}) {
      behind_products_ = behind_products;
      while (pass(false) || together() || pass(true)) {}
    }
    Partition out;
    for (const graph::Tensor& tensor : graph_.tensors) out.storage[tensor.name] = tensor.name;
    for (const auto& [root, nodes] : groups_) {
      WARPLOOM_CHECK(limits_.check());
      if (graph::element_count(graph_.tensor(stored(root)).shape) == 0) continue;  // nothing to do
      Region region = region_of(root, nodes);
      region.alias = all(nodes, {OpClass::view}) && !region.graph.inputs.empty() &&
                     is_alias(region, stored(root), out.storage);
      if (!region.alias && !place(region)) {
        const bool nothing = std::ranges::any_of(
            region.graph.tensors,
            [](const graph::Tensor& tensor) { return graph::element_count(tensor.shape) == 0; });
        return fail({ErrorCode::kNoSchedule,
                     "no family of schedules covers a part of the graph on this target",
                     place_of(graph_.nodes[root]),
                     nothing ? "tensors of 1 element or more"
                             : "operators that families know, in types they compute",
                     graph::to_text(region.graph),
                     nothing ? "leave out what has no elements" : remedy_for(region.graph)});
      }
      add_ranges(region);
      out.regions.push_back(std::move(region));
    }
    WARPLOOM_CHECK(limits_.check());
    if (out.regions.empty())
      return fail({ErrorCode::kNoSchedule, "there is nothing to compute", graph_.name,
                   "an output of 1 element or more", "outputs without elements",
                   "leave the model out: its outputs are empty whatever its inputs are"});
    return out;
  }

 private:
  using Nodes = std::set<int>;

  const Node& node(int n) const { return graph_.nodes[n]; }

  TensorId stored(int root) const { return node(root).outputs[0]; }

  bool all(const Nodes& nodes, std::initializer_list<OpClass> classes) const {
    return std::ranges::all_of(
        nodes, [&](int n) { return contains(classes, graph::class_of(node(n).op)); });
  }

  // What a region reads from outside, in the order of its nodes.
  std::vector<TensorId> reads(const Nodes& nodes) const {
    std::vector<TensorId> out;
    for (const int n : nodes)
      for (const TensorId id : node(n).inputs) {
        const auto maker = maker_.find(id);
        const bool inside =
            id == graph::kAbsent || (maker != maker_.end() && nodes.contains(maker->second));
        if (!inside && !contains(out, id)) out.push_back(id);
      }
    return out;
  }

  bool is_free(int root, const Nodes& nodes) const {
    if (!all(nodes, {OpClass::view, OpClass::movement, OpClass::pointwise})) return false;
    int64_t bytes = 0;
    for (const TensorId id : reads(nodes)) bytes += graph::byte_count(graph_.tensor(id));
    return bytes <= graph::byte_count(graph_.tensor(stored(root)));
  }

  Region region_of(int root, const Nodes& nodes) const {
    Region region;
    region.nodes.assign(nodes.begin(), nodes.end());
    Graph& made = region.graph;
    std::map<TensorId, TensorId> known = {{graph::kAbsent, graph::kAbsent}};
    int inputs = 0;
    int constants = 0;
    int between = 0;
    const auto add = [&](TensorId id, bool inside) {
      const auto [place, fresh] = known.try_emplace(id, static_cast<TensorId>(made.tensors.size()));
      if (!fresh) return place->second;
      const graph::Tensor& from = graph_.tensor(id);
      const bool constant = !inside && from.constant && !is_weight(graph_, id);
      const std::string name = inside     ? id == stored(root) ? "y" : fmt::format("t{}", between++)
                                   : constant ? fmt::format("c{}", constants++)
                                          : fmt::format("x{}", inputs++);
      made.add_tensor({{name, from.dtype, from.shape}, constant ? from.constant : std::nullopt});
      region.tensors.push_back(from.name);
      if (!inside && !constant) made.inputs.push_back(place->second);
      return place->second;
    };
    for (const int n : nodes) {
      const Node& from = node(n);
      Node to{from.op, fmt::format("n{}", made.nodes.size()), {}, {}, from.attributes};
      for (const TensorId id : from.inputs) to.inputs.push_back(add(id, false));
      to.outputs = {add(from.outputs[0], true)};
      made.nodes.push_back(std::move(to));
    }
    made.outputs = {known.at(stored(root))};
    made.name = name_of(made.nodes);
    region.identity = graph::to_text(made);
    for (const graph::Tensor& tensor : made.tensors)
      if (tensor.constant)
        region.identity.append(reinterpret_cast<const char*>(tensor.constant->data()),
                               tensor.constant->size());
    return region;
  }

  // What the inputs are in the whole graph, where the region alone does not say it: an index of
  // which another region makes the place, a table of places that is a constant of the model.
  // Regions that compute the same of other numbers are judged apart.
  void add_ranges(Region& region) const {
    const graph::Ranges own = graph::ranges_of(region.graph);
    for (const TensorId id : region.graph.inputs) {
      const std::string& name = region.graph.tensor(id).name;
      const graph::Range range = graph::range_in(ranges_, region.tensors[static_cast<size_t>(id)]);
      if (range == graph::range_in(own, name)) continue;
      region.ranges[name] = range;
      region.identity += fmt::format("{}: {}\n", name, graph::to_text(range));
    }
  }

  std::optional<int> place(const Region& region) {
    const auto [known, fresh] = ranks_.try_emplace(region.identity);
    if (fresh) known->second = rank_(region.graph);
    return known->second;
  }

  int rank_of(int root, const Nodes& nodes) {
    return place(region_of(root, nodes)).value_or(std::numeric_limits<int>::max());
  }

  // Whether a product in `nodes` reads what `root` stores, each element many times.
  bool is_multiplied(int root, const Nodes& nodes) {
    return std::ranges::any_of(uses_[stored(root)], [&](int n) {
      return nodes.contains(n) && all({n}, {OpClass::contraction, OpClass::convolution});
    });
  }

  // Whether a family no worse than those of the parts covers the regions `from` and `into`
  // together. Arithmetic before a product is done once an element, unless a family for products
  // does it.
  bool covered(const Nodes& from, int into) {
    if (limits_.ended() || limits_.late()) return false;  // nothing changes any more
    Nodes both = groups_.at(into);
    for (const int root : from) both.insert(groups_.at(root).begin(), groups_.at(root).end());
    if (both.size() > kMostNodes || reads(both).size() > kMostReads) return false;
    const auto some = [&](OpClass wanted) {
      return std::ranges::any_of(both, [&](int n) { return class_of(node(n).op) == wanted; });
    };
    // Weights that lie backwards, those of transposed convolutions, are laid anew: few families
    // take them as they are.
    const auto backwards = [&](int n) {
      const auto steps = node(n).op == graph::OpKind::Slice
                             ? graph::constant_integers(graph_, node(n).inputs.back())
                             : std::nullopt;
      return steps && node(n).inputs.size() > 4 && std::ranges::min(*steps) < 0;
    };
    if (some(OpClass::convolution) && std::ranges::any_of(both, backwards)) return false;
    if (!behind_products_ && some(OpClass::contraction) && some(OpClass::reduction)) return false;
    int best = rank_of(into, groups_.at(into));
    for (const int root : from) {
      const Nodes& nodes = groups_.at(root);
      const bool moves = all(nodes, {OpClass::view, OpClass::movement});
      best =
          std::min(best, rank_of(root, nodes) -
                             (!moves && is_multiplied(root, groups_.at(into)) ? kLastRank - 1 : 0));
    }
    // The phases that they leave are laid side by side by one for products, or by a program of
    // their own.
    constexpr int64_t kFew = 8;
    const auto interleaves = [&](int n) {
      return node(n).op == graph::OpKind::Transpose &&
             graph_.tensor(stored(n)).shape.back() <= kFew;
    };
    if (some(OpClass::convolution) && std::ranges::any_of(both, interleaves))
      best = std::min(best, 0);
    const auto found = place(region_of(into, both));
    return found && *found <= best;
  }

  // Makes `from` part of each of `takers`, if all of them can be covered so.
  bool take(const Nodes& from, const Nodes& takers) {
    if (takers.empty() ||
        !std::ranges::all_of(takers, [&](int taker) { return covered(from, taker); }))
      return false;
    for (const int root : from) {
      const Nodes nodes = std::move(groups_.extract(root).mapped());
      for (const int n : nodes) {
        holders_[n].erase(root);
        holders_[n].insert(takers.begin(), takers.end());
      }
      for (const int taker : takers) groups_.at(taker).insert(nodes.begin(), nodes.end());
    }
    return true;
  }

  // The regions that read what `root` stores. Whoever computes it again does not read it.
  Nodes readers_of(int root) {
    Nodes out;
    for (const int n : uses_[stored(root)])
      for (const int group : holders_[n])
        if (!holders_[root].contains(group)) out.insert(group);
    return out;
  }

  // Takes in what can be, regions of views alone or the others; whether anything was. A result that
  // is stored anyway, as an output or for a reader that cannot compute it, is computed once.
  bool pass(bool views) {
    bool changed = false;
    for (auto group = groups_.begin(); group != groups_.end();) {
      const auto& [root, nodes] = *group++;
      if (promised_.contains(stored(root)) || all(nodes, {OpClass::view}) != views) continue;
      const Nodes readers = readers_of(root);
      if (readers.size() == 1 || is_free(root, nodes)) changed |= take({root}, readers);
    }
    return changed;
  }

  // All that a region alone reads, at once: two operands may make sense only together.
  bool together() {
    for (const auto& [into, nodes] : groups_) {
      Nodes from;
      for (const TensorId id : reads(nodes)) {
        const auto maker = maker_.find(id);
        if (maker != maker_.end() && !promised_.contains(id) &&
            readers_of(maker->second).size() == 1)
          from.insert(maker->second);
      }
      if (from.size() > 1 && take(from, {into})) return true;
    }
    return false;
  }

  // Views of something stored are that; those that are outputs give their memory to what they view,
  // where it has none of its own.
  bool is_alias(const Region& region, TensorId id,
                std::map<std::string, std::string>& storage) const {
    const std::string from = storage.at(region.tensors[region.graph.inputs[0]]);
    const TensorId source = *graph_.tensor_named(from);
    const std::string& name = graph_.tensor(id).name;
    const bool promised = promised_.contains(id);
    if (promised && (!maker_.contains(source) || promised_.contains(source))) return false;
    for (auto& [tensor, memory] : storage)
      if (promised ? memory == from : tensor == name) memory = promised ? name : from;
    return true;
  }

  const Graph& graph_;
  const Rank& rank_;
  const Limits& limits_;
  const graph::Ranges ranges_;  // of the whole graph
  std::map<TensorId, int> maker_;
  std::map<TensorId, std::vector<int>> uses_;
  std::map<int, Nodes> groups_;   // by the node whose result is stored
  std::map<int, Nodes> holders_;  // the groups that a node is in
  std::set<TensorId> promised_;
  bool behind_products_ =
      true;  // whether products take in reductions, which are to be whole by then
  std::map<std::string, std::optional<int>> ranks_;
};
}  // namespace

bool Partition::trivial(const Graph& whole) const {
  const bool holds_weights =
      std::ranges::any_of(std::views::iota(0, static_cast<int>(whole.tensors.size())),
                          [&](TensorId id) { return is_weight(whole, id); });
  return regions.size() == 1 && !regions[0].alias && whole.outputs.size() == 1 && !holds_weights;
}

Result<Partition> partition(const Graph& graph, const Rank& rank, const Limits& limits) {
  return Partitioner(graph, rank, limits).run();
}

namespace {
// Workspaces that are not needed at the same time become one: each takes the first place that is
// free when it is first named. One that is cleared keeps memory of its own: clearing a larger one
// costs time.
void share_workspaces(LaunchList& list) {
  std::map<std::string, size_t> last;  // kernel that needs each
  for (size_t i = 0; i < list.kernels.size(); ++i)
    for (const Argument& arg : list.kernels[i].args)
      last[arg.buffer] = std::max(last[arg.buffer], arg.zeroed ? list.kernels.size() : i);

  struct Place {
    BufferSpec spec;
    size_t busy_until;
  };

  std::vector<Place> places;
  std::map<std::string, size_t> place_of;
  for (size_t i = 0; i < list.kernels.size(); ++i)
    for (Argument& arg : list.kernels[i].args) {
      const auto spec = std::ranges::find(list.workspaces, arg.buffer, &BufferSpec::name);
      if (spec == list.workspaces.end() || last.at(arg.buffer) == list.kernels.size()) continue;
      const auto [known, fresh] = place_of.try_emplace(arg.buffer, 0);
      if (fresh) {
        const auto free =
            std::ranges::find_if(places, [&](const Place& place) { return place.busy_until < i; });
        known->second = static_cast<size_t>(free - places.begin());
        if (free == places.end())
          places.push_back({{fmt::format("workspace/{}", places.size()), Dtype::u8, {0}}, 0});
        Place& place = places[known->second];
        place.spec.shape = {std::max(place.spec.bytes(), spec->bytes())};
        place.busy_until = last.at(arg.buffer);
      }
      arg.buffer = places[known->second].spec.name;
    }
  std::erase_if(list.workspaces,
                [&](const BufferSpec& spec) { return place_of.contains(spec.name); });
  for (Place& place : places) list.workspaces.push_back(std::move(place.spec));
}
}  // namespace

LaunchList join(const graph::Graph& whole, const Partition& partition,
                const std::vector<const LaunchList*>& lists) {
  LaunchList out;
  std::set<std::string> known;
  const auto add = [&](std::vector<BufferSpec>& to, BufferSpec spec) {
    if (known.insert(spec.name).second) to.push_back(std::move(spec));
  };
  for (const auto id : whole.inputs) add(out.inputs, kernels::spec_of(whole.tensor(id)));
  for (const auto id : whole.outputs) add(out.outputs, kernels::spec_of(whole.tensor(id)));
  std::set<std::string> taken;
  std::map<std::string, std::string> named;  // the symbol of each kernel, by its text as it was
  for (size_t i = 0; i < lists.size(); ++i) {
    if (!lists[i]) continue;
    const Region& region = partition.regions[i];
    std::map<std::string, std::string> buffers;
    for (size_t t = 0; t < region.tensors.size(); ++t) {
      const std::string& memory = buffers[region.graph.tensors[t].name] =
          partition.storage.at(region.tensors[t]);
      const auto id = *whole.tensor_named(memory);
      const bool passed =
          contains(lists[i]->inputs, region.graph.tensors[t].name, &BufferSpec::name) ||
          static_cast<graph::TensorId>(t) == region.graph.outputs[0];
      if (passed)
        add(whole.tensor(id).constant ? out.inputs : out.workspaces,
            kernels::spec_of(whole.tensor(id)));
    }
    for (BufferSpec spec : lists[i]->workspaces) {
      spec.name = buffers[spec.name] = fmt::format("region {}/{}", i, spec.name);
      add(out.workspaces, std::move(spec));
    }
    out.engine = lists[i]->engine;
    out.arch = lists[i]->arch;
    out.predicted_us += lists[i]->predicted_us;
    for (Kernel kernel : lists[i]->kernels) {
      const auto [place, fresh] = named.try_emplace(kernel.source, kernel.name);
      std::string& name = place->second;
      for (int n = 2; fresh && !taken.insert(name).second; ++n)  // of no other text's kernel
        name = fmt::format("{}_{}", kernel.name, n);
      if (name != kernel.name) kernel = renamed(std::move(kernel), name);
      for (Argument& arg : kernel.args) arg.buffer = buffers.at(arg.buffer);
      out.kernels.push_back(std::move(kernel));
    }
  }
  share_workspaces(out);
  return out;
}
}  // namespace warploom::search
