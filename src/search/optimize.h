// optimize: from a graph to the fastest kernels that are proven right, within a budget.
//
// The graph is decomposed and partitioned into regions (plan/fusion.h). Each different one is a
// problem of its own: the candidates of every family that covers it are enumerated or sampled,
// compiled in parallel in child processes, judged and timed one at a time in the evaluator process,
// and recorded in the archive as soon as they are known. Regions take turns by what they can still
// gain (graph_search.h), and the budget is the wall clock of it all. A run that was
// interrupted or killed goes on where it stopped when it is started again with the same problem,
// target and track; other models with equal regions find them there. The best of each region make
// the plan, which is then judged as a whole against the whole graph.
#pragma once
#include "search/options.h"
#include "search/outcome.h"

namespace warploom::search {
// Fails with kNoSchedule, with kNoCorrectCandidate (in `found` the refusals' summary; where the
// budget ended first, `remedy` names the seconds that it would need), with kPlanWrong where every
// region is right and no plan of them is, with what the machine lacks, or with kInterrupted when a
// region had nothing before the interrupt. Planning has three tenths of the budget: regions are
// then left as they are.
Result<Outcome> optimize(const graph::Graph& graph, const Options& options);

// What to plan for on a target by name; "auto": the GPU when there is one, else the CPU. An
// architecture means the card that is here, where it is one of these, else the first that
// cards.def has.
Result<target::Capabilities> resolve_target(const std::string& name);

// The same with rates of a card that is here and was never measured, where the second that
// measuring takes is little of the budget.
target::Capabilities with_rates(target::Capabilities capabilities, double budget_seconds);

// The track a graph competes in when the user names none: by its widest floating-point input.
Track default_track(const graph::Graph& graph);
}  // namespace warploom::search
