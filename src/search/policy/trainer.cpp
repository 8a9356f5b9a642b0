#include "search/policy/trainer.h"
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/random.h"
#include "search/budget.h"
#include "search/policy/features.h"
#include "search/policy/learned.h"
#include "search/policy/losses.h"
#include "search/policy/network.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/replay.h"
#include "search/policy/state.h"
#include "search/policy/walk.h"

namespace warploom::search {
namespace {
using Eigen::VectorXd;

constexpr size_t kMostActions = 32;  // of a state that are looked at
constexpr double kMostGain = 4;      // doublings that are told apart
constexpr double kTop = 4;           // how much a plan of the best tenth counts, of the odds

// Imitation
constexpr double kSharpness = 0.25;  // doublings that make an action e times as likely
constexpr double kImitationRate = 2e-3;
constexpr size_t kImitationBatch = 24;  // states
constexpr double kOddsShare = 0.3;      // of the promises' loss
constexpr double kValueShare = 0.2;     // of the value's

// PPO
constexpr double kRate = 3e-4;
constexpr double kClip = 0.2;
constexpr double kEntropyShare = 0.01;
constexpr double kMostMoved = 0.02;  // KL at which a round ends
constexpr double kDiscount = 0.95;   // of a step: what is found early counts more
constexpr double kTrace = 0.95;      // lambda of generalized advantages
constexpr int kEpochs = 4;
constexpr size_t kBatch = 64;  // steps

constexpr int kSeedsOfChoice = 4;  // replays of each training tree that decide between the parts

double sum_of_squares(double difference) {
  return difference * difference;
}

// A step of a walk.
struct Step {
  Eigen::MatrixXd x;
  VectorXd is_top;  // of each action, whether its plan is
  size_t chosen = 0;
  double before = 0;  // logarithm of its probability
  double value = 0;
  double reward = 0;
  double advantage = 0;
  double gained = 0;  // what was still gained from here
};

VectorXd tops_of(const RecordedTree& tree, const std::vector<const RecordedEdge*>& edges) {
  VectorXd out(std::ssize(edges));
  for (size_t i = 0; i < edges.size(); ++i)
    out[as_int64(i)] = tree.is_top(edges[i]->to) ? 1 : 0;
  return out;
}

class Trainer {
 public:
  Trainer(const Trees& trees, const TrainOptions& options)
      : trees_(trees),
        options_(options),
        budget_(options.seconds),
        random_(options.seed, "training"),
        network_({kFeatures}),
        sums_(VectorXd::Zero(network_.parameters().size())) {
    network_.randomize(random_);
  }

  Trained run() {
    imitate();
    Trained out;
    const Network imitation = network_;
    out.imitation_tries = tries();
    reinforce();
    out.ppo_tries = tries();
    out.is_ppo = out.ppo_tries <= out.imitation_tries;
    out.network = out.is_ppo ? network_ : imitation;
    out.curve = std::move(curve_);
    return out;
  }

 private:
  bool is_over() const {
    return budget_.is_over() || (options_.interrupted && options_.interrupted->load());
  }

  void note(TrainingPoint point) {
    point.seconds = budget_.spent();
    curve_.push_back(point);
    if (options_.on_progress) options_.on_progress(point);
  }

  void step(Adam& adam, double rate, size_t states) {
    adam.step(network_.parameters(), sums_ / as_double(states), rate);
    sums_.setZero();
  }

  // Every inner plan of every tree once, in random order; trees with many plans count no more than
  // others: at most so many of them are drawn.
  std::vector<std::pair<const RecordedTree*, int>> states_of_epoch() {
    constexpr size_t kMostOfTree = 64;
    std::vector<std::pair<const RecordedTree*, int>> out;
    for (const auto& tree : trees_) {
      std::vector<int> plans = tree->inner();
      random_.shuffle(plans);
      for (size_t i = 0; i < std::min(kMostOfTree, plans.size()); ++i)
        out.emplace_back(tree.get(), plans[i]);
    }
    random_.shuffle(out);
    return out;
  }

