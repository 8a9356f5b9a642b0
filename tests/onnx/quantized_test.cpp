// Numbers that stand for others by scales, against plain loops.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/reference.h"
#include "one_operator.h"
#include "onnx/load.h"

namespace warploom {
namespace {
// Whole numbers of a type, drawn from all that it holds.
Given integers(Dtype dtype, Dims dims, uint64_t seed) {
  Random random(seed, "integers");
  const double low = is_signed(dtype) ? -std::ldexp(1.0, bits_of(dtype) - 1) : 0;
  Numbers values(static_cast<size_t>(count_of(dims)));
  for (double& value : values)
    value = low + std::floor(random.uniform() * std::ldexp(1.0, bits_of(dtype)));
  return of(dtype, std::move(dims), std::move(values));
}

double held(double value, Dtype dtype) {
  const double low = is_signed(dtype) ? -std::ldexp(1.0, bits_of(dtype) - 1) : 0;
  return std::clamp(value, low, low + std::ldexp(1.0, bits_of(dtype)) - 1);
}

double nearest(double x) {
  return std::nearbyint(x);
}

TEST(QuantizeLinear, RoundsHalvesToEvenAndHoldsItsType) {
  const Given x = f32({6}, {-3, 2.5, 3.5, 1000, -1000, 0.75});
  const Given one = f32({}, {0.5});
  for (const Dtype type : {Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16}) {
    const Given zero = of(type, {}, {3});
    Numbers wanted;
    for (const double value : x.values)
      wanted.push_back(held(nearest(value / 0.5) + 3, type));
    const Made found = made({"QuantizeLinear", {x, one, zero}});
    EXPECT_EQ(found[0], wanted) << name_of(type);
    EXPECT_EQ(found.dtypes[0], type);
  }
  EXPECT_EQ(made({"QuantizeLinear", {f32({2}, {2.5, 3.5}), f32({}, {1})}})[0], (Numbers{2, 4}));
}

TEST(QuantizeLinear, ScalesLieAlongAnAxisOrInBlocks) {
  const Given x = f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Given rows = f32({2}, {1, 2});
  EXPECT_EQ(made({"QuantizeLinear", {x, rows}, {whole("axis", 0)}})[0],
            (Numbers{1, 2, 3, 4, 2, 3, 4, 4}));
  const Given blocks = f32({2, 2}, {1, 2, 4, 0.5});
  EXPECT_EQ(made({"QuantizeLinear", {x, blocks}, {whole("axis", 1), whole("block_size", 2)}})[0],
            (Numbers{1, 2, 2, 2, 1, 2, 14, 16}));
}

TEST(QuantizeLinear, BadInputsAreRefusedByCode) {
  const Given x = f32({2, 4}, Numbers(8, 1));
  const Given scale = f32({}, {1});
  EXPECT_EQ(refusal({"QuantizeLinear", {x, f32({3}, {1, 1, 1})}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"QuantizeLinear", {x, scale, of(Dtype::i32, {}, {0})}}).code,
            ErrorCode::kOnnxType);
  EXPECT_EQ(
      refusal({"QuantizeLinear", {x, scale, of(Dtype::u8, {}, {0})}, {whole("output_dtype", 3)}})
          .code,
      ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal({"QuantizeLinear", {x, scale}, {whole("output_dtype", 22)}}).code,
            ErrorCode::kOnnxType);
}

TEST(DynamicQuantizeLinear, TakesItsScaleFromTheEnds) {
  const Given x = f32({5}, {-1, 0, 2, 3, 4.1});
  const Made found = made({"DynamicQuantizeLinear", {x}, {}, 3});
  const double low = -1;
  const auto high = static_cast<double>(4.1F);
  const auto scale = static_cast<double>(static_cast<float>((high - low) / 255));
  EXPECT_NEAR(found[1][0], scale, 1e-9);
  EXPECT_EQ(found[2][0], nearest(1 / scale));
  Numbers wanted;
  for (const double value : x.values)
    wanted.push_back(held(nearest(value / scale) + found[2][0], Dtype::u8));
  EXPECT_EQ(found[0], wanted);
  // Nothing but zeros has a scale all the same.
  const Made zeros = made({"DynamicQuantizeLinear", {f32({2}, {0, 0})}, {}, 3});
  EXPECT_EQ(zeros[0], (Numbers{0, 0}));
  EXPECT_EQ(refusal({"DynamicQuantizeLinear", {of(Dtype::f16, {2}, {0, 1})}}).code,
            ErrorCode::kOnnxType);
}

// Constants of 4 bits, two to a byte.
TEST(DequantizeLinear, TakesWeightsOfFourBits) {
  const std::string scale = "initializer { name: \"s\" data_type: 1 float_data: 0.5 } ";
  const auto model = [&](const std::string& op, const std::string& inputs) {
    return "ir_version: 10 opset_import { version: 21 } graph { name: \"g\" node { op_type: \"" +
           op + "\" " + inputs + " output: \"y\" } " + scale +
           "initializer { name: \"w\" data_type: 22 dims: 3 raw_data: \"\\361\\010\" } "
           "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } "
           "} } "
           "output { name: \"y\" } }";
  };
  const auto read = parse_onnx(model("DequantizeLinear", "input: \"w\" input: \"s\""));
  ASSERT_TRUE(read) << describe(read.error());
  const std::vector<std::byte> unused(3 * sizeof(float));
  const auto made_of_it = graph::evaluate(*read, std::vector<graph::Bytes>{unused});
  ASSERT_TRUE(made_of_it) << describe(made_of_it.error());
  EXPECT_EQ((*made_of_it)[0], (Numbers{0.5, -0.5, -4}));
  const auto refused =
      parse_onnx(model("QuantizeLinear", "input: \"x\" input: \"s\" input: \"w\""));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOnnxType);
}

struct Product {
  int64_t m = 3;
  int64_t k = 300;  // more than fp32 sums of products of 8 bits hold exactly
  int64_t n = 4;

