// The policy's network and losses: gradients against finite differences; weights as files.
#include <gtest/gtest.h>
#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include "base/error.h"
#include "base/random.h"
#include "search/policy/features.h"
#include "search/policy/losses.h"
#include "search/policy/network.h"
#include "search/policy/weights.h"

namespace warploom::search {
namespace {
using Eigen::VectorXd;
using nlohmann::json;

constexpr double kStep = 1e-5;

VectorXd random_vector(Eigen::Index size, Random& random) {
  VectorXd out(size);
  for (double& one : out)
    one = random.normal();
  return out;
}

// The derivative of `f` by each of the numbers, by central differences.
VectorXd differences(VectorXd at, const std::function<double(const VectorXd&)>& f) {
  VectorXd out(at.size());
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    const double middle = at[i];
    at[i] = middle + kStep;
    const double above = f(at);
    at[i] = middle - kStep;
    out[i] = (above - f(at)) / (2 * kStep);
    at[i] = middle;
  }
  return out;
}

void expect_near(const VectorXd& found, const VectorXd& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  EXPECT_LT((found - wanted).norm(), 1e-6 * (1 + wanted.norm()));
}

// A loss in which all three heads count, each action differently.
double mixed_loss(const Network::Heads& heads, const Network::Heads& by) {
  return heads.scores.dot(by.scores) + heads.promises.dot(by.promises) + heads.value * by.value;
}

TEST(Network, GradientsAreThoseOfFiniteDifferences) {
  Random random(5);
  Network network({.inputs = 7, .first = 5, .second = 4});
  network.randomize(random);
  network.parameters() += 0.1 * random_vector(network.parameters().size(), random);
  const Eigen::MatrixXd x = random_vector(3 * 7, random).reshaped(3, 7);
  const Network::Heads by{random_vector(3, random), random_vector(3, random), 0.7};
  const auto loss = [&](const VectorXd& parameters) {
    Network moved = network;
    moved.parameters() = parameters;
    return mixed_loss(moved.forward(x).heads, by);
  };
  VectorXd sums = VectorXd::Zero(network.parameters().size());
  network.backward(network.forward(x), by, sums);
  expect_near(sums, differences(network.parameters(), loss));
}

TEST(Network, ScoresOfAnActionDoNotDependOnTheOthers) {
  Random random(6);
  Network network({.inputs = 4});
  network.randomize(random);
  const Eigen::MatrixXd x = random_vector(12, random).reshaped(3, 4);
  const auto all = network.forward(x).heads;
  const auto one = network.forward(x.row(1)).heads;
  EXPECT_NEAR(all.scores[1], one.scores[0], 1e-12);
  EXPECT_NEAR(all.promises[1], one.promises[0], 1e-12);
}

TEST(Network, AStateWithoutActionsIsWorthNothing) {
  Random random(6);
  Network network({.inputs = 4});
  network.randomize(random);
  const auto heads = network.forward(Eigen::MatrixXd(0, 4)).heads;
  EXPECT_EQ(heads.scores.size(), 0);
  EXPECT_EQ(heads.value, 0);
}

TEST(Network, AdamFindsTheLeastOfASquare) {
  VectorXd at = VectorXd::Constant(3, 4);
  const VectorXd least = Eigen::Vector3d(1, -2, 3);
  Adam adam(3);
  for (int i = 0; i < 2000; ++i)
    adam.step(at, at - least, 0.01);
  EXPECT_LT((at - least).norm(), 1e-2);
}

TEST(Losses, CrossEntropysGradient) {
  Random random(1);
  const VectorXd scores = random_vector(5, random);
  const VectorXd wanted = log_softmax(random_vector(5, random)).array().exp().matrix();
  const auto loss = [&](const VectorXd& at) { return cross_entropy(at, wanted).value; };
  expect_near(cross_entropy(scores, wanted).gradient, differences(scores, loss));
}

TEST(Losses, ClippedRatiosGradientWithinTheClip) {
  Random random(2);
  const VectorXd scores = random_vector(5, random);
  const double before = log_softmax(scores)[2] - 0.05;
  for (const double advantage : {1.5, -1.5}) {
    const auto loss = [&](const VectorXd& at) {
      return clipped_ratio(at, 2, before, advantage, 0.2).value;
    };
    const auto found = clipped_ratio(scores, 2, before, advantage, 0.2);
    expect_near(found.gradient, differences(scores, loss));
    EXPECT_GT(found.gradient.norm(), 0.1);
  }
}

TEST(Losses, BeyondTheClipAGoodActionPullsNoMoreAndABadOneStillPushes) {
  const VectorXd scores = VectorXd::Zero(4);
  const double before = log_softmax(scores)[0] - 1;  // e times as likely as it was
  EXPECT_EQ(clipped_ratio(scores, 0, before, 1, 0.2).gradient.norm(), 0);
  EXPECT_GT(clipped_ratio(scores, 0, before, -1, 0.2).gradient.norm(), 0.1);
}

TEST(Losses, EntropysGradient) {
  Random random(3);
  const VectorXd scores = random_vector(6, random);
  const auto loss = [](const VectorXd& at) { return negative_entropy(at).value; };
  expect_near(negative_entropy(scores).gradient, differences(scores, loss));
}

TEST(Losses, OddsGradientAlsoFarFromZero) {
  const VectorXd odds = Eigen::Vector4d(-40, -0.3, 0.8, 40);
  const VectorXd wanted = Eigen::Vector4d(1, 0, 1, 0);
  const auto loss = [&](const VectorXd& at) { return odds_loss(at, wanted, 4).value; };
  expect_near(odds_loss(odds, wanted, 4).gradient, differences(odds, loss));
}

Weights random_weights() {
  Random random(9);
  Weights out{Network({kFeatures, 6, 5}), {{"seed", 9}}};
  out.network.randomize(random);
  return out;
}

ErrorCode code_of(const json& in) {
  const auto read = weights_from(in.dump(), "a test");
  return read ? ErrorCode::kInternal : read.error().code;
}

TEST(Weights, GoThroughTextButForTheirLastDigits) {
  const Weights weights = random_weights();
  const auto read = weights_from(weights_text(weights), "a test");
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->network.shape(), weights.network.shape());
  EXPECT_EQ(read->trained, weights.trained);
  const auto off = (read->network.parameters() - weights.network.parameters()).norm();
  EXPECT_LT(off, 1e-4 * weights.network.parameters().norm());
  EXPECT_EQ(weights_text(*read), weights_text(weights));
}

