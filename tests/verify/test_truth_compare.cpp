// Outputs held against the truth as a GPU does it (resources/truth/compare.cu), and the process
// that does so (verify/device_truth.h): here on this machine's cores.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "host_truth.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "verify/device_truth.h"
#include "verify/inputs.h"
#include "verify/row_truth.h"
#include "verify/setup.h"
#include "verify/tolerance.h"
#include "verify/truth_engine.h"

namespace warploom::verify {
namespace {
using graph::Builder, graph::OpKind;

class TruthCompares : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    if (runtime::find_cpu_compiler()) device_ = *runtime::Executor::open(Engine::cpu);
  }

  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "no C++ compiler here";
    ::setenv(kHostTruth, "1", 1);
  }

  void TearDown() override { ::unsetenv(kHostTruth); }

  static runtime::Buffer buffer(int64_t bytes) { return *device_->allocate(bytes); }

  inline static ScratchFolder cache_{"truth-compare-test"};
  inline static std::unique_ptr<runtime::Executor> device_;
};

graph::Graph cast_graph(Dtype to, graph::Shape shape) {
  Builder builder("cast");
  const auto x = builder.input("x", Dtype::f32, std::move(shape));
  builder.output(builder.add(OpKind::Cast, {builder.add(OpKind::Exp, {x})},
                             {{"to", int64_t{onnx_type_of(to)}}}));
  return *builder.finish();
}

graph::Graph relu_graph() {
  Builder builder("relu");
  builder.output(builder.add(OpKind::Relu, {builder.input("x", Dtype::f32, {40, 70})}));
  return *builder.finish();
}

// The truth as the type holds it.
std::vector<std::byte> stored(const graph::ValueAndMagnitude& truth, Dtype dtype) {
  const size_t count = truth.value.size();
  std::vector<std::byte> bytes(count * static_cast<size_t>(bytes_of(dtype)));
  for (size_t i = 0; i < count; ++i)
    store_from_double(dtype, bytes.data(), i, truth.value[i]);
  return bytes;
}

// Sums, which both add in their own order, and maxima.
std::vector<double> figures(const Comparison& of) {
  return {of.error_squares,     of.reference_squares, of.reference_fourths, of.magnitude_squares,
          of.magnitude_fourths, of.largest_error,     of.largest_reference, of.worst.ratio};
}

// Counts, and whether: the same in both.
std::vector<int64_t> counts(const Comparison& of) {
  return {of.worst.index,        of.compared,        of.undetermined,
          of.all_zero,           of.zero_expected,   of.beyond,
          of.nonfinite.count,    of.unwritten.count, of.lost_nan.count,
          of.lost_infinity.count};
}

// Where marks were seen first; -1 where there are none.
std::vector<int64_t> first_places(const Comparison& of) {
  std::vector<int64_t> places;
  for (const auto& marks : {of.nonfinite, of.unwritten, of.lost_nan, of.lost_infinity})
    places.push_back(marks.count > 0 ? marks.first : -1);
  return places;
}

void expect_equal(const Comparison& wanted, const Comparison& found, const std::string& what) {
  const std::vector<double> a = figures(wanted);
  const std::vector<double> b = figures(found);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i] == b[i] || std::abs(a[i] - b[i]) <= 1e-9 * std::abs(a[i]))
        << what << ", figure " << i << ": " << a[i] << ", " << b[i];
  EXPECT_EQ(counts(wanted), counts(found)) << what;
  EXPECT_EQ(first_places(wanted), first_places(found)) << what;
}

// A few elements of every kind of wrong, and numbers in the place of half of what is none.
void spoil(std::vector<std::byte>& bytes, Dtype dtype, const std::vector<double>& truth) {
  const double kinds[] = {
      std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, 0, 1, 1e30};
  const auto size = static_cast<size_t>(bytes_of(dtype));
  const size_t count = bytes.size() / size;
  Random random(5, "spoiled");
  for (size_t i = 0; i < 60; ++i) {
    const size_t at = random.below(count);
    store_from_double(dtype, bytes.data(), at, kinds[i % std::size(kinds)]);
  }
  for (size_t i = 0; i < count; i += 2)
    if (!std::isfinite(truth[i])) store_from_double(dtype, bytes.data(), i, 2);
  for (size_t i = 0; i < 9; ++i) {
    const size_t at = random.below(count) * size;
    for (size_t b = 0; b < size; ++b)
      bytes[at + b] = static_cast<std::byte>(runtime::kPoison >> 8 * (b % 4));
  }
}