  double at(const Given& a, double a_zero, const Given& b, double b_zero, int64_t i,
            int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p)
      sum += (a.values[i * k + p] - a_zero) * (b.values[p * n + j] - b_zero);
    return sum;
  }
};

TEST(MatMulInteger, IsExactWithZeroPointsOfRowsAndColumns) {
  const Product product;
  const Given a = integers(Dtype::u8, {3, 300}, 1);
  const Given b = integers(Dtype::i8, {300, 4}, 2);
  const Given rows = of(Dtype::u8, {3}, {0, 128, 255});
  const Given columns = of(Dtype::i8, {4}, {-128, 0, 5, 127});
  Numbers wanted;
  Numbers plain;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      wanted.push_back(product.at(a, rows.values[i], b, columns.values[j], i, j));
      plain.push_back(product.at(a, 0, b, 0, i, j));
    }
  EXPECT_EQ(made({"MatMulInteger", {a, b, rows, columns}})[0], wanted);
  EXPECT_EQ(made({"MatMulInteger", {a, b}})[0], plain);
}

TEST(MatMulInteger, BadInputsAreRefusedByCode) {
  const Given a = integers(Dtype::u8, {3, 4}, 1);
  const Given b = integers(Dtype::u8, {4, 2}, 2);
  EXPECT_EQ(refusal({"MatMulInteger", {a, drawn({4, 2})}}).code, ErrorCode::kOnnxType);
  EXPECT_EQ(refusal({"MatMulInteger", {a, b, of(Dtype::i8, {}, {1})}}).code, ErrorCode::kOnnxType);
  EXPECT_EQ(refusal({"MatMulInteger", {a, b, of(Dtype::u8, {2}, {1, 1})}}).code,
            ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"MatMulInteger", {a, a}}).code, ErrorCode::kOnnxShape);
}

TEST(QLinearMatMul, ScalesTheProductAndHoldsItsType) {
  const Product product;
  const Given a = integers(Dtype::u8, {3, 300}, 1);
  const Given b = integers(Dtype::u8, {300, 4}, 2);
  const Given a_scale = f32({}, {0.03125});
  const Given b_scale = f32({4}, {0.0625, 0.125, 0.25, 0.5});
  const Given y_scale = f32({}, {32});
  const Given a_zero = of(Dtype::u8, {}, {120});
  const Given b_zero = of(Dtype::u8, {}, {130});
  const Given y_zero = of(Dtype::u8, {}, {100});
  Numbers wanted;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      const double scale = 0.03125 * b_scale.values[j] / 32;
      wanted.push_back(held(nearest(product.at(a, 120, b, 130, i, j) * scale) + 100, Dtype::u8));
    }
  EXPECT_EQ(made({"QLinearMatMul", {a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero}})[0],
            wanted);
}

// x [1,C,H,W] and w [M,C,3,3] with pads of 1, less their zero points.
double conv_at(const Given& x, double x_zero, const Given& w, double w_zero, int64_t m, int64_t row,
               int64_t column) {
  const Dims& size = x.dims;
  double sum = 0;
  for (int64_t c = 0; c < size[1]; ++c)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t y = row + i - 1;
        const int64_t z = column + j - 1;
        if (y < 0 || z < 0 || y >= size[2] || z >= size[3]) continue;
        sum += (x.values[(c * size[2] + y) * size[3] + z] - x_zero) *
               (w.values[((m * size[1] + c) * 3 + i) * 3 + j] - w_zero);
      }
  return sum;
}

