#include <fmt/format.h>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rows.h"
#include "cli/command.h"
#include "search/policy/analytic.h"
#include "search/policy/archive_outcomes.h"
#include "search/policy/compare.h"
#include "search/policy/learned.h"
#include "search/policy/outcomes.h"
#include "search/policy/policy.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/trainer.h"
#include "search/policy/uniform.h"
#include "search/policy/weights.h"

namespace warploom::cli {
namespace {
using nlohmann::json;
using search::Outcomes;
using search::Weights;

struct Flags {
  std::string from;
  std::string out;
  std::string curve;
  std::string weights;
  std::vector<std::string> without;
  search::TrainOptions options;
  int seeds = 20;
};

Error nothing_to_learn(const Flags& flags) {
  return {ErrorCode::kOutcomesInvalid,
          "there is nothing to learn from",
          flags.from,
          "problems to train on with plans that were measured and actions between them",
          flags.without.empty() ? "none" : "none but of the families left out",
          "record more: warploom record MODEL --into FILE; of an archive, search more"};
}

// What there is to learn from: a file of outcomes is of one target, an archive of several.
struct Lessons {
  std::vector<Outcomes> outcomes;
  json archive = {};  // what of it was left out; null where it is none
};

search::Trees trees_of(const Lessons& lessons, search::Use use) {
  search::Trees out;
  for (const Outcomes& outcomes : lessons.outcomes)
    for (auto& tree : search::trees_of(outcomes, use))
      out.push_back(std::move(tree));
  return out;
}

// An archive by its first bytes, else a file of outcomes.
Result<Lessons> lessons_from(const std::string& path) {
  constexpr std::string_view kDatabase = "SQLite format 3";
  WARPLOOM_TRY(const std::string bytes, read_file(path));
  Lessons out;
  if (!bytes.starts_with(kDatabase)) {
    WARPLOOM_TRY(Outcomes outcomes, search::read_outcomes(path));
    out.outcomes.push_back(std::move(outcomes));
    return out;
  }
  WARPLOOM_TRY(archive::Archive archive, archive_at(path));
  WARPLOOM_TRY(search::TaughtBy taught, search::outcomes_of(archive));
  out.outcomes = std::move(taught.outcomes);
  out.archive = {{"foreign_problems", taught.foreign}, {"problems_left_out", taught.without}};
  return out;
}

// Those to train on, without those whose best plan is of a family that is left out.
search::Trees training_trees(const Flags& flags, const Lessons& lessons) {
  auto trees = trees_of(lessons, search::Use::train);
  std::erase_if(trees, [&](const auto& tree) {
    return contains(flags.without, search::best_family(tree->problem()));
  });
  return trees;
}

json recipe_of(const Flags& flags, const Lessons& lessons, const search::Trees& trees,
               const search::Trained& trained) {
  size_t plans = 0;
  size_t edges = 0;
  for (const auto& tree : trees) {
    plans += tree->problem().plans.size();
    edges += tree->edge_count();
  }
  json out;
  std::vector<std::string> machines;
  for (const Outcomes& one : lessons.outcomes)
    machines.push_back(one.machine);
  out["machine"] = listed(machines, {}, ", ");
  if (!lessons.archive.is_null()) out["archive"] = lessons.archive;
  out["problems"] = trees.size();
  out["plans"] = plans;
  out["edges"] = edges;
  out["seed"] = flags.options.seed;
  out["without"] = flags.without;
  out["seconds"] = trained.curve.empty() ? 0 : trained.curve.back().seconds;
  out["kept"] = trained.is_ppo ? "ppo" : "imitation";
  out["tries_after_imitation"] = trained.imitation_tries;
  out["tries_after_ppo"] = trained.ppo_tries;
  return out;
}

Result<Weights> trained_weights(const Flags& flags, const Session& session, const Lessons& lessons,
                                json& record) {
  const auto trees = training_trees(flags, lessons);
  if (trees.empty()) return fail(nothing_to_learn(flags));
  search::TrainOptions options = flags.options;
  options.interrupted = &interrupted();
  const auto show = [](const search::TrainingPoint& point) {
    std::cerr << fmt::format("{:6.1f} s  {} {:3}  loss {:7.4f}  gain {:5.2f}  entropy {:4.2f}\n",
                             point.seconds, point.part, point.round, point.loss, point.gain,
                             point.entropy);
  };
  if (!session.quiet) options.on_progress = show;
  const auto trained = search::train(trees, options);
  record["trained"] = recipe_of(flags, lessons, trees, trained);
  if (!flags.curve.empty()) {
    const json curve = {{"trained", record["trained"]}, {"curve", trained.curve}};
    WARPLOOM_CHECK(write_file(flags.curve, curve.dump(1) + "\n"));
  }
  return Weights{trained.network, record["trained"]};
}

// Uniform, analytic, the program's own learned policy and this one on the problems that were held
// out.
Status add_comparison(const Flags& flags, const Lessons& lessons, const Weights& weights,
                      json& record) {
  const auto trees = trees_of(lessons, search::Use::hold_out);
  WARPLOOM_TRY(auto shipped, search::make_policy(search::PolicyKind::learned));
  const auto learned = std::make_shared<search::LearnedPolicy>(weights);
  const std::vector<search::Contender> contenders = {
      {"uniform", std::make_shared<search::UniformPolicy>()},
      {"analytic", std::make_shared<search::AnalyticPolicy>()},
      {"shipped", std::move(shipped)},
      {"learned", learned},
      {"learned_filter", learned, true}};
  const auto rows = search::compared(trees, contenders, flags.seeds);
  record["rows"] = rows;
  record["summary"] = search::summed_up(rows);
  return ok();
}

Result<Answer> train(const Flags& flags, const Session& session) {
  WARPLOOM_TRY(const Lessons lessons, lessons_from(flags.from));
  json record = {{"from", flags.from}, {"out", flags.out}};
  auto weights = flags.weights.empty() ? trained_weights(flags, session, lessons, record)
                                       : search::read_weights(flags.weights);
  if (!weights) return fail(weights.error());
  if (!flags.out.empty()) WARPLOOM_CHECK(write_file(flags.out, search::weights_text(*weights)));
  WARPLOOM_CHECK(add_comparison(flags, lessons, *weights, record));
  return Answer{record, text_of("trained", record)};
}
}  // namespace

Command train_command() {
  const auto flags = std::make_shared<Flags>();
  auto& options = flags->options;
  Command command;
  command.name = "train";
  command.help = "train the policy that a search goes by, from recorded outcomes";
  command.example = "warploom train --from bench/policy/outcomes.gz --out weights.json";
  command.flags = {
      {"--from", &flags->from,
       "outcomes, as warploom record writes them, or an archive of searches, one's own"},
      {"--out", &flags->out, "where the weights go; default: nowhere"},
      {"--curve", &flags->curve, "where the course of the training goes, as JSON"},
      {"--budget", &options.seconds, "time at most; default 10m"},
      {"--rounds", &options.rounds, "rounds of PPO; default 100", {}, 0, 100'000},
      {"--without", &flags->without, "a family of which nothing is learned, to see what carries"},
      {"--weights", &flags->weights, "train nothing, compare these on the problems held out"},
      {"--seeds", &flags->seeds, "of the comparison; default 20", {}, 1, 10'000},
      {"--seed", &options.seed, "of the training; default 1"}};
  command.action = [flags](const Session& session) { return train(*flags, session); };
  return command;
}
}  // namespace warploom::cli
