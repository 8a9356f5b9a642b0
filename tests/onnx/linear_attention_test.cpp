// Attention whose state is carried from step to step, and the convolution that goes before it,
// against plain loops.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdint>
#include "base/error.h"
#include "one_operator.h"

namespace warploom {
namespace {
// The recurrence, one step after another.
TEST(LinearAttention, CarriesItsStateFromStepToStep) {
  const int64_t steps = 3;
  const Given q = drawn({1, steps, 4}, 1);  // 2 query heads over 1 state, keys of 2, values of 3
  const Given k = drawn({1, steps, 2}, 2);
  const Given v = drawn({1, steps, 3}, 3);
  const Given past = drawn({1, 1, 2, 3}, 4);
  const Given decay = drawn({1, steps, 1}, 5);
  const Given beta = drawn({1, steps, 1}, 6);
  Numbers state = past.values;
  Numbers wanted;
  for (int64_t t = 0; t < steps; ++t) {
    for (double& one : state)
      one *= std::exp(decay.values[t]);
    Numbers news(3);
    for (int64_t e = 0; e < 3; ++e) {
      double recalled = 0;
      for (int64_t d = 0; d < 2; ++d)
        recalled += state[d * 3 + e] * k.values[t * 2 + d];
      news[e] = beta.values[t] * (v.values[t * 3 + e] - recalled);
    }
    for (int64_t d = 0; d < 2; ++d)
      for (int64_t e = 0; e < 3; ++e)
        state[d * 3 + e] += k.values[t * 2 + d] * news[e];
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t e = 0; e < 3; ++e) {
        double sum = 0;
        for (int64_t d = 0; d < 2; ++d)
          sum += q.values[t * 4 + h * 2 + d] * state[d * 3 + e];
        wanted.push_back(sum * 0.5);
      }
  }
  const Made found = made({"LinearAttention",
                           {q, k, v, past, decay, beta},
                           {whole("q_num_heads", 2), whole("kv_num_heads", 1), real("scale", 0.5)},
                           2});
  expect_close(found[0], wanted);
  expect_close(found[1], state);
  EXPECT_EQ(
      refusal({"LinearAttention", {q, k, v}, {whole("q_num_heads", 2), whole("kv_num_heads", 1)}})
          .code,
      ErrorCode::kOnnxName);
}

TEST(CausalConvWithState, LooksBackIntoItsState) {
  const Given x = drawn({1, 2, 4}, 1);
  const Given w = drawn({2, 1, 3}, 2);
  const Given state = drawn({1, 2, 2}, 3);
  Numbers wanted;
  for (int64_t c = 0; c < 2; ++c) {
    Numbers line(state.values.begin() + c * 2, state.values.begin() + (c + 1) * 2);
    line.insert(line.end(), x.values.begin() + c * 4, x.values.begin() + (c + 1) * 4);
    for (int64_t i = 0; i < 4; ++i) {
      double sum = 0;
      for (int64_t t = 0; t < 3; ++t)
        sum += line[i + t] * w.values[c * 3 + t];
      wanted.push_back(sum / (1 + std::exp(-sum)));
    }
  }
  const Made found =
      made({"CausalConvWithState", {x, w, left_out(), state}, {text("activation", "silu")}, 2});
  expect_close(found[0], wanted);
  EXPECT_EQ(found[1], (Numbers{x.values[2], x.values[3], x.values[6], x.values[7]}));
  EXPECT_EQ(refusal({"CausalConvWithState", {x, drawn({3, 1, 3})}}).code, ErrorCode::kOnnxShape);
}
}  // namespace
}  // namespace warploom
