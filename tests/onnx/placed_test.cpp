// What is written, taken, ordered or read between pixels where data say, against plain loops.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "one_operator.h"

namespace warploom {
namespace {
double combined(const std::string& how, double old, double update) {
  if (how == "add") return old + update;
  if (how == "mul") return old * update;
  if (how == "max") return std::max(old, update);
  if (how == "min") return std::min(old, update);
  return update;
}

constexpr const char* kReductions[] = {"none", "add", "mul", "max", "min"};

TEST(ScatterElements, WritesAlongAnAxisAlsoWhereItIsShorter) {
  const Given data = drawn({3, 4}, 1);
  const Given index = of(Dtype::i64, {2, 3}, {0, -1, 2, 2, 2, 0});
  const Given updates = drawn({2, 3}, 2);
  for (const std::string how : kReductions) {
    Numbers wanted = data.values;
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        const auto row = (static_cast<int64_t>(index.values[i * 3 + j]) + 3) % 3;
        double& at = wanted[row * 4 + j];
        at = combined(how, at, updates.values[i * 3 + j]);
      }
    expect_close(made({"ScatterElements", {data, index, updates}, {text("reduction", how)}})[0],
                 wanted);
  }
}

TEST(ScatterElements, BadInputsAreRefusedByCode) {
  const Given data = drawn({3, 4});
  const Given index = of(Dtype::i64, {2, 3}, Numbers(6, 0));
  EXPECT_EQ(refusal({"ScatterElements", {data, index, drawn({2, 4})}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"ScatterElements", {data, drawn({2, 3}), drawn({2, 3})}}).code,
            ErrorCode::kOnnxType);
  EXPECT_EQ(
      refusal({"ScatterElements", {data, index, drawn({2, 3})}, {text("reduction", "xor")}}).code,
      ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal({"ScatterElements", {data, index, of(Dtype::f16, {2, 3}, Numbers(6, 0))}}).code,
            ErrorCode::kOnnxType);
}

// Indices that the model knows, and those that it does not, are written in two ways.
TEST(ScatterND, WritesLinesWhetherIndicesAreKnownOrNot) {
  const Given data = drawn({2, 3, 2}, 1);
  const Given updates = drawn({3, 2}, 2);
  const Given distinct = of(Dtype::i64, {3, 2}, {0, 1, 1, -1, 1, 0});
  const Given repeated = of(Dtype::i64, {3, 2}, {0, 1, 0, 1, 1, 0});
  for (const std::string how : kReductions)
    for (const Given& index : {distinct, repeated}) {
      Numbers wanted = data.values;
      for (int64_t n = 0; n < 3; ++n) {
        const auto column = (static_cast<int64_t>(index.values[n * 2 + 1]) + 3) % 3;
        const int64_t line = static_cast<int64_t>(index.values[n * 2]) * 3 + column;
        for (int64_t i = 0; i < 2; ++i) {
          double& at = wanted[line * 2 + i];
          at = combined(how, at, updates.values[n * 2 + i]);
        }
      }
      for (const Given& given : {index, known(index)})
        expect_close(made({"ScatterND", {data, given, updates}, {text("reduction", how)}})[0],
                     wanted);
    }
}

TEST(ScatterND, OneUpdateAndBadInputs) {
  const Given data = drawn({3, 2}, 1);
  const Given one = drawn({1, 2}, 2);
  Numbers wanted = data.values;
  std::copy(one.values.begin(), one.values.end(), wanted.begin() + 4);
  EXPECT_EQ(made({"ScatterND", {data, of(Dtype::i64, {1, 1}, {2}), one}})[0], wanted);
  EXPECT_EQ(refusal({"ScatterND", {data, of(Dtype::i64, {1, 3}, {0, 0, 0}), one}}).code,
            ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"ScatterND", {data, of(Dtype::i64, {2, 1}, {0, 1}), one}}).code,
            ErrorCode::kOnnxShape);
}

TEST(TensorScatter, WritesFromAPlaceOfEachBatchOn) {
  const Given past = drawn({2, 4, 2}, 1);
  const Given update = drawn({2, 2, 2}, 2);
  const Given starts = of(Dtype::i64, {2}, {1, 3});
  Numbers wanted = past.values;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t s = 0; s < 2; ++s)
      for (int64_t d = 0; d < 2; ++d) {
        const int64_t place = (static_cast<int64_t>(starts.values[b]) + s) % 4;
        wanted[(b * 4 + place) * 2 + d] = update.values[(b * 2 + s) * 2 + d];
      }
  EXPECT_EQ(made({"TensorScatter", {past, update, starts}, {text("mode", "circular")}})[0], wanted);
  EXPECT_EQ(refusal({"TensorScatter", {past, drawn({2, 5, 2}), starts}}).code,
            ErrorCode::kOnnxShape);
}