TEST(ConvInteger, CountsWhatIsBeyondTheImageAsItsZeroPoint) {
  const Given x = integers(Dtype::u8, {1, 2, 4, 5}, 1);
  const Given w = integers(Dtype::u8, {3, 2, 3, 3}, 2);
  Numbers wanted;
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 5; ++j)
        wanted.push_back(conv_at(x, 128, w, 7, m, i, j));
  EXPECT_EQ(made({"ConvInteger",
                  {x, w, of(Dtype::u8, {}, {128}), of(Dtype::u8, {}, {7})},
                  {wholes("pads", {1, 1, 1, 1})}})[0],
            wanted);
}

TEST(QLinearConv, HasAScaleForEachChannelAndABias) {
  const Given x = integers(Dtype::u8, {1, 2, 4, 5}, 1);
  const Given w = integers(Dtype::i8, {3, 2, 3, 3}, 2);
  const Given scales = f32({3}, {0.25, 0.5, 1});
  const Given bias = of(Dtype::i32, {3}, {1000, -2000, 30});
  Numbers wanted;
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 5; ++j) {
        const double sum = conv_at(x, 128, w, 0, m, i, j) + bias.values[m];
        wanted.push_back(held(nearest(sum * 0.5 * scales.values[m] / 64) + 100, Dtype::u8));
      }
  const std::vector<Given> inputs = {x,
                                     f32({}, {0.5}),
                                     of(Dtype::u8, {}, {128}),
                                     w,
                                     scales,
                                     of(Dtype::i8, {3}, {0, 0, 0}),
                                     f32({}, {64}),
                                     of(Dtype::u8, {}, {100}),
                                     bias};
  EXPECT_EQ(made({"QLinearConv", inputs, {wholes("pads", {1, 1, 1, 1})}})[0], wanted);
  std::vector<Given> wrong = inputs;
  wrong[4] = f32({2}, {1, 1});
  EXPECT_EQ(refusal({"QLinearConv", wrong, {wholes("pads", {1, 1, 1, 1})}}).code,
            ErrorCode::kOnnxShape);
}

Case theirs(std::string op, std::vector<Given> inputs, std::vector<std::string> attributes = {}) {
  return {std::move(op), std::move(inputs), std::move(attributes), 1, 20, "com.microsoft"};
}

// Weights of 4 bits in blocks of 16, two to a byte, the first in the low bits.
TEST(MatMulNBits, UnpacksItsWeights) {
  constexpr int64_t kDepth = 40;  // the last block has 8 that count
  const Given a = drawn({2, kDepth}, 1);
  const Given packed = integers(Dtype::u8, {3, 3, 8}, 2);
  const Given scales = drawn({9}, 3);
  const Given zeros = integers(Dtype::u8, {6}, 4);  // 3 numbers of 4 bits to a line of 2 bytes
  const auto bits = [](double byte, int64_t which) {
    const auto value = static_cast<int64_t>(byte);
    return static_cast<double>(which == 0 ? value % 16 : value / 16);
  };
  const auto wanted = [&](bool with_zeros) {
    Numbers out;
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t n = 0; n < 3; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) {
          const int64_t block = k / 16;
          const double number = bits(packed.values[(n * 3 + block) * 8 + k % 16 / 2], k % 2);
          const double zero = with_zeros ? bits(zeros.values[n * 2 + block / 2], block % 2) : 8;
          sum += a.values[i * kDepth + k] * (number - zero) * scales.values[n * 3 + block];
        }
        out.push_back(sum);
      }
    return out;
  };
  const std::vector<std::string> sizes = {whole("K", kDepth), whole("N", 3), whole("bits", 4),
                                          whole("block_size", 16)};
  expect_close(made(theirs("MatMulNBits", {a, packed, scales}, sizes))[0], wanted(false));
  expect_close(made(theirs("MatMulNBits", {a, packed, scales, zeros}, sizes))[0], wanted(true));
  EXPECT_EQ(refusal(theirs("MatMulNBits", {a, packed, scales})).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal(theirs("MatMulNBits", {a, packed, drawn({8})}, sizes)).code,
            ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal(theirs("MatMulNBits", {a, drawn({3, 3, 8}), scales}, sizes)).code,
            ErrorCode::kOnnxType);
}

