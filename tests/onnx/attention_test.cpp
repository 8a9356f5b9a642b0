// Attention and what goes with it, against plain loops.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "one_operator.h"

namespace warploom {
namespace {
constexpr double kNever = -std::numeric_limits<double>::infinity();

// Attention of heads that stand apart, one number after another.
struct Plain {
  int64_t batch = 1;
  int64_t heads = 1;   // of queries
  int64_t shared = 1;  // of keys
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t size = 1;
  double scale = 1;
  double softcap = 0;
  // What is added to a score: by batch, head, query, key.
  std::function<double(int64_t, int64_t, int64_t, int64_t)> bias = {};

  double score(const Numbers& q, const Numbers& k, int64_t b, int64_t h, int64_t i,
               int64_t j) const {
    const int64_t own = ((b * heads + h) * queries + i) * size;
    const int64_t other = ((b * shared + h / (heads / shared)) * keys + j) * size;
    double sum = 0;
    for (int64_t d = 0; d < size; ++d)
      sum += q[own + d] * k[other + d];
    sum *= scale;
    if (softcap > 0) sum = softcap * std::tanh(sum / softcap);
    return bias ? sum + bias(b, h, i, j) : sum;
  }

  // [B,H,S,D] of values with as many numbers as keys have.
  Numbers run(const Numbers& q, const Numbers& k, const Numbers& v) const {
    Numbers out;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < queries; ++i)
          add_row(q, k, v, b, h, i, out);
    return out;
  }

  void add_row(const Numbers& q, const Numbers& k, const Numbers& v, int64_t b, int64_t h,
               int64_t i, Numbers& out) const {
    Numbers scores;
    for (int64_t j = 0; j < keys; ++j)
      scores.push_back(score(q, k, b, h, i, j));
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& one : scores) {
      one = top == kNever ? 0 : std::exp(one - top);
      sum += one;
    }
    const int64_t first = (b * shared + h / (heads / shared)) * keys * size;
    for (int64_t d = 0; d < size; ++d) {
      double value = 0;
      for (int64_t j = 0; j < keys; ++j)
        value += scores[j] * v[first + j * size + d];
      out.push_back(sum > 0 ? value / sum : 0);
    }
  }
};

// [B,S,H·D] as [B,H,S,D].
Numbers apart(const Numbers& x, int64_t batch, int64_t rows, int64_t heads, int64_t size) {
  Numbers out;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t s = 0; s < rows; ++s)
        for (int64_t d = 0; d < size; ++d)
          out.push_back(x[((b * rows + s) * heads + h) * size + d]);
  return out;
}

Numbers joined(const Numbers& x, int64_t batch, int64_t rows, int64_t heads, int64_t size) {
  return apart(x, batch, heads, rows, size);  // the same exchange back
}

double inverse_root(int64_t size) {
  return 1 / std::sqrt(static_cast<double>(size));
}

TEST(Attention, CausalHeadsSeeNoLaterKeys) {
  const Given q = drawn({2, 3, 5, 4}, 1);
  const Given k = drawn({2, 3, 5, 4}, 2);
  const Given v = drawn({2, 3, 5, 4}, 3);
  Plain plain{2, 3, 3, 5, 5, 4, inverse_root(4)};
  plain.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? 0 : kNever; };
  const Made found = made({"Attention", {q, k, v}, {whole("is_causal", 1)}});
  expect_close(found[0], plain.run(q.values, k.values, v.values));
}

TEST(Attention, QueryHeadsShareKeysInRows) {
  const Given q = drawn({2, 3, 6 * 4}, 1);
  const Given k = drawn({2, 5, 2 * 4}, 2);
  const Given v = drawn({2, 5, 2 * 4}, 3);
  Plain plain{2, 6, 2, 3, 5, 4, 0.25};
  plain.softcap = 2;
  const Made found = made({"Attention",
                           {q, k, v},
                           {whole("q_num_heads", 6), whole("kv_num_heads", 2), real("scale", 0.25),
                            real("softcap", 2)}});
  const Numbers wanted = plain.run(apart(q.values, 2, 3, 6, 4), apart(k.values, 2, 5, 2, 4),
                                   apart(v.values, 2, 5, 2, 4));
  expect_close(found[0], joined(wanted, 2, 3, 6, 4));
}

