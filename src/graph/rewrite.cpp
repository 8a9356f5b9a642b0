#include "graph/rewrite.h"
#include <fmt/format.h>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/rewrite_draft.h"
#include "graph/track.h"

namespace warploom::graph {
namespace {
constexpr RewriteRule* kRules[] = {
#define WARPLOOM_REWRITE(name, words, gain) name##_rule,
#include "graph/rewrites.def"
};

// "2.1 M", "512".
std::string short_number(double number) {
  constexpr std::string_view kUnits[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  for (; number >= 1e4 && unit + 1 < std::size(kUnits); ++unit)
    number /= 1e3;
  return fmt::format("{:.4g}{}", number, kUnits[unit]);
}

std::string changed(std::string_view what, double before, double after) {
  if (before == after) return "";
  return fmt::format("{} {} instead of {}", short_number(after), what, short_number(before));
}

std::string sentence_of(RewriteKind kind, const Draft& draft, const NodeWork& before,
                        const NodeWork& after) {
  const RewriteRow& row = kRewriteRows[as_size(kind)];
  std::string words(row.words);
  for (size_t i = 0; i < draft.named().size(); ++i) {
    const std::string place = fmt::format("{{{}}}", i);
    const size_t at = words.find(place);
    if (at != std::string::npos) words.replace(at, place.size(), draft.named()[i]);
  }
  std::vector<std::string> figures = {changed("operations", before.operations, after.operations),
                                      changed("bytes", before.bytes, after.bytes)};
  std::erase(figures, "");
  const std::string told = figures.empty() ? "as many operations and bytes" : listed(figures);
  return fmt::format("{} ({}): {}", words, told, row.gain);
}

Error no_rewrite(std::string expected, const std::string& found) {
  return {ErrorCode::kPlanInvalid,
          "this is no rewrite of the graph",
          "",
          std::move(expected),
          found,
          "see those that there are with `warploom show FILE --what rewrites`"};
}

Error refused(const Rewrite& rewrite, const std::vector<FailedNeed>& why) {
  Error error{ErrorCode::kScheduleIllegal, "the rewrite is refused here", rewrite.text()};
  error.expected = listed(why, &FailedNeed::expected, "; ");
  error.found = listed(why, &FailedNeed::found, "; ");
  error.remedy = "leave the graph as it is there";
  return error;
}
}  // namespace

std::string Rewrite::text() const {
  return fmt::format("{} {}", kRewriteRows[as_size(kind)].name, at);
}

Result<Rewrite> rewrite_from_text(const std::string& text) {
  const size_t space = text.find(' ');
  const std::string name = text.substr(0, space);
  const auto kind = row_where<RewriteKind>(kRewriteRows, name, &RewriteRow::name);
  if (!kind || space == std::string::npos)
    return fail(no_rewrite(listed(kRewriteRows, &RewriteRow::name) + ", and a tensor", text));
  return Rewrite{*kind, text.substr(space + 1)};
}

NodeWork work_of(const Graph& graph, const std::set<std::string>& known) {
  const GraphIndex index(graph, known);
  NodeWork sum;
  for (const Node& node : graph.nodes)
    sum += index.work_of(node);
  return sum;
}

std::vector<RewriteOffer> rewrites_of(const Graph& graph, Track track,
                                      const std::set<std::string>& known) {
  const GraphIndex index(graph, known);
  std::vector<RewriteOffer> out;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].outputs.size() != 1) continue;
    for (size_t kind = 0; kind < std::size(kRules); ++kind) {
      Draft draft(index, as_int(n), track);
      if (!kRules[kind](draft)) continue;
      RewriteOffer offer;
      offer.rewrite = {static_cast<RewriteKind>(kind), graph.tensor(draft.out()).name};
      offer.before = draft.before();
      offer.after = draft.after();
      offer.sentence = sentence_of(offer.rewrite.kind, draft, offer.before, offer.after);
      offer.why = draft.why();
      out.push_back(std::move(offer));
    }
  }
  return out;
}

namespace {
Result<Edit> edit_of(const Graph& graph, const Rewrite& rewrite, Track track) {
  const auto at = graph.tensor_named(rewrite.at);
  const int root = at ? graph.producer(*at) : -1;
  if (root < 0) return fail(no_rewrite("a tensor that a node makes", rewrite.text()));
  const GraphIndex index(graph);
  Draft draft(index, root, track);
  const bool makes_one = graph.nodes[as_size(root)].outputs.size() == 1;
  if (!makes_one || !kRules[as_size(rewrite.kind)](draft))
    return fail(no_rewrite("a node that the rule fits", rewrite.text()));
  if (!draft.why().empty()) return fail(refused(rewrite, draft.why()));
  return draft.edit();
}
}  // namespace

Result<Graph> rewrite(Graph graph, const Rewrite& rewrite, Track track) {
  WARPLOOM_TRY(Edit edit, edit_of(graph, rewrite, track));
  return edited(std::move(graph), std::move(edit));
}

Result<Graph> rewrite(Graph graph, const std::vector<Rewrite>& rewrites, Track track) {
  for (const Rewrite& one : rewrites) {
    WARPLOOM_TRY(graph, rewrite(std::move(graph), one, track));
  }
  return graph;
}
}  // namespace warploom::graph