TEST_F(TruthCompares, SeeWhatTheCpuSees) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3, Dtype::f64,
                            Dtype::i32, Dtype::i64, Dtype::u8}) {
    const graph::Graph graph = cast_graph(dtype, {30, 77});
    auto engine = TruthEngine::make(*device_, graph, Track::fp32);
    ASSERT_TRUE(engine) << describe(engine.error());
    for (const InputFamily family : {InputFamily::normal, InputFamily::outliers, InputFamily::ends,
                                     InputFamily::infinities, InputFamily::nans}) {
      ASSERT_TRUE((*engine)->draw(0, family, 9));
      const auto truth = (*engine)->truth(0, 0, 0, 30);
      ASSERT_TRUE(truth) << describe(truth.error());
      for (const bool spoiled : {false, true}) {
        std::vector<std::byte> bytes = stored(*truth, dtype);
        if (spoiled) spoil(bytes, dtype, truth->value);
        const auto size = std::ssize(bytes);
        const runtime::Buffer found = buffer(size);
        ASSERT_TRUE(device_->upload(found, bytes.data(), size));
        const auto seen = (*engine)->compare(0, {&found, 1});
        ASSERT_TRUE(seen) << describe(seen.error());
        Comparison wanted;
        const auto count = std::ssize(truth->value);
        if (is_integer(dtype))
          compare_integers(wanted, dtype, bytes.data(), truth->integers.data(), 0, count);
        else
          compare(wanted, tolerance_of(graph, Track::fp32, 0), dtype, bytes.data(),
                  truth->value.data(), truth->magnitude.data(), 0, count, truth->marked);
        const std::string what =
            fmt::format("{}, {}, spoiled {}", name_of(dtype), name_of(family), spoiled);
        expect_equal(wanted, (*seen)[0], what);
      }
    }
  }
}

// Of NaN a kernel may make NaN, as IEEE says, or 0, as C's fmax does: nothing else.
TEST_F(TruthCompares, TakeANanThatAChoiceDrops) {
  const graph::Graph graph = relu_graph();
  auto engine = TruthEngine::make(*device_, graph, Track::fp32);
  ASSERT_TRUE(engine) << describe(engine.error());
  ASSERT_TRUE((*engine)->draw(0, InputFamily::nans, 9));
  const auto truth = (*engine)->truth(0, 0, 0, 40);
  ASSERT_TRUE(truth);
  ASSERT_TRUE(std::ranges::any_of(truth->value, [](double x) { return std::isnan(x); }));
  for (const double instead : {std::numeric_limits<double>::quiet_NaN(), 0.0, 7.0}) {
    graph::ValueAndMagnitude made = *truth;
    for (double& value : made.value)
      if (std::isnan(value)) value = instead;
    const std::vector<std::byte> bytes = stored(made, Dtype::f32);
    const runtime::Buffer found = buffer(std::ssize(bytes));
    ASSERT_TRUE(device_->upload(found, bytes.data(), std::ssize(bytes)));
    const auto seen = (*engine)->compare(0, {&found, 1});
    ASSERT_TRUE(seen);
    EXPECT_EQ((*seen)[0].worst.ratio <= 1, instead != 7.0) << instead;
    EXPECT_EQ((*seen)[0].lost_nan.count, 0) << instead;
  }
}

// A process of its own, and buffers here that it knows by way of the host's memory.
struct Asked {
  explicit Asked(runtime::Executor& device) {
    const graph::Graph graph = relu_graph();
    Setup setup{.graph = graph};
    auto started = DeviceTruth::start(setup, device, {.transfer_bytes = 4096});
    if (!started || !(*started)->await()) return;
    truth = *std::move(started);
    for (Looked* one : {&input, &output}) {
      one->whole = *device.allocate(3 * 4096 + 40 * 70 * 4);
      one->data = one->whole.slice(4096, 40 * 70 * 4);
    }
  }