TEST(Attention, AQueryThatSeesNothingMakesZeros) {
  const Given q = drawn({1, 1, 2, 4}, 1);
  const Given k = drawn({1, 1, 3, 4}, 2);
  const Given v = drawn({1, 1, 3, 4}, 3);
  const Given mask = of(Dtype::boolean, {2, 3}, {0, 0, 0, 1, 0, 1});
  Plain plain{1, 1, 1, 2, 3, 4, 0.5};
  plain.bias = [&](int64_t, int64_t, int64_t i, int64_t j) {
    return mask.values[i * 3 + j] != 0 ? 0 : kNever;
  };
  const Made found = made({"Attention", {q, k, v, mask}});
  expect_close(found[0], plain.run(q.values, k.values, v.values));
  EXPECT_EQ(found[0][0], 0);
}

TEST(Attention, AShortMaskHidesTheKeysThatItLacks) {
  const Given q = drawn({1, 2, 2, 4}, 1);
  const Given k = drawn({1, 2, 4, 4}, 2);
  const Given v = drawn({1, 2, 4, 4}, 3);
  const Given mask = drawn({2, 1, 3}, 4);  // [heads, queries, keys]
  Plain plain{1, 2, 2, 2, 4, 4, 0.5};
  plain.bias = [&](int64_t, int64_t h, int64_t, int64_t j) {
    return j < 3 ? mask.values[h * 3 + j] : kNever;
  };
  const Made found = made({"Attention", {q, k, v, mask}});
  expect_close(found[0], plain.run(q.values, k.values, v.values));
}

TEST(Attention, ThePastComesFirstAndComesOutAgain) {
  const Given q = drawn({1, 2, 2, 4}, 1);
  const Given k = drawn({1, 2, 2, 4}, 2);
  const Given v = drawn({1, 2, 2, 4}, 3);
  const Given past_k = drawn({1, 2, 3, 4}, 4);
  const Given past_v = drawn({1, 2, 3, 4}, 5);
  const auto both = [](const Given& past, const Given& now) {
    Numbers out;
    for (int64_t h = 0; h < 2; ++h) {
      out.insert(out.end(), past.values.begin() + h * 12, past.values.begin() + (h + 1) * 12);
      out.insert(out.end(), now.values.begin() + h * 8, now.values.begin() + (h + 1) * 8);
    }
    return out;
  };
  Plain plain{1, 2, 2, 2, 5, 4, 0.5};
  plain.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 3 ? 0 : kNever; };
  const Made found =
      made({"Attention", {q, k, v, left_out(), past_k, past_v}, {whole("is_causal", 1)}, 3});
  expect_close(found[0], plain.run(q.values, both(past_k, k), both(past_v, v)));
  EXPECT_EQ(found[1], both(past_k, k));
  EXPECT_EQ(found[2], both(past_v, v));
}

TEST(Attention, WindowsAndCountsOfKeysLimitWhatIsSeen) {
  const Given q = drawn({2, 1, 2, 4}, 1);
  const Given k = drawn({2, 1, 6, 4}, 2);
  const Given v = drawn({2, 1, 6, 4}, 3);
  const Given counts = of(Dtype::i64, {2}, {4, 6});
  Plain plain{2, 1, 1, 2, 6, 4, 0.5};
  plain.bias = [&](int64_t b, int64_t, int64_t i, int64_t j) {
    const auto count = static_cast<int64_t>(counts.values[b]);
    const int64_t place = i + count - 2;
    return j < count && j <= place + 1 && j >= place - 1 ? 0 : kNever;
  };
  const Made found = made({"Attention",
                           {q, k, v, left_out(), left_out(), left_out(), counts},
                           {whole("left_window_size", 1), whole("right_window_size", 1)}});
  expect_close(found[0], plain.run(q.values, k.values, v.values));
}

TEST(Attention, TheFourthOutputIsWhatItsModeSays) {
  const Given q = drawn({1, 1, 2, 4}, 1);
  const Given k = drawn({1, 1, 3, 4}, 2);
  const Given v = drawn({1, 1, 3, 4}, 3);
  const Given mask = drawn({2, 3}, 4);
  const auto of_mode = [&](int64_t mode) {
    return made({"Attention",
                 {q, k, v, mask},
                 {whole("qk_matmul_output_mode", mode), real("softcap", 1)},
                 4})[3];
  };
  const Plain plain{1, 1, 1, 2, 3, 4, 0.5};
  Numbers raw;
  Numbers capped;
  Numbers biased;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      raw.push_back(plain.score(q.values, k.values, 0, 0, i, j));
      capped.push_back(std::tanh(raw.back()));
      biased.push_back(capped.back() + mask.values[i * 3 + j]);
    }
  expect_close(of_mode(0), raw);
  expect_close(of_mode(1), capped);
  expect_close(of_mode(2), biased);
  const Numbers chosen = of_mode(3);
  EXPECT_NEAR(chosen[0] + chosen[1] + chosen[2], 1, 1e-9);
}

