#include "search/strategy/forest.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/random.h"

namespace warploom::search {
namespace {
constexpr size_t kTrees = 48;
constexpr size_t kDeepest = 12;
constexpr size_t kLeastRows = 2;  // of a leaf
}  // namespace

// Grows one tree.
class Forest::Grower {
 public:
  Grower(std::span<const Row> rows, std::span<const double> weights, Random& random)
      : rows_(rows), weights_(weights), random_(random) {}

  Tree grow() {
    std::vector<size_t> drawn(rows_.size());
    for (size_t& one : drawn)
      one = random_.below(rows_.size());
    tree_.clear();
    add(std::move(drawn), 0);
    return std::move(tree_);
  }

 private:
  struct Mass {
    double good = 0;
    double all = 0;

    void add(double weight) {
      good += std::max(0.0, weight);
      all += weight > 0 ? weight : 1;
    }

    double gini() const {
      const double share = all > 0 ? good / all : 0;
      return all * share * (1 - share);
    }
  };

  struct Best {
    double gini = HUGE_VAL;
    size_t column = 0;
    double at = 0;
  };

  Mass mass_of(const std::vector<size_t>& drawn) const {
    Mass out;
    for (const size_t i : drawn)
      out.add(weights_[i]);
    return out;
  }

  void look_at(size_t column, std::vector<size_t>& drawn, const Mass& whole, Best& best) const {
    std::ranges::stable_sort(drawn, {}, [&](size_t i) { return rows_[i][column]; });
    Mass left;
    for (size_t i = 0; i + 1 < drawn.size(); ++i) {
      left.add(weights_[drawn[i]]);
      const double here = rows_[drawn[i]][column];
      const double next = rows_[drawn[i + 1]][column];
      const bool is_leaf_small = i + 1 < kLeastRows || drawn.size() - i - 1 < kLeastRows;
      if (here == next || is_leaf_small) continue;
      const Mass right{whole.good - left.good, whole.all - left.all};
      const double gini = left.gini() + right.gini();
      if (gini < best.gini) best = {gini, column, (here + next) / 2};
    }
  }

  size_t add(std::vector<size_t> drawn, size_t depth) {
    const size_t number = tree_.size();
    const Mass whole = mass_of(drawn);
    tree_.push_back({.probability = whole.all > 0 ? whole.good / whole.all : 0});
    if (depth == kDeepest || whole.good <= 0 || whole.good >= whole.all) return number;
    const size_t columns = rows_[0].size();
    const auto tried = as_size(std::ceil(std::sqrt(as_double(columns))));
    Best best;
    for (size_t i = 0; i < tried; ++i)
      look_at(random_.below(columns), drawn, whole, best);
    if (best.gini >= whole.gini()) return number;
    std::vector<size_t> left;
    std::vector<size_t> right;
    for (const size_t i : drawn)
      (rows_[i][best.column] < best.at ? left : right).push_back(i);
    const size_t left_number = add(std::move(left), depth + 1);
    const size_t right_number = add(std::move(right), depth + 1);
    tree_[number].column = best.column;
    tree_[number].at = best.at;
    tree_[number].left = left_number;
    tree_[number].right = right_number;
    return number;
  }

  std::span<const Row> rows_;
  std::span<const double> weights_;
  Random& random_;
  Tree tree_;
};

Forest::Forest(std::span<const Row> rows, std::span<const double> weights, Random& random) {
  Grower grower(rows, weights, random);
  for (size_t i = 0; i < kTrees; ++i)
    trees_.push_back(grower.grow());
}

double Forest::probability(const Row& row) const {
  double sum = 0;
  for (const Tree& tree : trees_) {
    const Split* at = &tree[0];
    while (at->left != 0)
      at = &tree[row[at->column] < at->at ? at->left : at->right];
    sum += at->probability;
  }
  return sum / as_double(trees_.size());
}
}  // namespace warploom::search
