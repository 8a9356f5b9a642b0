// Steps as calls of cuDNN, one function a kind; convolutions have a file of their own.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "vendor/cudnn.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
namespace {
constexpr int kSpatial = 1;  // cudnnBatchNormMode_t
// cudnnSoftmaxAlgorithm_t
constexpr int kAccurate = 1;
constexpr int kLog = 2;
constexpr int kChannel = 1;                                     // cudnnSoftmaxMode_t
constexpr int kCrossChannel = 0;                                // cudnnLRNMode_t
constexpr std::array kPoolCodes = {0, 1, 2};                    // by PoolKind
constexpr std::array kReduceCodes = {0, 5, 3, 2, 1, 6, 7, -1};  // by Reduce, -1: none
constexpr int kAddCode = 0;
constexpr int kMulCode = 1;
constexpr int kMinCode = 2;
constexpr int kMaxCode = 3;
constexpr int kSqrtCode = 4;
constexpr uint32_t kOneBits = 0x3f800000u;

// What is below any number in the type, twice where two fit.
uint32_t lowest(Dtype dtype) {
  if (dtype == Dtype::bf16) return 0xff80ff80u;
  return dtype == Dtype::f16 ? 0xfc00fc00u : 0xff800000u;
}
}  // namespace

Status CudnnLibrary::make(const Pooling& given, const Step& step, Program& program) {
  if (!step.after.empty()) return refused("a pooling with what comes after");
  const Window window = spatial(given.window);
  const Place wanted = spatial(given.dst);
  if (std::ranges::any_of(window.dilations, [](int64_t size) { return size != 1; }))
    return refused("a dilated pooling");
  WARPLOOM_TRY(Place src, read(spatial(given.src), program));
  uint32_t border = 0;
  if (given.how == PoolKind::max) border = lowest(src.dtype);
  const std::string before = src.buffer;
  const auto enlarged_src = padded(src, window, wanted.shape, border, program);
  WARPLOOM_TRY(src, enlarged_src);
  const bool enlarged = src.buffer != before;
  if (enlarged && given.how == PoolKind::mean_of_inside)
    return refused("a mean over uneven padding");
  Shape pads = window.begins;
  if (enlarged) std::ranges::fill(pads, 0);
  const Place dst = to_write(wanted, program);
  const Object x = tensor_of(src);
  const Object y = tensor_of(dst);
  const Object pooling = d_.pooling();
  if (!x || !y || !pooling) return refused("the window");
  const int code = kPoolCodes[as_size(given.how)];
  const auto rank = as_int(pads.size());
  const auto kernel = integers(window.kernel);
  const auto begins = integers(pads);
  const auto strides = integers(window.strides);
  const int set = d_.pooling_set(pooling.get(), code, kPropagateNan, rank, kernel.data(),
                                 begins.data(), strides.data());
  if (set != 0) return refused("the window");
  const Work run = overwriting(d_.pool, x, y, pooling);
  WARPLOOM_CHECK(attempt({src, dst}, run, "the pooling", program));
  return deliver(wanted, dst, program);
}

Status CudnnLibrary::make(const Softmax& call, const Step& step, Program& program) {
  own_now_ = false;
  if (!step.after.empty()) return refused("a softmax with what comes after");
  const auto axis = as_size(call.axis);
  const Shape& shape = call.src.shape;
  int64_t outer = 1;
  int64_t inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t& side = d < axis ? outer : inner;
    side *= shape[d];
  }
  inner /= shape[axis];
  WARPLOOM_TRY(const Place given, rows(call.src, program));
  const Shape as_image = {outer, shape[axis], inner, 1};
  const auto src = reshaped(given, as_image);
  const auto dst = reshaped(call.dst, as_image);
  if (!src || !dst) return refused("a softmax that does not lie evenly");
  const Object x = tensor_of(*src);
  const Object y = tensor_of(*dst);
  if (!x || !y) return refused("an element type");
  kept_.erase(call.dst.buffer);
  const int algorithm = call.log ? kLog : kAccurate;
  const Work run = overwriting(d_.softmax, x, y, algorithm, kChannel);
  return attempt({*src, *dst}, run, "the softmax", program);
}