  void imitate() {
    Adam adam(network_.shape().parameters());
    for (int epoch = 0; epoch < options_.imitation_epochs && !is_over(); ++epoch) {
      double loss = 0;
      size_t states = 0;
      const auto all = states_of_epoch();
      // The rate falls to nothing.
      const double rate =
          kImitationRate * (1 - as_double(epoch) / as_double(options_.imitation_epochs));
      for (const auto& [tree, plan] : all) {
        loss += imitate(*tree, plan);
        if (++states % kImitationBatch == 0) step(adam, rate, kImitationBatch);
      }
      note({.part = "imitation", .round = epoch, .loss = loss / as_double(all.size())});
    }
  }

  // A plan as a search may come upon it: behind some step that led there, with a best plan that is
  // another one.
  State state_at(const RecordedTree& tree, int plan) {
    const double us = tree.plan(plan).us;
    State out = {&tree.space(), &tree.facts(), tree.config(plan), us, us, {}};
    const int other = tree.right()[random_.below(tree.right().size())];
    if (random_.below(2) == 0) out.best_us = std::min(us, tree.plan(other).us);
    for (const RecordedEdge& edge : tree.edges(other)) {
      if (edge.to != plan) continue;
      out.history.push_back({edge.action, true, tree.plan(other).us, us});
    }
    return out;
  }

  // Its loss, and the gradient added.
  double imitate(const RecordedTree& tree, int plan) {
    const State state = state_at(tree, plan);
    std::vector<const RecordedEdge*> edges;
    for (const RecordedEdge& edge : tree.edges(plan))
      edges.push_back(&edge);
    random_.shuffle(edges);
    if (edges.size() > kMostActions) edges.resize(kMostActions);
    VectorXd gains(std::ssize(edges));
    for (size_t i = 0; i < edges.size(); ++i) {
      const RecordedPlan& then = tree.plan(edges[i]->to);
      const double gain = then.is_right() ? std::log2(state.us / then.us) : -kMostGain;
      gains[as_int64(i)] = std::clamp(gain, -kMostGain, kMostGain);
    }
    const auto pass = network_.forward(rows_of(edges, state));
    const VectorXd wanted = log_softmax(gains / kSharpness).array().exp().matrix();
    const Loss policy = cross_entropy(pass.heads.scores, wanted);
    const Loss odds = odds_loss(pass.heads.promises, tops_of(tree, edges), kTop);
    const double gained = std::max(0.0, gains.maxCoeff());
    const double off = pass.heads.value - gained;
    network_.backward(pass, {policy.gradient, kOddsShare * odds.gradient, 2 * kValueShare * off},
                      sums_);
    return policy.value + kOddsShare * odds.value + kValueShare * sum_of_squares(off);
  }

  void reinforce() {
    Adam adam(network_.shape().parameters());
    for (int round = 0; round < options_.rounds && !is_over(); ++round) {
      std::vector<Step> steps;
      TrainingPoint point{.part = "ppo", .round = round};
      for (int i = 0; i < options_.walks; ++i)
        point.gain += walk(steps) / options_.walks;
      if (steps.empty()) return;
      normalize(steps);
      learn(adam, steps, point);
      note(point);
    }
  }

  // One walk's steps, and what its best plan gained.
  double walk(std::vector<Step>& steps) {
    const RecordedTree& tree = *trees_[random_.below(trees_.size())];
    const int start = tree.inner()[random_.below(tree.inner().size())];
    Walk along(tree, start, random_.below(2) == 0 ? Mode::linear : Mode::climbs);
    const size_t begin = steps.size();
    for (int i = 0; i < options_.steps; ++i) {
      auto [edges, x] = along.look(kMostActions, random_);
      if (edges.empty()) break;
      const auto heads = network_.forward(x).heads;
      const VectorXd logs = log_softmax(heads.scores);
      Step one{std::move(x), tops_of(tree, edges)};
      one.chosen = drawn(logs);
      one.before = logs[as_int64(one.chosen)];
      one.value = heads.value;
      one.reward = along.take(*edges[one.chosen]);
      steps.push_back(std::move(one));
    }
    add_advantages(steps, begin);
    return std::log2(tree.plan(start).us / along.best_us());
  }

