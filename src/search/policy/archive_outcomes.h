// What an archive's searches recorded, as outcomes that a policy is trained on: every search
// teaches the next ones, without anything being measured again.
//
//   WARPLOOM_TRY(const TaughtBy taught, outcomes_of(archive));
//   for (const Outcomes& outcomes : taught.outcomes) …      // one a target that was searched on
//
// A candidate is a plan, its first parent where it was come by; those of other archives
// (archive/travel.h) teach like one's own, on the card that they were measured on. Of each five
// problems, in the order of their keys, one is held out for the comparison, where there are five.
//
// Left out, and counted: problems that an older program recorded, which lack their graph; texts of
// language models, which no rule makes.
#pragma once
#include <cstddef>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "search/policy/outcomes.h"

namespace warploom::search {
// What an archive has to teach.
struct TaughtBy {
  std::vector<Outcomes> outcomes;
  size_t foreign = 0;  // problems of other archives among them
  size_t without = 0;  // problems whose graph is not known
};

Result<TaughtBy> outcomes_of(archive::Archive& from);
}  // namespace warploom::search