TEST(Attention, BadInputsAreRefusedByCode) {
  const Given q = drawn({1, 3, 5, 4});
  const Given k = drawn({1, 2, 5, 4});
  const Given mask = of(Dtype::i32, {5, 5}, Numbers(25, 1));
  EXPECT_EQ(refusal({"Attention", {q, k, k}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"Attention", {k, k, k, mask}}).code, ErrorCode::kOnnxType);
  EXPECT_EQ(refusal({"Attention", {k, k, k, drawn({5, 6})}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"Attention", {k, k, k, left_out(), k}}).code, ErrorCode::kOnnxName);
  EXPECT_EQ(refusal({"Attention", {drawn({1, 5, 6}), drawn({1, 5, 6}), drawn({1, 5, 6})}}).code,
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal({"Attention", {k, k, k}, {whole("left_window_size", -2)}}).code,
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal({"Attention", {k, k, k}, {}, 1, 22}).code, ErrorCode::kOnnxUnknownOperator);
}

// Pairs (a, b) of x turned by angles: (a cos - b sin, a sin + b cos).
Numbers turned(const Numbers& x, int64_t size, const std::function<double(int64_t, int64_t)>& angle,
               bool neighbours) {
  Numbers out = x;
  const auto half = size / 2;
  for (int64_t row = 0; row < static_cast<int64_t>(x.size()) / size; ++row)
    for (int64_t i = 0; i < half; ++i) {
      const int64_t a = row * size + (neighbours ? 2 * i : i);
      const int64_t b = row * size + (neighbours ? 2 * i + 1 : i + half);
      const double w = angle(row, i);
      out[a] = x[a] * std::cos(w) - x[b] * std::sin(w);
      out[b] = x[a] * std::sin(w) + x[b] * std::cos(w);
    }
  return out;
}

// cos and sin of place · (i + 1) / 8.
Given cache_of(int64_t places, int64_t half, bool sines) {
  Numbers values;
  for (int64_t p = 0; p < places; ++p)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p * (i + 1)) / 8;
      values.push_back(sines ? std::sin(angle) : std::cos(angle));
    }
  return of(Dtype::f32, {places, half}, values);
}

TEST(RotaryEmbedding, TurnsPairsByThePositionsOfTheirRows) {
  const Given x = drawn({1, 2, 3, 6}, 1);  // [B,H,S,D]
  const Given positions = of(Dtype::i64, {1, 3}, {4, 0, 2});
  const auto angle = [&](int64_t row, int64_t i) {
    return positions.values[row % 3] * static_cast<double>(i + 1) / 8;
  };
  for (const bool neighbours : {false, true}) {
    const Made found = made({"RotaryEmbedding",
                             {x, cache_of(5, 3, false), cache_of(5, 3, true), positions},
                             {whole("interleaved", neighbours)}});
    expect_close(found[0], turned(x.values, 6, angle, neighbours), 1e-6);
  }
}

TEST(RotaryEmbedding, LeavesWhatLiesBehindTheTurnedPart) {
  const Given x = drawn({1, 3, 2 * 6}, 1);  // [B,S,H·D]
  const Given cosines = of(Dtype::f32, {1, 3, 2}, Numbers(6, 0));
  const Given sines = of(Dtype::f32, {1, 3, 2}, Numbers(6, 1));
  const Made found = made({"RotaryEmbedding",
                           {x, cosines, sines},
                           {whole("num_heads", 2), whole("rotary_embedding_dim", 4)}});
  Numbers wanted;
  for (int64_t row = 0; row < 6; ++row) {
    const double* const at = x.values.data() + row * 6;
    wanted.insert(wanted.end(), {-at[2], -at[3], at[0], at[1], at[4], at[5]});
  }
  expect_close(found[0], wanted);
}