struct Ranked {
  Numbers values;
  Numbers places;
};

// The k best of each of `lines` lines of `size`, of equal ones the first.
Ranked best_of(const Numbers& x, int64_t lines, int64_t size, int64_t k, bool largest) {
  Ranked out;
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<int64_t> order(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i)
      order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const double left = x[line * size + a];
      const double right = x[line * size + b];
      return largest ? left > right : left < right;
    });
    for (int64_t i = 0; i < k; ++i) {
      out.values.push_back(x[line * size + order[i]]);
      out.places.push_back(static_cast<double>(order[i]));
    }
  }
  return out;
}

TEST(TopK, RanksShortLinesAndPicksFromLongOnes) {
  for (const int64_t size : {7, 1500}) {
    Given x = drawn({2, size}, 3);
    for (double& value : x.values)
      value = std::floor(value * 4);  // with many that are equal
    for (const bool largest : {true, false}) {
      const Made found =
          made({"TopK", {x, known(of(Dtype::i64, {1}, {3}))}, {whole("largest", largest)}, 2});
      const Ranked wanted = best_of(x.values, 2, size, 3, largest);
      EXPECT_EQ(found[0], wanted.values);
      EXPECT_EQ(found[1], wanted.places);
    }
  }
}

TEST(TopK, GoesAlongAnyAxisAndAllTypesHaveAnOrder) {
  const Given x = of(Dtype::i64, {3, 2}, {5, 1, 7, 1, 5, 3});
  const Made found = made({"TopK", {x, known(of(Dtype::i64, {1}, {2}))}, {whole("axis", 0)}, 2});
  EXPECT_EQ(found[0], (Numbers{7, 3, 5, 1}));
  EXPECT_EQ(found[1], (Numbers{1, 2, 0, 0}));
}

TEST(TopK, UnsignedNumbersOfSixtyFourBitsHaveTheirOrder) {
  const Given x = of(Dtype::u64, {3}, {1, 0x1p63, 2});
  const Made found = made({"TopK", {x}, {whole("k", 2)}, 2, 9});
  EXPECT_EQ(found[1], (Numbers{1, 2}));
}

TEST(TopK, BadInputsAreRefusedByCode) {
  const Given x = drawn({2, 4});
  EXPECT_EQ(refusal({"TopK", {x, of(Dtype::i64, {1}, {2})}, {}, 2}).code,
            ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(refusal({"TopK", {x, known(of(Dtype::i64, {1}, {5}))}, {}, 2}).code,
            ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"TopK", {x}, {}, 2}).code, ErrorCode::kOnnxName);
}

TEST(Compress, TakesWhatAKnownConditionLeaves) {
  const Given x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const Given rows = known(of(Dtype::boolean, {3}, {1, 0, 1}));
  EXPECT_EQ(made({"Compress", {x, rows}, {whole("axis", 0)}})[0], (Numbers{1, 2, 5, 6}));
  EXPECT_EQ(made({"Compress", {x, rows}})[0], (Numbers{1, 3}));
  EXPECT_EQ(refusal({"Compress", {x, of(Dtype::boolean, {3}, {1, 0, 1})}}).code,
            ErrorCode::kOnnxDynamicShape);
}

TEST(ReverseSequence, TurnsTheFirstElementsOfEachLine) {
  const Given x = f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Given lengths = of(Dtype::i64, {2}, {3, 1});
  EXPECT_EQ(
      made({"ReverseSequence", {x, lengths}, {whole("batch_axis", 0), whole("time_axis", 1)}})[0],
      (Numbers{3, 2, 1, 4, 5, 6, 7, 8}));
  EXPECT_EQ(
      refusal({"ReverseSequence", {x, lengths}, {whole("batch_axis", 1), whole("time_axis", 1)}})
          .code,
      ErrorCode::kOnnxAttribute);
}