  // What the kernel would make.
  void compute() const {
    const auto* const x = static_cast<const float*>(input.data.address());
    auto* const y = static_cast<float*>(output.data.address());
    for (int64_t i = 0; i < 40 * 70; ++i)
      y[i] = x[i] > 0 ? x[i] : 0;
  }

  std::unique_ptr<DeviceTruth> truth;
  Looked input;
  Looked output;
};

TEST_F(TruthCompares, OfAnotherProcessAreOfTheseBuffers) {
  const Asked asked(*device_);
  ASSERT_TRUE(asked.truth);
  ASSERT_TRUE(asked.truth->draw(0, InputFamily::normal, 3, {&asked.input, 1}));
  asked.compute();
  const auto seen = asked.truth->compare(0, {&asked.output, 1});
  ASSERT_TRUE(seen) << describe(seen.error());
  EXPECT_EQ((*seen)[0].compared, 40 * 70);
  EXPECT_EQ((*seen)[0].error_squares, 0);
  static_cast<float*>(asked.output.data.address())[2799] += 1;
  const auto wrong = asked.truth->compare(0, {&asked.output, 1});
  ASSERT_TRUE(wrong);
  EXPECT_EQ((*wrong)[0].worst.index, 2799);
}

TEST_F(TruthCompares, OfAnotherProcessSeeAnInputThatWasWritten) {
  const Asked asked(*device_);
  ASSERT_TRUE(asked.truth);
  ASSERT_TRUE(asked.truth->draw(0, InputFamily::normal, 3, {&asked.input, 1}));
  const auto untouched = asked.truth->changed(0, {&asked.input, 1});
  ASSERT_TRUE(untouched);
  EXPECT_FALSE(untouched->has_value());
  static_cast<float*>(asked.input.data.address())[2799] += 1;
  const auto touched = asked.truth->changed(0, {&asked.input, 1});
  ASSERT_TRUE(touched && touched->has_value());
  EXPECT_EQ(**touched, 0u);
}

TEST_F(TruthCompares, OfAnotherProcessHashEveryByte) {
  const Asked asked(*device_);
  ASSERT_TRUE(asked.truth);
  ASSERT_TRUE(asked.truth->draw(0, InputFamily::normal, 3, {&asked.input, 1}));
  asked.compute();
  const auto first = asked.truth->hash({&asked.output, 1});
  const auto second = asked.truth->hash({&asked.output, 1});
  static_cast<char*>(asked.output.data.address())[11'199] ^= 1;
  const auto third = asked.truth->hash({&asked.output, 1});
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *third);
}

TEST_F(TruthCompares, OfAProcessThatEndsAreAnError) {
  const verify::Setup setup{.graph = relu_graph()};
  const auto started = DeviceTruth::start(setup, *device_, {.program = "/bin/false"});
  ASSERT_TRUE(started);
  const Status ready = (*started)->await();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, ErrorCode::kEvaluatorLost);
}

// What a part of the elements shows, where the truth is not kept, is of the rows that the seed
// says.
TEST_F(TruthCompares, OfAPartAreOfThatPart) {
  const graph::Graph graph = cast_graph(Dtype::f32, {3000, 100});
  auto engine = TruthEngine::make(*device_, graph, Track::fp32);
  ASSERT_TRUE(engine);
  ASSERT_TRUE((*engine)->draw(0, InputFamily::normal, 9));
  const runtime::Buffer found = buffer(3000 * 100 * 4);
  ASSERT_TRUE(device_->fill(found, runtime::kPoison));
  const auto part = (*engine)->compare(0, {&found, 1}, {.whole = false, .elements = 5000});
  ASSERT_TRUE(part);
  EXPECT_EQ((*part)[0].unwritten.count, 5000);
  const auto all = (*engine)->compare(0, {&found, 1});
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)[0].unwritten.count, 300'000);
}