Status CudnnLibrary::make(const BatchNorm& call, const Step& step, Program& program) {
  if (!step.after.empty()) return refused("a normalisation with what comes after");
  for (const Place* each : {&call.scale, &call.shift, &call.mean, &call.variance})
    if (each->dtype != Dtype::f32) return refused("statistics but in f32");
  WARPLOOM_TRY(const Place src, read(spatial(call.src), program));
  const Place dst = to_write(spatial(call.dst), program);
  const size_t rank = std::max<size_t>(src.shape.size(), 4);
  Shape channels(rank, 1);
  channels[1] = src.shape[1];
  const Object x = tensor_of(src);
  const Object y = tensor_of(dst);
  const Object factors = tensor_of(packed_place("", Dtype::f32, channels));
  if (!x || !y || !factors) return refused("an element type");
  std::vector<Place> places = {src, dst};
  for (const Place* each : {&call.scale, &call.shift, &call.mean, &call.variance})
    WARPLOOM_TRY(places.emplace_back(), rows(*each, program));
  const auto run = [&d = d_, x, y, factors, epsilon = call.epsilon](const Addresses& at) {
    return d.batch_norm(d.handle, kSpatial, &kOne, &kZero, x.get(), at[0], y.get(), at[1],
                        factors.get(), at[2], at[3], at[4], at[5], epsilon);
  };
  WARPLOOM_CHECK(attempt(places, run, "the normalisation", program));
  return deliver(spatial(call.dst), dst, program);
}

// Rows as the channels of one image, normalised by their own statistics; then the factors.
Status CudnnLibrary::make(const LayerNorm& call, const Step& step, Program& program) {
  own_now_ = false;
  if (!step.after.empty()) return refused("a normalisation of rows with what comes after");
  if (call.src.dtype != Dtype::f32) return refused("a normalisation of rows but in f32");
  const int64_t count = elements_of(call.src) / call.size;
  WARPLOOM_TRY(const Place given, rows(call.src, program));
  const Shape as_image = {1, count, call.size, 1};
  const auto src = reshaped(given, as_image);
  const auto dst = reshaped(call.dst, as_image);
  if (!src || !dst) return refused("rows that do not lie one after another");
  const Shape channels = {1, count, 1, 1};
  const Place ones = scratch_like(*src, channels, false, program);
  const Place zeros = scratch_like(*src, channels, false, program);
  const Object x = tensor_of(*src);
  const Object y = tensor_of(*dst);
  const Object factors = tensor_of(ones);
  if (!x || !y || !factors) return refused("so many rows");
  kept_.erase(call.dst.buffer);
  const auto run = [&d = d_, x, y, factors, epsilon = call.epsilon](const Addresses& at) {
    return d.batch_norm_of_own(d.handle, kSpatial, &kOne, &kZero, x.get(), at[0], y.get(), at[1],
                               factors.get(), at[2], at[3], 0, nullptr, nullptr, epsilon, nullptr,
                               nullptr);
  };
  const std::vector<Filled> filled = {{ones.buffer, kOneBits}, {zeros.buffer, 0u}};
  const std::vector<Place> places = {*src, *dst, ones, zeros};
  WARPLOOM_CHECK(attempt(places, run, "the normalisation", program, filled));
  const auto flat_dst = reshaped(call.dst, {count, call.size});
  const auto add = [&](const std::optional<Place>& factor, Combine how) -> Status {
    if (!factor) return ok();
    After after;
    after.other = of_rank(*factor, 2);
    after.combine = how;
    return combination(after, *flat_dst, *flat_dst, program);
  };
  WARPLOOM_CHECK(add(call.scale, Combine::mul));
  return add(call.shift, Combine::add);
}

Status CudnnLibrary::make(const Reduction& call, const Step& step, Program& program) {
  own_now_ = false;
  const int code = kReduceCodes[as_size(call.how)];
  if (!step.after.empty() || code < 0) return refused("the reduction");
  WARPLOOM_TRY(const Place src, rows(call.src, program));
  const Object x = tensor_of(src);
  const Object y = tensor_of(call.dst);
  const Object reduction = d_.reduction();
  size_t bytes = 0;
  if (!x || !y || !reduction) return refused("the reduction");
  if (d_.reduction_set(reduction.get(), code, kFloat, kPropagateNan, 0, 0) != 0)
    return refused("the reduction");
  if (d_.reduction_workspace(d_.handle, reduction.get(), x.get(), y.get(), &bytes) != 0)
    return refused("the reduction");
  const auto words = as_int64(bytes / 4 + 1);
  const Place one = packed_place("reduction", Dtype::f32, {1});
  const Place workspace = scratch_like(one, {words}, false, program);
  kept_.erase(call.dst.buffer);
  const auto run = [&d = d_, x, y, reduction, bytes](const Addresses& at) {
    const CudnnTensor from{x, at[0]};
    const CudnnTensor to{y, at[1]};
    void* const indices = nullptr;
    return overwrite(d.reduce, from, to, reduction.get(), indices, size_t{0}, at[2], bytes);
  };
  return attempt({src, call.dst, workspace}, run, "the reduction", program);
}

