// ChoiceSearch: the search of a graph of which the whole plan leaves a choice (plan_choice.h).
//
// What was given is always one of the choices. Another is the chain of rewrites that a greedy walk
// finds: at each step the one that saves most time by the roofline, until none saves any; steps
// that turn out to save nothing are left out. It is searched where it promises to be a twentieth
// faster as a whole; times decide, since rooflines know nothing of kernels.
//
//   offered    by what they are predicted to take: scale_after_sum y; sum_before y   3.1 µs
//                                                  as given                          214 µs
//   search     the first of them gets half of the time, and up to eight tenths where it promises
//              more; one that cannot be faster than what was measured by then, by its physical
//              floor, is not searched, and the first has the rest as well
//   outcome    the fastest; where none is right, the error of what was given
//
// Every one that was searched is a candidate of the archive (plan_archive.h), with the action that
// led there: why, the report and a replay see it as they see a config's.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "search/action/action.h"
#include "search/budget.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_choice.h"
#include "target/capabilities.h"

namespace warploom::search {
struct OfferedChoice {
  PlanChoice choice;
  std::optional<Action> action = {};  // that leads there from what was given; nothing: it is that
  double predicted_us = 0;  // products and what they move, by the roofline, one after the other
  double floor_us = 0;      // no kernels are faster
  double products = 0;      // operations of its products
};

// The best by prediction first. `graph`: primitives_for_target(). What was given is among them;
// alone where nothing else promises enough. `constants`: inputs that hold the same in every call.
std::vector<OfferedChoice> offered_choices(const graph::Graph& graph, Track track,
                                           const target::Capabilities& capabilities,
                                           const std::set<std::string>& constants = {});

// Of the products of a graph, the least operations that a chain of rewrites leaves: no floor of the
// graph is above what they take.
double least_flops(const graph::Graph& primitive, Track track,
                   const target::Capabilities& capabilities,
                   const std::set<std::string>& constants = {});

class ChoiceSearch {
 public:
  // The search of one choice, with the budget that its options have.
  using Search = std::function<Result<Outcome>(const Options& options)>;
  // Told of each that was searched, or left out: its time or its error.
  using Record = std::function<Status(const OfferedChoice&, const Result<Outcome>&)>;

  ChoiceSearch(std::vector<OfferedChoice> offered, const Options& options, Search search,
               Record record);

  Result<Outcome> run();

 private:
  struct Tried {
    OfferedChoice offered;
    double best_us = 0;
    bool proven = false;
    std::string error_code;
    bool is_left_out = false;
  };

  Status try_one(const OfferedChoice& offered, double share);
  void take(const OfferedChoice& offered, Outcome found);
  double share_of(size_t number) const;
  bool can_be_faster(const OfferedChoice& offered) const;
  nlohmann::json told() const;

  std::vector<OfferedChoice> offered_;
  const Options& options_;
  Search search_;
  Record record_;
  Budget budget_;
  std::optional<Outcome> best_;
  std::optional<OfferedChoice> best_choice_;
  std::optional<Error> error_;  // of what was given, else of the last
  std::vector<Tried> tried_;
  int candidates_ = 0;
  int refused_ = 0;
};

// The whole: offers, searches, and the archive's record.
Result<Outcome> search_choices(const graph::Graph& given, const Options& options);
}  // namespace warploom::search