TEST(CumProd, MultipliesFromEitherEnd) {
  const Given x = f32({3}, {2, -3, 4});
  const Given axis = known(of(Dtype::i64, {}, {0}));
  EXPECT_EQ(made({"CumProd", {x, axis}})[0], (Numbers{2, -6, -24}));
  EXPECT_EQ(made({"CumProd", {x, axis}, {whole("exclusive", 1)}})[0], (Numbers{1, 2, -6}));
  EXPECT_EQ(made({"CumProd", {x, axis}, {whole("reverse", 1)}})[0], (Numbers{-24, -12, 4}));
}

TEST(MaxPool, SaysWhereItsLargestAre) {
  const Given x = f32({1, 1, 3, 3}, {1, 5, 5, 2, 3, 4, 9, 0, 9});
  const std::vector<std::string> window = {wholes("kernel_shape", {2, 2})};
  const Made rows = made({"MaxPool", {x}, window, 2});
  EXPECT_EQ(rows[0], (Numbers{5, 5, 9, 9}));
  EXPECT_EQ(rows[1], (Numbers{1, 1, 6, 8}));
  const Made columns = made({"MaxPool", {x}, {window[0], whole("storage_order", 1)}, 2});
  EXPECT_EQ(columns[1], (Numbers{3, 3, 2, 8}));
  // Put back, each is where it was.
  const Made back = made({"MaxUnpool",
                          {f32({1, 1, 1, 2}, {5, 9}), of(Dtype::i64, {1, 1, 1, 2}, {1, 4})},
                          {wholes("kernel_shape", {2, 2}), wholes("strides", {2, 2})}});
  EXPECT_EQ(back[0], (Numbers{0, 5, 0, 0, 9, 0, 0, 0}));
  EXPECT_EQ(refusal({"MaxUnpool", {x, of(Dtype::i64, {1, 1, 1, 2}, {1, 4})}, window}).code,
            ErrorCode::kOnnxShape);
}

// A line of x between its elements, 0 beyond.
double between(const Numbers& line, double place) {
  const double low = std::floor(place);
  const auto at = [&](double i) {
    return i >= 0 && i < static_cast<double>(line.size()) ? line[static_cast<size_t>(i)] : 0;
  };
  return at(low) * (low + 1 - place) + at(low + 1) * (place - low);
}

TEST(GridSample, ReadsBetweenPixels) {
  const Given x = drawn({1, 1, 5}, 1);
  const Numbers places = {-1.1, -0.5, 0.15, 0.9, 1.2};
  const Given grid = f32({1, 5, 1}, places);
  for (const bool corners : {false, true}) {
    Numbers wanted;
    for (const double place : places) {
      const auto exact = static_cast<double>(static_cast<float>(place));
      wanted.push_back(between(x.values, corners ? (exact + 1) * 2 : ((exact + 1) * 5 - 1) / 2));
    }
    expect_close(made({"GridSample", {x, grid}, {whole("align_corners", corners)}})[0], wanted,
                 1e-6);
  }
}

TEST(GridSample, GoesOnBeyondTheRimAsItIsTold) {
  const Given x = f32({1, 1, 1, 4}, {1, 2, 3, 4});
  const Given grid =
      f32({1, 1, 2, 2}, {-1.5, 0, 1.5, 0});  // (x, y): columns -1.5 and 4.5 of 0 to 3
  const auto of_mode = [&](const char* mode) {
    return made(
        {"GridSample", {x, grid}, {text("mode", "nearest"), text("padding_mode", mode)}})[0];
  };
  EXPECT_EQ(of_mode("zeros"), (Numbers{0, 0}));
  EXPECT_EQ(of_mode("border"), (Numbers{1, 4}));
  EXPECT_EQ(of_mode("reflection"), (Numbers{2, 4}));
  EXPECT_EQ(refusal({"GridSample", {x, f32({1, 1, 2, 3}, Numbers(6, 0))}}).code,
            ErrorCode::kOnnxShape);
}

