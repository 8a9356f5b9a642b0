#include "search/policy/network.h"
#include <Eigen/Core>
#include <cmath>
#include <utility>
#include "base/random.h"

namespace warploom::search {
namespace {
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// The parameters, const or not, as matrices.
template <class Matrix, class Vector, class Scalar> struct Views {
  Matrix w1;
  Vector b1;
  Matrix w2;
  Vector b2;
  Vector scores;
  Vector promises;
  Scalar& promise_bias;
  Vector value;
  Scalar& value_bias;
};

template <class Matrix, class Vector, class Scalar>
Views<Matrix, Vector, Scalar> views_of(const NetworkShape& shape, Scalar* data) {
  const auto inputs = Index(shape.inputs);
  const auto first = Index(shape.first);
  const auto second = Index(shape.second);
  Scalar* const b1 = data + inputs * first;
  Scalar* const w2 = b1 + first;
  Scalar* const b2 = w2 + first * second;
  Scalar* const scores = b2 + second;
  Scalar* const promises = scores + second;
  Scalar* const value = promises + second + 1;
  return {Matrix(data, inputs, first),
          Vector(b1, first),
          Matrix(w2, first, second),
          Vector(b2, second),
          Vector(scores, second),
          Vector(promises, second),
          promises[second],
          Vector(value, second),
          value[second]};
}

auto views(const NetworkShape& shape, const VectorXd& parameters) {
  using Matrix = Eigen::Map<const MatrixXd>;
  using Vector = Eigen::Map<const VectorXd>;
  return views_of<Matrix, Vector, const double>(shape, parameters.data());
}

auto views(const NetworkShape& shape, VectorXd& parameters) {
  using Matrix = Eigen::Map<MatrixXd>;
  using Vector = Eigen::Map<VectorXd>;
  return views_of<Matrix, Vector, double>(shape, parameters.data());
}

void fill(auto& matrix, double deviation, Random& random) {
  for (Index i = 0; i < matrix.size(); ++i)
    matrix.data()[i] = deviation * random.normal();
}
}  // namespace

void Network::randomize(Random& random) {
  constexpr double kHead = 0.1;
  parameters_.setZero();
  auto all = views(shape_, parameters_);
  const double head = kHead / std::sqrt(double(shape_.second));
  fill(all.w1, 1 / std::sqrt(double(shape_.inputs)), random);
  fill(all.w2, 1 / std::sqrt(double(shape_.first)), random);
  fill(all.scores, head, random);
  fill(all.promises, head, random);
  fill(all.value, head, random);
}

Network::Pass Network::forward(MatrixXd x) const {
  const auto all = views(shape_, parameters_);
  Pass out;
  out.x = std::move(x);
  out.first = ((out.x * all.w1).rowwise() + all.b1.transpose()).array().tanh().matrix();
  out.second = ((out.first * all.w2).rowwise() + all.b2.transpose()).array().tanh().matrix();
  out.heads.scores = out.second * all.scores;
  out.heads.promises = ((out.second * all.promises).array() + all.promise_bias).matrix();
  if (out.x.rows() > 0)
    out.heads.value = out.second.colwise().mean().dot(all.value) + all.value_bias;
  return out;
}

void Network::backward(const Pass& pass, const Heads& gradient, VectorXd& sums) const {
  if (pass.x.rows() == 0) return;
  const auto all = views(shape_, parameters_);
  auto out = views(shape_, sums);
  const double share = gradient.value / double(pass.x.rows());
  out.scores += pass.second.transpose() * gradient.scores;
  out.promises += pass.second.transpose() * gradient.promises;
  out.promise_bias += gradient.promises.sum();
  out.value += share * pass.second.colwise().sum().transpose();
  out.value_bias += gradient.value;
  MatrixXd second =
      gradient.scores * all.scores.transpose() + gradient.promises * all.promises.transpose();
  second.rowwise() += share * all.value.transpose();
  second.array() *= 1 - pass.second.array().square();
  out.w2 += pass.first.transpose() * second;
  out.b2 += second.colwise().sum().transpose();
  MatrixXd first = second * all.w2.transpose();
  first.array() *= 1 - pass.first.array().square();
  out.w1 += pass.x.transpose() * first;
  out.b1 += first.colwise().sum().transpose();
}

void Adam::step(VectorXd& parameters, const VectorXd& gradient, double rate) {
  constexpr double kMean = 0.9;
  constexpr double kSquare = 0.999;
  constexpr double kLeast = 1e-8;
  ++steps_;
  mean_ = kMean * mean_ + (1 - kMean) * gradient;
  square_ = kSquare * square_ + (1 - kSquare) * gradient.cwiseAbs2();
  const double mean_scale = 1 / (1 - std::pow(kMean, steps_));
  const double square_scale = 1 / (1 - std::pow(kSquare, steps_));
  parameters.array() -=
      rate * mean_scale * mean_.array() / ((square_scale * square_.array()).sqrt() + kLeast);
}
}  // namespace warploom::search