TEST(RotaryEmbedding, BadInputsAreRefusedByCode) {
  const Given x = drawn({1, 2, 3, 6});
  const Given cache = cache_of(5, 3, false);
  const Given positions = of(Dtype::i64, {1, 3}, {0, 1, 2});
  EXPECT_EQ(refusal({"RotaryEmbedding", {x, cache, cache}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(
      refusal({"RotaryEmbedding", {x, cache, cache, positions}, {whole("rotary_embedding_dim", 5)}})
          .code,
      ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal({"RotaryEmbedding", {drawn({3, 6}), cache, cache, positions}}).code,
            ErrorCode::kOnnxShape);
}

// ONNX Runtime's.
Case theirs(std::string op, std::vector<Given> inputs, std::vector<std::string> attributes,
            int outputs = 1) {
  return {std::move(op), std::move(inputs), std::move(attributes), outputs, 20, "com.microsoft"};
}

TEST(MultiHeadAttention, ReadsRowsWithBiasesAndAMaskOfKeys) {
  const Given q = drawn({2, 3, 8}, 1);
  const Given k = drawn({2, 4, 8}, 2);
  const Given v = drawn({2, 4, 8}, 3);
  const Given bias = drawn({24}, 4);
  const Given mask = of(Dtype::i32, {2, 4}, {1, 1, 1, 0, 1, 1, 0, 0});
  const auto with_bias = [&](const Given& x, int64_t from) {
    Numbers out = x.values;
    for (size_t i = 0; i < out.size(); ++i)
      out[i] += bias.values[from + i % 8];
    return out;
  };
  Plain plain{2, 2, 2, 3, 4, 4, 0.5};
  plain.bias = [&](int64_t b, int64_t, int64_t, int64_t j) {
    return mask.values[b * 4 + j] != 0 ? 0.0 : -10000.0;
  };
  const Made found =
      made(theirs("MultiHeadAttention", {q, k, v, bias, mask}, {whole("num_heads", 2)}));
  const Numbers wanted =
      plain.run(apart(with_bias(q, 0), 2, 3, 2, 4), apart(with_bias(k, 8), 2, 4, 2, 4),
                apart(with_bias(v, 16), 2, 4, 2, 4));
  expect_close(found[0], joined(wanted, 2, 3, 2, 4));
}

TEST(MultiHeadAttention, BadInputsAreRefusedByCode) {
  const Given q = drawn({2, 3, 8});
  EXPECT_EQ(refusal(theirs("MultiHeadAttention", {q, q, q}, {whole("num_heads", 3)})).code,
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal(theirs("MultiHeadAttention", {q, q, q}, {})).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal(theirs("MultiHeadAttention", {q}, {whole("num_heads", 2)})).code,
            ErrorCode::kOnnxShape);
}

TEST(ProjectedAttention, ProjectsItsInputFirst) {
  const Given x = drawn({1, 3, 5}, 1);
  const Given weights = drawn({5, 24}, 2);
  const Given bias = drawn({24}, 3);
  Numbers columns[3];
  for (int64_t s = 0; s < 3; ++s)
    for (int64_t c = 0; c < 24; ++c) {
      double sum = bias.values[c];
      for (int64_t i = 0; i < 5; ++i)
        sum += x.values[s * 5 + i] * weights.values[i * 24 + c];
      columns[c / 8].push_back(sum);
    }
  Plain plain{1, 2, 2, 3, 3, 4, 0.5};
  plain.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? 0 : kNever; };
  const Made found = made(
      theirs("Attention", {x, weights, bias}, {whole("num_heads", 2), whole("unidirectional", 1)}));
  const Numbers wanted = plain.run(apart(columns[0], 1, 3, 2, 4), apart(columns[1], 1, 3, 2, 4),
                                   apart(columns[2], 1, 3, 2, 4));
  expect_close(found[0], joined(wanted, 1, 3, 2, 4));
}

// Two batches of one new row behind 1 and 2 cached ones, in a cache of 4 places.
TEST(GroupQueryAttention, WritesItsCacheWhereEachBatchEnds) {
  const Given q = drawn({2, 1, 16}, 1);
  const Given k = drawn({2, 1, 8}, 2);
  const Given v = drawn({2, 1, 8}, 3);
  const Given past_k = drawn({2, 2, 4, 4}, 4);
  const Given past_v = drawn({2, 2, 4, 4}, 5);
  const Given lengths = of(Dtype::i32, {2}, {1, 2});
  const Given total = known(of(Dtype::i32, {}, {3}));
  const auto written = [&](const Given& past, const Given& now) {
    Numbers out = past.values;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t d = 0; d < 4; ++d) {
          const auto place = static_cast<int64_t>(lengths.values[b]);
          out[((b * 2 + h) * 4 + place) * 4 + d] = now.values[(b * 2 + h) * 4 + d];
        }
    return out;
  };
  Plain plain{2, 4, 2, 1, 4, 4, 0.5};
  plain.bias = [&](int64_t b, int64_t, int64_t, int64_t j) {
    return static_cast<double>(j) <= lengths.values[b] ? 0 : kNever;
  };
  const Made found = made(theirs("GroupQueryAttention", {q, k, v, past_k, past_v, lengths, total},
                                 {whole("num_heads", 4), whole("kv_num_heads", 2)}, 3));
  const Numbers wanted =
      plain.run(apart(q.values, 2, 1, 4, 4), written(past_k, k), written(past_v, v));
  expect_close(found[0], joined(wanted, 2, 1, 4, 4));
  EXPECT_EQ(found[1], written(past_k, k));
}

TEST(GroupQueryAttention, TurnsAPromptThatIsPacked) {
  const Given packed = drawn({1, 3, 16}, 1);  // 2 query heads and 1 of keys and values, 4 each
  const Given lengths = of(Dtype::i32, {1}, {2});
  const Given total = known(of(Dtype::i32, {1}, {3}));
  Numbers q;
  Numbers k;
  Numbers v;
  for (int64_t s = 0; s < 3; ++s) {
    const auto row = packed.values.begin() + s * 16;
    q.insert(q.end(), row, row + 8);
    k.insert(k.end(), row + 8, row + 12);
    v.insert(v.end(), row + 12, row + 16);
  }
  const auto angle = [](int64_t row, int64_t i) {
    return static_cast<double>(row % 3 * (i + 1)) / 8;
  };
  Plain plain{1, 2, 1, 3, 3, 4, 0.5};
  plain.bias = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i ? 0 : kNever; };
  const Made found =
      made(theirs("GroupQueryAttention",
                  {packed, left_out(), left_out(), left_out(), left_out(), lengths, total,
                   cache_of(4, 2, false), cache_of(4, 2, true)},
                  {whole("num_heads", 2), whole("kv_num_heads", 1), whole("do_rotary", 1)}, 3));
  const Numbers turned_q = turned(apart(q, 1, 3, 2, 4), 4, angle, false);
  const Numbers wanted = plain.run(turned_q, turned(k, 4, angle, false), v);
  expect_close(found[0], joined(wanted, 1, 3, 2, 4), 1e-6);
}

