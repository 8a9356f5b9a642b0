// Options of a search, and how it reports what it is at.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "graph/track.h"
#include "llm/model.h"
#include "plan/boundary_change.h"
#include "search/budget.h"
#include "search/coder/coder.h"
#include "search/plan_choice.h"
#include "search/policy/policy.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"

namespace warploom::verify {
class EvaluatorPool;
}

namespace warploom::search {
struct Progress {
  double seconds = 0;
  double budget_seconds = 0;
  // judged so far; of these refused
  int candidates = 0;
  int refused = 0;
  double best_us = 0;  // 0: none yet
  double reference_us = 0;
  std::string best;  // the best config's text
  // which of the different regions is searched
  int region = 1;
  int regions = 1;
  std::string region_name = {};
  std::string phase = {};  // what it is busy with, where that is not trying candidates
};

struct Options {
  std::string target = "auto";  // "auto": the GPU when there is one, else "cpu"
  Track track = Track::fp32;
  // Of wall time, for all of it: planning, setting up, searching, judging the whole, delivering.
  double budget_seconds = 60;
  double begun_seconds = 0;  // how much of it was gone before the search was asked for
  // What delivering the result will take, of which is kept back what there is; by the seconds of
  // the slowest compilation of its kernels.
  std::function<double(double)> delivery_seconds = {};
  // Whose processes evaluators take; null: each starts its own.
  verify::EvaluatorPool* evaluators = nullptr;
  // The GPUs that judge candidates, as CUDA_VISIBLE_DEVICES names them; the first also measures
  // finalists and judges the best whole. None: the one that this process sees.
  std::vector<std::string> devices = {};
  // The process in which the best is judged whole gets ready while candidates are tried.
  bool stands_by = false;
  // A region's share of its network's budget, whatever others left; 0: the budget.
  double asked_seconds = 0;
  int max_candidates = 0;  // of a region; 0: no limit but the budget
  uint64_t seed = 1;
  Strategy strategy = Strategy::automatic;
  PolicyKind policy = PolicyKind::analytic;  // of strategies that take actions
  std::string weights = {};                  // of the learned policy; empty: the program's own
  CoderKind coder = CoderKind::rule;
  // Actions that the user adds, for strategies that take actions; null: none.
  std::shared_ptr<const OwnActions> own_actions = {};
  // Of the whole plan; nothing: the search chooses.
  std::optional<PlanChoice> choice = {};
  // Of the regions; nothing: the search tries others than fusion's. None: as fusion has them.
  std::optional<plan::BoundaryChanges> boundaries = {};
  int jobs = 0;         // compilations at once; 0: one a core
  std::string archive;  // empty: cache_folder()/archive.sqlite
  bool resume = true;   // use what the archive knows of this problem
  // Only kernels that are held to infinities and NaN (SpecialValues::exact); what the archive knows
  // is not used then, since its best may be another.
  bool exact = false;
  bool force_search = false;  // search on even where it knows the answer: see tune()
  const std::atomic<bool>* interrupted = nullptr;  // set by a signal handler
  // Of the graph's inputs, those that hold the same in every call, as its initializers do.
  std::set<std::string> constants = {};
  // A language model that writes kernels beside the strategy (coder/model_writer.h); null: none.
  std::shared_ptr<llm::Model> model = {};
  bool replay_model = false;  // instead, the answers that the archive has of each region
  int64_t answer_tokens = 8192;

  bool has_model() const { return model || replay_model; }

  std::function<void(const Progress&)> on_progress = {};
  Budget::Now now = {};  // the budget's clock; nothing: this machine's. For tests

  bool is_interrupted() const { return interrupted && interrupted->load(); }
};
}  // namespace warploom::search
