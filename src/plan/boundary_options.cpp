#include "plan/boundary_options.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/joins.h"
#include "plan/limits.h"
#include "plan/part_editor.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::TensorId;

struct RuleRow {
  std::string_view name;
  std::string_view words;
};

constexpr RuleRow kRules[] = {
#define WARPLOOM_BOUNDARY_RULE(name, words) {#name, words},
#include "plan/boundary_rules.def"
};

// Changes of one kind in equal places, by what tells the places alike.
struct Alike {
  BoundaryChanges places;
  std::string first;  // the regions' operators, as far as they are known before the change
  std::string second;
};

class Options {
 public:
  Options(const Graph& graph, const Partition& partition, const PartEditor& editor)
      : graph_(graph), partition_(partition), editor_(editor) {
    for (size_t i = 0; i < partition.regions.size(); ++i)
      for (const std::string& name : partition.regions[i].stored())
        storer_[name] = i;
  }

  std::vector<BoundaryOption> all(const Limits& limits, size_t most) {
    find_joins();
    find_cuts();
    std::vector<BoundaryOption> out;
    for (const std::string& key : order_) {
      if (out.size() >= most || limits.late() || limits.ended()) break;
      out.push_back(option_of(alike_.at(key)));
    }
    return out;
  }

 private:
  // Where one region reads what another stores.
  void find_joins() {
    for (const Region& region : partition_.regions) {
      if (region.alias) continue;
      for (const TensorId id : region.graph.inputs) {
        const auto storer = storer_.find(region.tensors[as_size(id)]);
        if (storer == storer_.end()) continue;
        const Region& from = partition_.regions[storer->second];
        if (from.alias) continue;
        const auto place = place_in(from, storer->first);
        const std::string key =
            fmt::format("join {}\n{}\n{} {}", from.identity, region.identity, place, id);
        const BoundaryChange change{BoundaryKind::join_regions, storer->first,
                                    region.stored().front()};
        add(key, change, from.graph.name, region.graph.name);
      }
    }
  }

  // What a region makes on its way.
  void find_cuts() {
    for (const Region& region : partition_.regions) {
      if (region.alias || region.graph.nodes.size() < 2) continue;
      for (const graph::Node& node : region.graph.nodes) {
        const TensorId id = node.outputs[0];
        const bool is_last = region.graph.outputs.size() == 1 && region.graph.outputs[0] == id;
        if (is_last) continue;
        const std::string key = fmt::format("cut {}\n{}", region.identity, id);
        add(key, {BoundaryKind::cut_region, region.tensors[as_size(id)]}, region.graph.name, "");
      }
    }
  }

  void add(const std::string& key, const BoundaryChange& change, const std::string& first,
           const std::string& second) {
    const auto [known, fresh] = alike_.try_emplace(key);
    if (fresh) {
      order_.push_back(key);
      known->second.first = first;
      known->second.second = second;
    }
    known->second.places.push_back(change);
  }

  // The change in the first place, then in each that is still as it was and allows it.
  BoundaryOption option_of(const Alike& alike) {
    BoundaryOption out;
    out.first = alike.first;
    out.second = alike.second;
    PartEditor editor = editor_;
    for (const BoundaryChange& change : alike.places) {
      const auto edit = editor.check(change);
      if (!edit && out.changes.empty()) {
        out.changes = {change};
        out.refusal = edit.error();
        out.bytes = bytes_of(change);
        return out;
      }
      if (!edit || !is_untouched(change, out.changes)) continue;
      if (out.changes.empty()) describe(out, change, *edit);
      editor.apply(*edit);
      out.changes.push_back(change);
      out.bytes += bytes_of(change);
    }
    return out;
  }

  // Whether the regions of a join are not those of one before: a chain of equal regions becomes
  // pairs.
  static bool is_untouched(const BoundaryChange& change, const BoundaryChanges& before) {
    if (change.kind == BoundaryKind::cut_region) return true;
    const auto meets = [&](const BoundaryChange& one) {
      return one.other == change.tensor || one.tensor == change.other ||
             one.tensor == change.tensor || one.other == change.other;
    };
    return std::ranges::none_of(before, meets);
  }

  // What goes and comes in the first place.
  void describe(BoundaryOption& out, const BoundaryChange& change, const PartEdit& edit) const {
    for (const size_t place : edit.gone)
      out.gone.push_back(storer_.at(graph_.tensor(editor_.parts()[place].stored[0]).name));
    for (const Part& part : edit.made)
      out.made.push_back(region_of(graph_, part.nodes, part.stored));
    if (change.kind != BoundaryKind::cut_region) return;
    out.first = out.made.front().graph.name;
    out.second = out.made.back().graph.name;
  }

  static size_t place_in(const Region& region, const std::string& stored) {
    const auto names = region.stored();
    return as_size(std::ranges::find(names, stored) - names.begin());
  }

  int64_t bytes_of(const BoundaryChange& change) const {
    const auto id = graph_.tensor_named(change.tensor);
    return id ? graph::byte_count(graph_.tensor(*id)) : 0;
  }

  const Graph& graph_;
  const Partition& partition_;
  const PartEditor& editor_;
  std::map<std::string, size_t> storer_;  // the region that stores a tensor, by its name
  std::map<std::string, Alike> alike_;
  std::vector<std::string> order_;  // of its keys, as they were found
};
}  // namespace

std::string_view name_of(BoundaryRule rule) {
  return kRules[as_size(rule)].name;
}

std::string_view words_of(BoundaryRule rule) {
  return kRules[as_size(rule)].words;
}

Error error_of(const BoundaryChange& change, const BoundaryRefusal& refusal) {
  return {ErrorCode::kScheduleIllegal,
          "the boundary between regions cannot be changed so",
          to_text(change),
          fmt::format("{} ({})", words_of(refusal.rule), name_of(refusal.rule)),
          refusal.found,
          "see what can be with `warploom show MODEL --what boundaries`"};
}

std::vector<BoundaryOption> options_of(const Graph& graph, const Partition& partition,
                                       const PartEditor& editor, const Limits& limits,
                                       size_t most) {
  return Options(graph, partition, editor).all(limits, most);
}
}  // namespace warploom::plan