  size_t drawn(const VectorXd& logs) {
    double left = random_.uniform();
    for (Eigen::Index i = 0; i < logs.size(); ++i) {
      left -= std::exp(logs[i]);
      if (left < 0) return as_size(i);
    }
    return as_size(logs.size() - 1);
  }

  static void add_advantages(std::vector<Step>& steps, size_t begin) {
    double next_value = 0;
    double trace = 0;
    for (size_t i = steps.size(); i-- > begin;) {
      Step& one = steps[i];
      trace = one.reward + kDiscount * next_value - one.value + kDiscount * kTrace * trace;
      one.advantage = trace;
      one.gained = trace + one.value;
      next_value = one.value;
    }
  }

  // Mean 0, deviation 1.
  static void normalize(std::vector<Step>& steps) {
    double mean = 0;
    double square = 0;
    for (const Step& one : steps)
      mean += one.advantage / as_double(steps.size());
    for (const Step& one : steps)
      square += sum_of_squares(one.advantage - mean) / as_double(steps.size());
    for (Step& one : steps)
      one.advantage = (one.advantage - mean) / (std::sqrt(square) + 1e-8);
  }

  void learn(Adam& adam, std::vector<Step>& steps, TrainingPoint& point) {
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      random_.shuffle(steps);
      point.loss = point.entropy = point.moved = 0;
      size_t taken = 0;
      for (const Step& one : steps) {
        learn(one, point);
        if (++taken % kBatch == 0) step(adam, kRate, kBatch);
      }
      sums_.setZero();
      for (double* each : {&point.loss, &point.entropy, &point.moved})
        *each /= as_double(steps.size());
      if (point.moved > kMostMoved) break;
    }
  }

  void learn(const Step& one, TrainingPoint& point) {
    const auto pass = network_.forward(one.x);
    const auto& heads = pass.heads;
    const Loss ratio = clipped_ratio(heads.scores, one.chosen, one.before, one.advantage, kClip);
    const Loss undecided = negative_entropy(heads.scores);
    const Loss odds = odds_loss(heads.promises, one.is_top, kTop);
    const double off = heads.value - one.gained;
    const VectorXd by_score = ratio.gradient + kEntropyShare * undecided.gradient;
    network_.backward(pass, {by_score, kOddsShare * odds.gradient, 2 * kValueShare * off}, sums_);
    const double moved = one.before - log_softmax(heads.scores)[as_int64(one.chosen)];
    point.loss += ratio.value + kEntropyShare * undecided.value + kOddsShare * odds.value +
                  kValueShare * sum_of_squares(off);
    point.entropy -= undecided.value;
    point.moved += std::exp(-moved) - 1 + moved;  // at least 0, and KL in the mean
  }

  // Geometric mean over the training trees of tries to 0.95.
  double tries() {
    LearnedPolicy policy({network_, {}});
    double logs = 0;
    double count = 0;
    for (const auto& tree : trees_)
      for (int seed = 0; seed < kSeedsOfChoice; ++seed) {
        const auto one = replayed(*tree, policy, {.seed = as_uint64(seed) + 1});
        logs += std::log(1.0 + one.to_095);
        count += 1;
      }
    return std::exp(logs / std::max(1.0, count));
  }

  const Trees& trees_;
  const TrainOptions options_;
  const Budget budget_;
  Random random_;
  Network network_;
  VectorXd sums_;
  std::vector<TrainingPoint> curve_;
};
}  // namespace

Trained train(const Trees& trees, const TrainOptions& options) {
  return Trainer(trees, options).run();
}
}  // namespace warploom::search
