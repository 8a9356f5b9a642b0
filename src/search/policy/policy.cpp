#include "search/policy/policy.h"
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include "base/error.h"
#include "search/policy/analytic.h"
#include "search/policy/learned.h"
#include "search/policy/uniform.h"
#include "search/policy/weights.h"

namespace warploom::search {
std::vector<double> softmax(std::span<const double> scores, double temperature) {
  std::vector<double> out(scores.begin(), scores.end());
  if (out.empty()) return out;
  const double most = std::ranges::max(out);
  double sum = 0;
  for (double& one : out) {
    one = std::exp((one - most) / temperature);
    sum += one;
  }
  for (double& one : out)
    one /= sum;
  return out;
}

Result<PolicyPtr> make_policy(PolicyKind kind, const std::string& weights) {
  if (kind == PolicyKind::uniform) return std::make_shared<UniformPolicy>();
  if (kind == PolicyKind::analytic) return std::make_shared<AnalyticPolicy>();
  WARPLOOM_TRY(const Weights trained, weights.empty() ? shipped_weights() : read_weights(weights));
  return std::make_shared<LearnedPolicy>(trained);
}
}  // namespace warploom::search