TEST(QLinearAdd, AddsWhatTheNumbersStandFor) {
  const Given a = integers(Dtype::u8, {6}, 1);
  const Given b = integers(Dtype::u8, {6}, 2);
  const Given zero = of(Dtype::u8, {}, {128});
  Numbers wanted;
  for (size_t i = 0; i < 6; ++i)
    wanted.push_back(
        held(nearest(((a.values[i] - 128) * 0.5 + b.values[i] * 0.25) / 0.75) + 128, Dtype::u8));
  const Made found = made(theirs("QLinearAdd", {a, f32({}, {0.5}), zero, b, f32({}, {0.25}),
                                                left_out(), f32({}, {0.75}), zero}));
  EXPECT_EQ(found[0], wanted);
  EXPECT_EQ(refusal(theirs("QLinearAdd", {a, f32({}, {0.5}), zero})).code, ErrorCode::kOnnxName);
}

TEST(MatMulIntegerToFloat, IsTheProductTimesScalesPlusABias) {
  const Product product;
  const Given a = integers(Dtype::u8, {3, 300}, 1);
  const Given b = integers(Dtype::i8, {300, 4}, 2);
  const Given scales = f32({4}, {0.5, 0.25, 1, 2});
  const Given bias = f32({4}, {1, 2, 3, 4});
  Numbers wanted;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j)
      wanted.push_back(product.at(a, 100, b, 0, i, j) * 0.125 * scales.values[j] + bias.values[j]);
  expect_close(
      made(theirs("MatMulIntegerToFloat",
                  {a, b, f32({}, {0.125}), scales, of(Dtype::u8, {}, {100}), left_out(), bias}))[0],
      wanted);
}

TEST(QGemm, IsTheProductOfIntegersPlusABias) {
  const Product product;
  const Given a = integers(Dtype::u8, {3, 300}, 1);
  const Given b = integers(Dtype::i8, {300, 4}, 2);
  const Given c = of(Dtype::i32, {4}, {1000, -1000, 0, 7});
  const std::vector<Given> operands = {
      a, f32({}, {0.5}), of(Dtype::u8, {}, {100}), b, f32({}, {0.25}), of(Dtype::i8, {}, {3}), c};
  Numbers floats;
  Numbers wanted;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      floats.push_back((product.at(a, 100, b, 3, i, j) + c.values[j]) * 0.125);
      wanted.push_back(held(nearest(floats.back() / 256) + 128, Dtype::u8));
    }
  expect_close(made(theirs("QGemm", operands))[0], floats);
  std::vector<Given> narrow = operands;
  narrow.push_back(f32({}, {256}));
  narrow.push_back(of(Dtype::u8, {}, {128}));
  EXPECT_EQ(made(theirs("QGemm", narrow))[0], wanted);
  narrow[6] = of(Dtype::i32, {3}, {1, 2, 3});
  EXPECT_EQ(refusal(theirs("QGemm", narrow)).code, ErrorCode::kOnnxShape);
}

