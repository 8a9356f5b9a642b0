// Trainer: from recorded outcomes to a policy's weights, on a CPU, in minutes.
//
//   TrainOptions options{.seed = 1};
//   const Trained trained = train(trees, options);
//   write_file("weights.json", weights_text({trained.network, …}));
//
// Two parts. First the network learns from every plan what each of its actions gained, and which
// plans are among the best tenth: the policy's softmax is drawn towards the softmax of the gains
// (imitation). Then it walks through the trees itself and is corrected by what the walks gained:
// PPO (Schulman et al., arXiv 1707.06347) with clipped ratios, an entropy bonus, generalized
// advantages, and an end to a round's epochs where the policy has moved too far (KL). Of both the
// one that needs fewer tries on the training trees is kept.
//
// The seed decides every draw: the same trees, options and seed give the same weights, unless the
// time ends the training before its rounds do.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "search/policy/network.h"
#include "search/policy/recorded_tree.h"

namespace warploom::search {
// A moment of the training. Of imitation: loss and `agreement`; of PPO the others.
struct TrainingPoint {
  std::string part;  // "imitation" or "ppo"
  int round = 0;
  double seconds = 0;
  double loss = 0;
  double gain = 0;     // mean of a walk's best, in doublings over its start
  double entropy = 0;  // of the policy, in nats
  double moved = 0;    // KL of the policy before the round from the one after it
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingPoint, part, round, seconds, loss, gain, entropy, moved)

struct TrainOptions {
  uint64_t seed = 1;
  double seconds = 600;  // at most
  int imitation_epochs = 12;
  int rounds = 100;  // of PPO
  int walks = 48;    // a round
  int steps = 16;    // a walk, at most
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const TrainingPoint&)> on_progress = {};
};

struct Trained {
  Network network{NetworkShape{}};
  bool is_ppo = false;  // of the two parts the one that was kept
  std::vector<TrainingPoint> curve;
  double imitation_tries = 0;  // geometric mean of tries to 0.95 on the training trees
  double ppo_tries = 0;
};

using Trees = std::vector<std::unique_ptr<RecordedTree>>;

Trained train(const Trees& trees, const TrainOptions& options);
}  // namespace warploom::search
