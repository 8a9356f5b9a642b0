// Network: the learned policy's function from features to scores, and its derivative.
//
// Two layers, the same for every action of a state, then three heads:
//
//   x  [actions, features]
//   h1 = tanh(x·W1 + b1)     h2 = tanh(h1·W2 + b2)
//   scores    h2·s           one an action: the policy is their softmax
//   promises  h2·p + c       one an action: the log odds that what it makes is in the best tenth
//   value     mean(h2)·v + d one a state: what is still to be gained
//
// With no more than these, states of any number of actions, of any family, share all weights.
//
//   Network network({.inputs = kFeatures});
//   network.randomize(random);
//   const Network::Pass pass = network.forward(x);
//   network.backward(pass, gradient_of_loss, sums);   // adds to `sums`, parameter by parameter
//
// Its gradients are tested against finite differences. The parameters lie in one vector, in the
// order W1, b1, W2, b2, s, p, c, v, d, matrices column by column.
#pragma once
#include <Eigen/Core>
#include <cstddef>
#include "base/random.h"

namespace warploom::search {
struct NetworkShape {
  size_t inputs = 0;
  size_t first = 48;  // units of the first layer
  size_t second = 32;

  size_t parameters() const { return (inputs + 1) * first + (first + 1) * second + 3 * second + 2; }

  friend bool operator==(const NetworkShape&, const NetworkShape&) = default;
};

class Network {
 public:
  // What the heads say; or how a loss moves with it.
  struct Heads {
    Eigen::VectorXd scores;
    Eigen::VectorXd promises;
    double value = 0;
  };

  struct Pass {
    Eigen::MatrixXd x;
    Eigen::MatrixXd first;
    Eigen::MatrixXd second;
    Heads heads;
  };

  explicit Network(const NetworkShape& shape)
      : shape_(shape), parameters_(Eigen::VectorXd::Zero(Eigen::Index(shape.parameters()))) {}

  // Small numbers: layers keep the size of what goes through them, heads begin near 0.
  void randomize(Random& random);

  Pass forward(Eigen::MatrixXd x) const;
  // Adds to `sums` how the loss moves with each parameter, by how it moves with the heads.
  void backward(const Pass& pass, const Heads& gradient, Eigen::VectorXd& sums) const;

  const NetworkShape& shape() const { return shape_; }

  const Eigen::VectorXd& parameters() const { return parameters_; }

  Eigen::VectorXd& parameters() { return parameters_; }

 private:
  NetworkShape shape_;
  Eigen::VectorXd parameters_;
};

// Adam (Kingma and Ba, arXiv 1412.6980): steps along gradients, each parameter's by how large its
// gradients were.
class Adam {
 public:
  explicit Adam(size_t parameters)
      : mean_(Eigen::VectorXd::Zero(Eigen::Index(parameters))), square_(mean_) {}

  void step(Eigen::VectorXd& parameters, const Eigen::VectorXd& gradient, double rate);

 private:
  Eigen::VectorXd mean_;
  Eigen::VectorXd square_;
  int steps_ = 0;
};
}  // namespace warploom::search