TEST(GroupNorm, NormsGroupsWithChannelsLast) {
  const Given x =
      f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});  // groups {1, 2, 5, 6} and {3, 4, 7, 8}
  const Given ones = f32({4}, {1, 1, 1, 1});
  const Given none = f32({4}, {0, 0, 0, 0});
  const double unit = 1 / std::sqrt(4.25);
  const auto all =
      made(theirs("GroupNorm", {x, ones, none}, {whole("groups", 2), real("epsilon", 0)}));
  expect_close(all[0],
               {-2.5 * unit, -1.5 * unit, -2.5 * unit, -1.5 * unit, 1.5 * unit, 2.5 * unit,
                1.5 * unit, 2.5 * unit},
               1e-6);
  Case skip =
      theirs("SkipGroupNorm", {x, ones, none, f32({1, 4}, {1, 1, 1, 1})}, {whole("groups", 2)});
  skip.outputs = 2;
  EXPECT_EQ(made(skip)[1], (Numbers{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(refusal(theirs("GroupNorm", {x, ones, none}, {whole("groups", 3)})).code,
            ErrorCode::kOnnxAttribute);
}

TEST(BiasSoftmax, ChoosesOverAllFromItsAxisOn) {
  const Made found =
      made(theirs("BiasSoftmax", {f32({1, 2, 2}, {0, 0, 0, 0}), f32({2}, {0, std::log(3)})}));
  expect_close(found[0], {0.125, 0.375, 0.125, 0.375}, 1e-6);
  const Made gated = made(theirs("BiasSplitGelu", {f32({1, 2}, {2, 100}), f32({2}, {1, 0})}));
  expect_close(gated[0], {300}, 1e-6);
  EXPECT_EQ(refusal(theirs("BiasSplitGelu", {f32({1, 3}, {1, 2, 3}), f32({3}, {1, 2, 3})})).code,
            ErrorCode::kOnnxShape);
}

// Norms, products and convolutions of ONNX Runtime's that join others.
TEST(SkipLayerNormalization, NormsTheSumAndGivesItOut) {
  const Given x = drawn({2, 4}, 1);
  const Given skip = drawn({2, 4}, 2);
  const Given scale = drawn({4}, 3);
  const Given shift = drawn({4}, 4);
  const Given bias = drawn({4}, 5);
  Numbers sums;
  Numbers wanted;
  Numbers simple;
  for (int64_t row = 0; row < 2; ++row) {
    double mean = 0;
    double square = 0;
    for (int64_t i = 0; i < 4; ++i) {
      sums.push_back(x.values[row * 4 + i] + skip.values[row * 4 + i] + bias.values[i]);
      mean += sums.back() / 4;
      square += sums.back() * sums.back() / 4;
    }
    for (int64_t i = 0; i < 4; ++i) {
      const double sum = sums[row * 4 + i];
      const double around = square - mean * mean;
      wanted.push_back((sum - mean) / std::sqrt(around + 1e-12) * scale.values[i] +
                       shift.values[i]);
      simple.push_back(sum / std::sqrt(square + 1e-12) * scale.values[i]);
    }
  }
  Case full = theirs("SkipLayerNormalization", {x, skip, scale, shift, bias});
  full.outputs = 4;
  const Made found = made(full);
  expect_close(found[0], wanted, 1e-6);
  expect_close(found[3], sums);
  expect_close(made(theirs("SkipSimplifiedLayerNormalization", {x, skip, scale, bias}))[0], simple,
               1e-6);
  EXPECT_EQ(refusal(theirs("SkipLayerNormalization", {x, skip, drawn({3})})).code,
            ErrorCode::kOnnxShape);
}

TEST(FusedMatMul, TurnsItsOperandsAndScalesTheProduct) {
  const Given a = drawn({3, 2}, 1);
  const Given b = drawn({4, 3}, 2);
  Numbers wanted;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 3; ++k)
        sum += a.values[k * 2 + i] * b.values[j * 3 + k];
      wanted.push_back(2 * sum);
    }
  expect_close(made(theirs("FusedMatMul", {a, b},
                           {whole("transA", 1), whole("transB", 1), real("alpha", 2)}))[0],
               wanted);
  EXPECT_EQ(refusal(theirs("FusedMatMul", {a, b})).code, ErrorCode::kOnnxShape);
}

TEST(FusedConv, AddsAndActivates) {
  const Given x = f32({1, 1, 1, 3}, {1, -2, 3});
  const Given w = f32({1, 1, 1, 1}, {2});
  const Given b = f32({1}, {1});
  const Given z = f32({1, 1, 1, 3}, {-4, 0, 1});
  EXPECT_EQ(made(theirs("FusedConv", {x, w, b, z}, {text("activation", "Relu")}))[0],
            (Numbers{0, 0, 8}));
  EXPECT_EQ(refusal(theirs("FusedConv", {x, w}, {text("activation", "Softplus")})).code,
            ErrorCode::kOnnxAttribute);
}

TEST(ContributedOperators, AreElementwiseWhereTheyAre) {
  const Numbers x = {-2, -0.5, 0, 1.5};
  const Given given = f32({4}, x);
  const Given bias = f32({4}, {1, 1, 1, 1});
  Numbers quick;
  Numbers exact;
  Numbers fast;
  for (const double value : x) {
    const double moved = value + 1;
    quick.push_back(value / (1 + std::exp(-static_cast<double>(1.702F) * value)));
    exact.push_back(moved / 2 * (1 + std::erf(moved / std::sqrt(2.0))));
    const double inner =
        std::sqrt(2 / 3.14159265358979) * (moved + 0.044715 * moved * moved * moved);
    fast.push_back(moved / 2 * (1 + std::tanh(inner)));
  }
  expect_close(made(theirs("QuickGelu", {given}))[0], quick);
  expect_close(made(theirs("BiasGelu", {given, bias}))[0], exact);
  expect_close(made(theirs("FastGelu", {given, bias}))[0], fast);
  EXPECT_EQ(refusal(theirs("FastGelu", {of(Dtype::i32, {1}, {1})})).code, ErrorCode::kOnnxType);
  EXPECT_EQ(refusal(theirs("Inverse", {given})).code, ErrorCode::kOnnxOpset);
  EXPECT_EQ(refusal({"FastGelu", {given}}).code, ErrorCode::kOnnxUnknownOperator);
}
}  // namespace
}  // namespace warploom
