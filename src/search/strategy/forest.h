// Forest: a random forest that tells two classes apart, for a few hundred rows of a few dozen
// numbers. Trees see rows drawn with replacement, and at each split a part of the columns; a split
// is where the weighted Gini impurity of both sides is least (Breiman 2001).
//
//   const Forest forest(rows, weights, random);      // weights[i] > 0: good, else bad
//   forest.probability(row);                         // of being good, 0 to 1
//
// A good row counts by its weight and a bad one as 1.
#pragma once
#include <cstddef>
#include <span>
#include <vector>
#include "base/random.h"

namespace warploom::search {
using Row = std::vector<double>;

class Forest {
 public:
  // Rows of one length, at least one of them.
  Forest(std::span<const Row> rows, std::span<const double> weights, Random& random);

  double probability(const Row& row) const;

 private:
  struct Split {
    size_t column = 0;
    double at = 0;    // below it: left
    size_t left = 0;  // 0: a leaf
    size_t right = 0;
    double probability = 0;  // of a leaf
  };

  using Tree = std::vector<Split>;  // the first one is the root

  class Grower;

  std::vector<Tree> trees_;
};
}  // namespace warploom::search