TEST(RoiAlign, AveragesSamplesOfEachBin) {
  const Given x = f32({1, 1, 1, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Given rois = f32({1, 4}, {1, 0, 5, 1});
  const Given image = of(Dtype::i64, {1}, {0});
  // Bins of 2 from 0.5 on, samples at a quarter and three.
  EXPECT_EQ(
      made({"RoiAlign",
            {x, rois, image},
            {whole("output_width", 2), whole("output_height", 1), whole("sampling_ratio", 2)}})[0],
      (Numbers{1.5, 3.5}));
  EXPECT_EQ(refusal({"RoiAlign", {x, rois, image}}).code, ErrorCode::kOnnxAttribute);
}

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  const Given x = drawn({1, 2, 4, 4}, 1);
  const Given w = drawn({3, 2, 2, 2}, 2);
  const Given offsets = of(Dtype::f32, {1, 8, 3, 3}, Numbers(72, 0));
  const Given bias = drawn({3}, 3);
  expect_close(made({"DeformConv", {x, w, offsets, bias}})[0], made({"Conv", {x, w, bias}})[0]);
  // Moved by one pixel down it sees the row below.
  Numbers down(72, 0);
  for (int64_t tap = 0; tap < 4; ++tap)
    std::fill_n(down.begin() + tap * 18, 9, 1.0);
  const Numbers moved = made({"DeformConv", {x, w, of(Dtype::f32, {1, 8, 3, 3}, down)}})[0];
  const Numbers plain = made({"Conv", {x, w}})[0];
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(moved[m * 9 + i], plain[m * 9 + i + 3], 1e-9);
  EXPECT_EQ(refusal({"DeformConv", {x, w, drawn({1, 8, 2, 3})}}).code, ErrorCode::kOnnxShape);
}

TEST(Col2Im, AddsBlocksWhereTheyOverlap) {
  // Blocks of 2 that slide over 4: element i is in as many of them as lie on it.
  const Given ones = of(Dtype::f32, {1, 2, 3}, Numbers(6, 1));
  const Given image = known(of(Dtype::i64, {1}, {4}));
  const Given block = known(of(Dtype::i64, {1}, {2}));
  EXPECT_EQ(made({"Col2Im", {ones, image, block}})[0], (Numbers{1, 2, 2, 1}));
  EXPECT_EQ(refusal({"Col2Im", {drawn({1, 2, 4}), image, block}}).code, ErrorCode::kOnnxShape);
}

TEST(CenterCropPad, KeepsTheMiddle) {
  const Given x = f32({5}, {1, 2, 3, 4, 5});
  const auto to = [&](int64_t size) {
    return made({"CenterCropPad", {x, known(of(Dtype::i64, {1}, {static_cast<double>(size)}))}})[0];
  };
  EXPECT_EQ(to(2), (Numbers{2, 3}));
  EXPECT_EQ(to(8), (Numbers{0, 1, 2, 3, 4, 5, 0, 0}));
}

// The definition of the transform.
Numbers transformed(const Numbers& x, int64_t parts, int64_t length, bool inverse) {
  Numbers out;
  for (int64_t k = 0; k < length; ++k) {
    double real = 0;
    double imaginary = 0;
    for (int64_t t = 0; t < length; ++t) {
      const double angle = (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(k * t) /
                           static_cast<double>(length);
      const double a = x[t * parts];
      const double b = parts == 2 ? x[t * parts + 1] : 0;
      real += a * std::cos(angle) - b * std::sin(angle);
      imaginary += a * std::sin(angle) + b * std::cos(angle);
    }
    const double share = inverse ? 1 / static_cast<double>(length) : 1;
    out.insert(out.end(), {real * share, imaginary * share});
  }
  return out;
}

TEST(DFT, IsItsDefinition) {
  const Given real_line = drawn({1, 6, 1}, 1);
  const Given line = drawn({1, 5, 2}, 2);
  const Numbers whole_spectrum = transformed(real_line.values, 1, 6, false);
  expect_close(made({"DFT", {real_line}})[0], whole_spectrum, 1e-6);
  expect_close(made({"DFT", {line}})[0], transformed(line.values, 2, 5, false), 1e-6);
  expect_close(made({"DFT", {line}, {whole("inverse", 1)}})[0],
               transformed(line.values, 2, 5, true), 1e-6);
  const Numbers half(whole_spectrum.begin(), whole_spectrum.begin() + 8);
  expect_close(made({"DFT", {real_line}, {whole("onesided", 1)}})[0], half, 1e-6);
  // Half of a spectrum tells the line again.
  const Made back =
      made({"DFT", {f32({1, 4, 2}, half)}, {whole("onesided", 1), whole("inverse", 1)}});
  expect_close(back[0], real_line.values, 1e-6);
}

TEST(DFT, BadInputsAreRefusedByCode) {
  EXPECT_EQ(refusal({"DFT", {drawn({1, 5, 3})}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refusal({"DFT", {drawn({1, 5, 2})}, {whole("onesided", 1)}}).code,
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal({"DFT", {drawn({1, 5, 1}), of(Dtype::i64, {}, {4})}}).code,
            ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(refusal({"DFT", {drawn({1, 5000, 1})}}).code, ErrorCode::kOnnxTooLarge);
}

TEST(STFT, TransformsWeightedFrames) {
  const Given x = drawn({1, 8, 1}, 1);
  const Given step = known(of(Dtype::i64, {}, {2}));
  const Given window = f32({4}, {0.5, 1, 1, 0.5});
  Numbers wanted;
  for (int64_t frame = 0; frame < 3; ++frame) {
    Numbers part;
    for (int64_t i = 0; i < 4; ++i)
      part.push_back(x.values[frame * 2 + i] * window.values[i]);
    const Numbers spectrum = transformed(part, 1, 4, false);
    wanted.insert(wanted.end(), spectrum.begin(), spectrum.begin() + 6);
  }
  expect_close(made({"STFT", {x, step, window}})[0], wanted, 1e-6);
  EXPECT_EQ(refusal({"STFT", {x, of(Dtype::i64, {}, {2}), window}}).code,
            ErrorCode::kOnnxDynamicShape);
}

TEST(Windows, AreSumsOfCosines) {
  const Given size = known(of(Dtype::i64, {}, {4}));
  expect_close(made({"HannWindow", {size}})[0], {0, 0.5, 1, 0.5}, 1e-6);
  expect_close(made({"HannWindow", {size}, {whole("periodic", 0)}})[0], {0, 0.75, 0.75, 0}, 1e-6);
  EXPECT_EQ(refusal({"HannWindow", {of(Dtype::i64, {}, {4})}}).code, ErrorCode::kOnnxDynamicShape);
}

TEST(Resize, KeepsProportionsWidensAndLooksAtRegions) {
  const Given x = f32({1, 1, 2, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8});
  const auto sized = [&](const char* policy) {
    const Case of_sizes = {"Resize",
                           {x, left_out(), left_out(), known(of(Dtype::i64, {2}, {2, 4}))},
                           {wholes("axes", {2, 3}), text("keep_aspect_ratio_policy", policy)}};
    return made(of_sizes).dims[0];
  };
  EXPECT_EQ(sized("not_larger"), (Dims{1, 1, 1, 4}));
  EXPECT_EQ(sized("not_smaller"), (Dims{1, 1, 2, 8}));
  const Given line = f32({1, 1, 1, 4}, {1, 2, 3, 4});
  const Given half = known(f32({1}, {0.5}));
  // Each of two sees four places with weights 1/8, 3/8, 3/8, 1/8, the rim twice.
  const Made widened = made({"Resize",
                             {line, left_out(), half},
                             {wholes("axes", {3}), text("mode", "linear"), whole("antialias", 1)}});
  expect_close(widened[0], {(1 + 3 * 1 + 3 * 2 + 3) / 8.0, (2 + 3 * 3 + 3 * 4 + 4) / 8.0});
  const Made region =
      made({"Resize",
            {line, known(f32({2}, {0.5, 1.5})), left_out(), known(of(Dtype::i64, {1}, {3}))},
            {wholes("axes", {3}), text("mode", "linear"), real("extrapolation_value", 9),
             text("coordinate_transformation_mode", "tf_crop_and_resize")}});
  expect_close(region[0], {2.5, 4, 9});
}

TEST(Einsum, TakesDiagonalsAndStretches) {
  const Given square = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(made({"Einsum", {square}, {text("equation", "ii->i")}})[0], (Numbers{1, 4}));
  EXPECT_EQ(made({"Einsum", {square}, {text("equation", "ii")}})[0], (Numbers{5}));
  const Given row = f32({1, 2}, {10, 20});
  EXPECT_EQ(made({"Einsum", {square, row}, {text("equation", "ij,ij->ij")}})[0],
            (Numbers{10, 40, 30, 80}));
  EXPECT_EQ(refusal({"Einsum", {square, drawn({3, 2})}, {text("equation", "ij,ij->ij")}}).code,
            ErrorCode::kOnnxAttribute);
}

TEST(Determinant, IsWrittenOutForSmallMatrices) {
  EXPECT_EQ(made({"Det", {f32({2, 2}, {1, 2, 3, 4})}})[0], (Numbers{-2}));
  EXPECT_EQ(made({"Det", {f32({1, 3, 3}, {2, 0, 1, 1, 3, 2, 0, 1, 4})}})[0], (Numbers{21}));
  EXPECT_EQ(refusal({"Det", {drawn({5, 5})}}).code, ErrorCode::kOnnxShape);
}

TEST(Bits, AreThoseOfTwosComplement) {
  const Given a = of(Dtype::i32, {3}, {12, -1, -8});
  const Given b = of(Dtype::i32, {3}, {10, 255, 3});
  EXPECT_EQ(made({"BitwiseAnd", {a, b}})[0], (Numbers{8, 255, 0}));
  EXPECT_EQ(made({"BitwiseOr", {a, b}})[0], (Numbers{14, -1, -5}));
  EXPECT_EQ(made({"BitwiseXor", {a, b}})[0], (Numbers{6, -256, -5}));
  EXPECT_EQ(refusal({"BitwiseAnd", {drawn({3}), drawn({3})}}).code, ErrorCode::kOnnxType);
}

TEST(BitShift, MovesBitsOfEveryType) {
  const std::string left = text("direction", "LEFT");
  const std::string right = text("direction", "RIGHT");
  const Given n = of(Dtype::u8, {3}, {1, 7, 8});
  EXPECT_EQ(made({"BitShift", {of(Dtype::u8, {3}, {255, 3, 1}), n}, {left}})[0],
            (Numbers{254, 128, 0}));
  EXPECT_EQ(made({"BitShift", {of(Dtype::u8, {3}, {255, 255, 255}), n}, {right}})[0],
            (Numbers{127, 1, 0}));
  const Given signed_n = of(Dtype::i16, {3}, {1, 15, 16});
  EXPECT_EQ(made({"BitShift", {of(Dtype::i16, {3}, {-7, -7, -7}), signed_n}, {right}})[0],
            (Numbers{-4, -1, -1}));
  const Given wide = of(Dtype::u64, {2}, {0x1p63, 0x1p63});
  const Made moved = made({"BitShift", {wide, of(Dtype::u64, {2}, {63, 1})}, {right}});
  EXPECT_EQ(moved[0], (Numbers{1, 0x1p62}));
  EXPECT_EQ(refusal({"BitShift", {n, n}}).code, ErrorCode::kOnnxAttribute);
}

TEST(UnsignedNumbers, OfSixtyFourBitsHaveTheirOrder) {
  const Given big = of(Dtype::u64, {2}, {0x1p63, 1});
  const Given small = of(Dtype::u64, {2}, {2, 2});
  EXPECT_EQ(made({"Greater", {big, small}})[0], (Numbers{1, 0}));
  EXPECT_EQ(made({"Less", {big, small}})[0], (Numbers{0, 1}));
  EXPECT_EQ(made({"Equal", {big, small}})[0], (Numbers{0, 0}));
  // Stored as the number of 64 bits that has these bits.
  EXPECT_EQ(made({"Min", {big, small}})[0], (Numbers{2, 1}));
  EXPECT_EQ(refusal({"Div", {big, small}}).code, ErrorCode::kOnnxType);
  EXPECT_EQ(refusal({"Cast", {big}, {whole("to", 1)}}).code, ErrorCode::kOnnxType);
}

TEST(NarrowIntegers, WrapAtTheirEnds) {
  EXPECT_EQ(made({"Add", {of(Dtype::i16, {1}, {32767}), of(Dtype::i16, {1}, {1})}})[0],
            (Numbers{-32768}));
  EXPECT_EQ(made({"Mul", {of(Dtype::u16, {1}, {65535}), of(Dtype::u16, {1}, {2})}})[0],
            (Numbers{65534}));
  EXPECT_EQ(made({"Sub", {of(Dtype::u32, {1}, {0}), of(Dtype::u32, {1}, {1})}})[0],
            (Numbers{4294967295.0}));
  EXPECT_EQ(wrapped_integer(Dtype::u16, 65537), 1);
  EXPECT_EQ(wrapped_integer(Dtype::i16, 32768), -32768);
}

TEST(BitCast, IsOfIntegersOfOneWidth) {
  EXPECT_EQ(made({"BitCast", {of(Dtype::u32, {1}, {4294967295.0})}, {whole("to", 6)}})[0],
            (Numbers{-1}));
  EXPECT_EQ(refusal({"BitCast", {drawn({1})}, {whole("to", 6)}}).code, ErrorCode::kOnnxType);
  EXPECT_EQ(refusal({"BitCast", {of(Dtype::u8, {1}, {1})}, {whole("to", 6)}}).code,
            ErrorCode::kOnnxType);
}
}  // namespace
}  // namespace warploom