Status CudnnLibrary::make(const Lrn& call, const Step& step, Program& program) {
  own_now_ = false;
  if (!step.after.empty()) return refused("a normalisation with what comes after");
  WARPLOOM_TRY(const Place src, rows(spatial(call.src), program));
  const Place dst = spatial(call.dst);
  const Object x = tensor_of(src);
  const Object y = tensor_of(dst);
  const Object lrn = d_.lrn();
  if (!x || !y || !lrn) return refused("the normalisation");
  const auto size = as_uint32(call.size);
  if (d_.lrn_set(lrn.get(), size, call.alpha, call.beta, call.bias) != 0)
    return refused("the normalisation");
  kept_.erase(call.dst.buffer);
  const Work run = overwriting(d_.normalize, x, y, lrn, kCrossChannel);
  return attempt({src, dst}, run, "the normalisation", program);
}

Status CudnnLibrary::make(const Copy& call, const Step& step, Program& program) {
  own_now_ = false;
  if (!step.after.empty()) return refused("a copy with what comes after");
  WARPLOOM_TRY(const Place src, rows(call.src, program));
  kept_.erase(call.dst.buffer);
  return copy(src, call.dst, program);
}

Status CudnnLibrary::make(const Elementwise& call, const Step& step, Program& program) {
  own_now_ = false;
  if (step.after.size() != 1) return refused("several operations in one");
  WARPLOOM_TRY(const Place src, rows(call.src, program));
  if (src.dtype != call.dst.dtype) return refused("mixed types");
  kept_.erase(call.dst.buffer);
  const After& only = step.after[0];
  if (only.other) return combination(only, src, call.dst, program);
  return function(only, src, call.dst, program);
}

Status CudnnLibrary::function(const After& after, const Place& src, const Place& dst,
                              Program& program) {
  const Object x = tensor_of(src);
  const Object y = tensor_of(dst);
  if (!x || !y) return refused("a layout or element type");
  if (after.function == Function::linear && after.beta == 0) {
    const auto factor = as_float(after.alpha);
    const Work run = overwriting_scaled(d_.transform, factor, x, y);
    return attempt({src, dst}, run, "a factor", program);
  }
  if (after.function == Function::square || after.function == Function::sqrt) {
    const Object how = d_.combination();
    const int code = after.function == Function::sqrt ? kSqrtCode : kMulCode;
    if (!how || d_.combination_set(how.get(), code, kFloat, kPropagateNan) != 0)
      return refused("the function");
    const auto run = [&d = d_, x, y, how](const Addresses& at) {
      const CudnnTensor from{x, at[0]};
      const CudnnTensor to{y, at[1]};
      return overwrite(d.combine, from, to, how.get(), &kOne, x.get(), at[0]);
    };
    return attempt({src, dst}, run, "the function", program);
  }
  const int mode = row_of(after.function).cudnn;
  const bool leaky = after.function == Function::relu && after.alpha != 0;
  const bool other_swish = after.function == Function::swish && after.alpha != 1;
  const Object activation = d_.activation();
  if (mode < 0 || leaky || other_swish || !activation) return refused("the function");
  if (d_.activation_set(activation.get(), mode, kPropagateNan, after.alpha) != 0)
    return refused("the function");
  const Work run = overwriting(d_.activate, x, y, activation);
  return attempt({src, dst}, run, "the function", program);
}

Status CudnnLibrary::combination(const After& after, const Place& src, const Place& dst,
                                 Program& program) {
  // By Combine, and what the second is multiplied by.
  constexpr std::array<std::pair<int, float>, 6> kHow = {{{kAddCode, 1.0f},
                                                          {kAddCode, -1.0f},
                                                          {kMulCode, 1.0f},
                                                          {-1, 0.0f},
                                                          {kMaxCode, 1.0f},
                                                          {kMinCode, 1.0f}}};
  const auto [code, sign] = kHow[as_size(after.combine)];
  if (code < 0) return refused("a division");
  WARPLOOM_TRY(const Place given, rows(*after.other, program));
  const Place other = of_rank(given, src.shape.size());
  const Object x = tensor_of(src);
  const Object b = tensor_of(other);
  const Object y = tensor_of(dst);
  const Object how = d_.combination();
  if (!x || !b || !y || !how) return refused("the combination");
  if (d_.combination_set(how.get(), code, kFloat, kPropagateNan) != 0)
    return refused("the combination");
  const auto run = [&d = d_, x, b, y, how, factor = sign](const Addresses& at) {
    const CudnnTensor second{b, at[1]};
    const CudnnTensor to{y, at[2]};
    return overwrite_scaled(d.combine, factor, second, to, how.get(), &kOne, x.get(), at[0]);
  };
  return attempt({src, other, dst}, run, "the combination", program);
}

Status CudnnLibrary::make(const Matmul&, const Step&, Program&) {
  return refused("products");
}

Status CudnnLibrary::make(const Unmatched&, const Step&, Program&) {
  return refused("these operators");
}
}  // namespace warploom::vendor
