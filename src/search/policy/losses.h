// Losses of the policy's training, each with its derivative by what the network's heads say.
//
// All are of one state: its actions' scores s, of which the policy is p = softmax(s).
//
//   cross entropy   -Σ q·log p            by a score: p - q
//   clipped ratio   -min(r·A, clip(r)·A)  r = p(chosen) / p before, A the advantage
//   entropy          Σ p·log p            to be small: the policy stays undecided for long
//   odds            -t·log σ(o) - (1-t)·log(1 - σ(o))     of the promises
#pragma once
#include <Eigen/Core>
#include <cstddef>

namespace warploom::search {
// A loss, and how it moves with each score.
struct Loss {
  double value = 0;
  Eigen::VectorXd gradient;
};

// Logarithms of the softmax.
Eigen::VectorXd log_softmax(const Eigen::VectorXd& scores);

Loss cross_entropy(const Eigen::VectorXd& scores, const Eigen::VectorXd& wanted);

// `before`: the logarithm of the chosen action's probability when it was chosen. `clip`: how far
// the ratio may move from 1 for an advantage to count.
Loss clipped_ratio(const Eigen::VectorXd& scores, size_t chosen, double before, double advantage,
                   double clip);

// Minus the policy's entropy.
Loss negative_entropy(const Eigen::VectorXd& scores);

// Mean over the log odds; `wanted` of 0 or 1, positive ones counting `weight` times.
Loss odds_loss(const Eigen::VectorXd& odds, const Eigen::VectorXd& wanted, double weight);
}  // namespace warploom::search