TEST(Weights, AFeatureThatTheyDoNotKnowCountsForNothing) {
  json in = json::parse(weights_text(random_weights()));
  auto& features = in["features"];
  auto& parameters = in["parameters"];
  features.erase(features.size() - 1);
  for (size_t unit = 6; unit-- > 0;)
    parameters.erase((unit + 1) * kFeatures - 1);
  const auto read = weights_from(in.dump(), "a test");
  ASSERT_TRUE(read) << describe(read.error());
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(2, Eigen::Index(kFeatures));
  x(1, Eigen::Index(kFeatures) - 1) = 1;
  const auto heads = read->network.forward(x).heads;
  EXPECT_EQ(heads.scores[0], heads.scores[1]);
}

TEST(Weights, BrokenOnesAreRefused) {
  const json good = json::parse(weights_text(random_weights()));
  json in = good;
  in["features"][0] = "phase_of_the_moon";
  EXPECT_EQ(code_of(in), ErrorCode::kWeightsInvalid);
  in = good;
  in["features"][1] = in["features"][0];
  EXPECT_EQ(code_of(in), ErrorCode::kWeightsInvalid);
  in = good;
  in["parameters"].erase(0);
  EXPECT_EQ(code_of(in), ErrorCode::kWeightsInvalid);
  in = good;
  in["parameters"][3] = nullptr;
  EXPECT_EQ(code_of(in), ErrorCode::kWeightsInvalid);
  in = good;
  in["layers"] = {0, 5};
  EXPECT_EQ(code_of(in), ErrorCode::kWeightsInvalid);
  in = good;
  in["version"] = 7;
  EXPECT_EQ(code_of(in), ErrorCode::kWeightsInvalid);
  EXPECT_EQ(code_of({{"format", "another"}}), ErrorCode::kWeightsInvalid);
  EXPECT_EQ(code_of(json::array()), ErrorCode::kWeightsInvalid);
  EXPECT_EQ(weights_from("{\"format\": ", "a test").error().code, ErrorCode::kWeightsInvalid);
}

TEST(Weights, ANumberThatIsNotFiniteIsRefused) {
  std::string text = weights_text(random_weights());
  const size_t at = text.find("\"parameters\":[") + 14;
  text.insert(at, "1e999,");
  EXPECT_EQ(weights_from(text, "a test").error().code, ErrorCode::kWeightsInvalid);
}

TEST(Weights, TheProgramCarriesSomeThatItsFeaturesFit) {
  const auto shipped = shipped_weights();
  ASSERT_TRUE(shipped) << describe(shipped.error());
  EXPECT_LT(weights_text(*shipped).size(), 1 << 20);
}
}  // namespace
}  // namespace warploom::search