// Bytes of the inputs that rows are read of, and no others.
TEST_F(TruthCompares, OfRowsOnGivenInputsAreTheCpus) {
  const graph::Graph graph = cast_graph(Dtype::f32, {6, 50});
  std::vector<float> x(300);
  Random random(3, "given");
  for (float& number : x)
    number = static_cast<float>(random.normal());
  const graph::Bytes given(reinterpret_cast<const std::byte*>(x.data()), x.size() * 4);
  const auto truth = RowTruth::open(Engine::cpu, graph);
  ASSERT_TRUE(truth) << describe(truth.error());
  ASSERT_TRUE((*truth)->put(0, {100, 200}, given));
  const auto found = (*truth)->rows(0, 2, 4);
  const auto wanted = graph::evaluate_magnitude_rows(graph, {&given, 1}, 0, 2, 4);
  ASSERT_TRUE(found && wanted);
  ASSERT_EQ(found->value.size(), wanted->value.size());
  for (size_t i = 0; i < found->value.size(); ++i)
    EXPECT_NEAR(found->value[i], wanted->value[i], 1e-12 * wanted->magnitude[i]) << i;
}

// Rows whose truth there was no time for: what is unwritten shows there, and what is wrong does
// not.
TEST_F(TruthCompares, OfWhatThereWasTimeForSeeTheRestUnwritten) {
  constexpr int64_t kRows = 900;
  constexpr int64_t kColumns = 20'000;  // more than are made at once
  const graph::Graph graph = cast_graph(Dtype::f32, {kRows, kColumns});
  auto engine = TruthEngine::make(*device_, graph, Track::fp32);
  ASSERT_TRUE(engine);
  ASSERT_TRUE((*engine)->draw(0, InputFamily::normal, 9));
  const auto known = (*engine)->prepare(0, 0);
  ASSERT_TRUE(known);
  EXPECT_GT(*known, 0);
  EXPECT_LT(*known, kRows);
  const runtime::Buffer found = buffer(kRows * kColumns * 4);
  ASSERT_TRUE(device_->fill(found, runtime::kPoison));
  const auto all = (*engine)->compare(0, {&found, 1});
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)[0].unwritten.count, kRows * kColumns);
  EXPECT_EQ((*all)[0].unwritten.first, 0);
  ASSERT_TRUE(device_->fill(found, 0));
  const auto wrong = (*engine)->compare(0, {&found, 1});
  ASSERT_TRUE(wrong);
  EXPECT_EQ((*wrong)[0].compared, *known * kColumns);
  EXPECT_GT((*wrong)[0].worst.ratio, 1);
  const auto later = (*engine)->prepare(0);  // there is more time now
  ASSERT_TRUE(later);
  EXPECT_EQ(*later, kRows);
}

// A number that is poison in two bytes is a number of 16-bit integers.
TEST_F(TruthCompares, OfIntegersOf16BitsHaveNoPoison) {
  Builder builder("cast");
  const auto x = builder.input("x", Dtype::i16, {900, 20'000});
  builder.output(builder.add(OpKind::Identity, {x}));
  auto engine = TruthEngine::make(*device_, *builder.finish(), Track::fp32);
  ASSERT_TRUE(engine) << describe(engine.error());
  ASSERT_TRUE((*engine)->draw(0, InputFamily::normal, 9));
  ASSERT_TRUE((*engine)->prepare(0, 0));
  const runtime::Buffer found = buffer(900 * 20'000 * 2);
  ASSERT_TRUE(device_->fill(found, runtime::kPoison));
  const auto seen = (*engine)->compare(0, {&found, 1});
  ASSERT_TRUE(seen);
  EXPECT_EQ((*seen)[0].unwritten.count, 0);
}

TEST_F(TruthCompares, OfASetThatWasPreparedInTimeKnowEveryRow) {
  const graph::Graph graph = cast_graph(Dtype::f32, {900, 20'000});
  auto engine = TruthEngine::make(*device_, graph, Track::fp32);
  ASSERT_TRUE(engine);
  ASSERT_TRUE((*engine)->draw(0, InputFamily::normal, 9));
  const auto known = (*engine)->prepare(0);
  ASSERT_TRUE(known);
  EXPECT_EQ(*known, 900);
}
}  // namespace
}  // namespace warploom::verify