TEST(GroupQueryAttention, BadInputsAreRefusedByCode) {
  const Given q = drawn({1, 3, 16});
  const Given lengths = of(Dtype::i32, {1}, {2});
  const Given total = of(Dtype::i32, {}, {3});
  const std::vector<std::string> heads = {whole("num_heads", 2), whole("kv_num_heads", 1)};
  const std::vector<Given> inputs = {q,          left_out(), left_out(), left_out(),
                                     left_out(), lengths,    total};
  EXPECT_EQ(refusal(theirs("GroupQueryAttention", inputs, heads)).code,
            ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(refusal(theirs("GroupQueryAttention", {q}, heads)).code, ErrorCode::kOnnxName);
  EXPECT_EQ(refusal(theirs("GroupQueryAttention", inputs, {whole("num_heads", 3)})).code,
            ErrorCode::kOnnxAttribute);
}

TEST(RotaryEmbedding, OfOnnxRuntimeCountsFromOnePosition) {
  const Given x = drawn({1, 3, 8}, 1);
  const Given first = of(Dtype::i64, {1}, {1});
  const auto angle = [](int64_t row, int64_t i) {
    const int64_t position = row / 2 + 1;
    return static_cast<double>(position * (i + 1)) / 8;
  };
  const Made found =
      made(theirs("RotaryEmbedding", {x, first, cache_of(5, 2, false), cache_of(5, 2, true)}, {}));
  expect_close(found[0], turned(x.values, 4, angle, false), 1e-6);
}

}  // namespace
}  // namespace warploom
