#include "search/policy/losses.h"
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include "base/casts.h"

namespace warploom::search {
using Eigen::VectorXd;

VectorXd log_softmax(const VectorXd& scores) {
  const double most = scores.maxCoeff();
  const double sum = (scores.array() - most).exp().sum();
  return (scores.array() - most - std::log(sum)).matrix();
}

Loss cross_entropy(const VectorXd& scores, const VectorXd& wanted) {
  const VectorXd logs = log_softmax(scores);
  return {-wanted.dot(logs), logs.array().exp().matrix() - wanted};
}

Loss clipped_ratio(const VectorXd& scores, size_t chosen, double before, double advantage,
                   double clip) {
  const auto place = as_int64(chosen);
  const VectorXd logs = log_softmax(scores);
  const double ratio = std::exp(logs[place] - before);
  const double clipped = std::clamp(ratio, 1 - clip, 1 + clip);
  Loss out{-std::min(ratio * advantage, clipped * advantage), VectorXd::Zero(scores.size())};
  if (clipped * advantage < ratio * advantage) return out;  // nothing is to be gained by moving on
  out.gradient = ratio * advantage * logs.array().exp().matrix();
  out.gradient[place] -= ratio * advantage;
  return out;
}

Loss negative_entropy(const VectorXd& scores) {
  const VectorXd logs = log_softmax(scores);
  const VectorXd odds = logs.array().exp().matrix();
  const double value = odds.dot(logs);
  return {value, (odds.array() * (logs.array() - value)).matrix()};
}

Loss odds_loss(const VectorXd& odds, const VectorXd& wanted, double weight) {
  Loss out{0, VectorXd::Zero(odds.size())};
  const double share = 1 / std::max(1.0, as_double(odds.size()));
  for (Eigen::Index i = 0; i < odds.size(); ++i) {
    const double counted = share * (wanted[i] > 0 ? weight : 1);
    const double likely = 1 / (1 + std::exp(-odds[i]));
    // log(1 + exp(odds)) without overflow
    const double soft = std::max(odds[i], 0.0) + std::log1p(std::exp(-std::abs(odds[i])));
    out.value += counted * (soft - wanted[i] * odds[i]);
    out.gradient[i] = counted * (likely - wanted[i]);
  }
  return out;
}
}  // namespace warploom::search
