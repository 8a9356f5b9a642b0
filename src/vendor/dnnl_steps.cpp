// Steps as primitives of oneDNN, one function a kind.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "vendor/dnnl.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
namespace {
constexpr int kInference = 96;  // dnnl_forward_inference
constexpr int kConvolutionAuto = 3;
constexpr int kDeconvolutionDirect = 0xa;
constexpr int kLrnAcross = 0xaff;
constexpr unsigned kGlobalStatistics = 1;
constexpr unsigned kUseScale = 8;
constexpr unsigned kUseShift = 16;
constexpr std::array kPoolCodes = {0x1ff, 0x2ff, 0x3ff};  // by PoolKind
constexpr std::array kSoftmaxCodes = {0x30000, 0x30001};  // by Softmax::log
constexpr double kHeavy = 2e7;  // multiplications above which unoptimized code is no reference

struct ReduceCode {
  int algorithm;
  float p;
};

// By Reduce.
constexpr std::array kReduceCodes = {
    ReduceCode{0x2fff4, 0}, ReduceCode{0x2fff6, 0}, ReduceCode{0x2fff2, 0}, ReduceCode{0x2fff3, 0},
    ReduceCode{0x2fff5, 0}, ReduceCode{0x2fffa, 1}, ReduceCode{0x2fff8, 2}, ReduceCode{0x2fffa, 2}};

constexpr size_t kRowRank = 2;

Elementwise as_row(const Elementwise& vector) {
  return {of_rank(vector.src, kRowRank), of_rank(vector.dst, kRowRank)};
}

Step as_row(Step step) {
  for (After& each : step.after)
    if (each.other) each.other = of_rank(*each.other, kRowRank);
  return step;
}

Shape less_one(Shape dilations) {
  for (int64_t& each : dilations)
    --each;
  return dilations;
}

// Weights with an axis of groups before them: [O, I, ..] as [G, O / G, I, ..].
Place grouped(const Place& weights, int64_t groups) {
  if (groups == 1) return weights;
  Place out = weights;
  out.shape[0] /= groups;
  const int64_t group_stride = out.shape[0] * weights.strides[0];
  out.shape.insert(out.shape.begin(), groups);
  out.strides.insert(out.strides.begin(), group_stride);
  return out;
}

// A transposed convolution's weights, which come as [I, O / G, ..], as [O, I, ..], with groups as
// [G, O / G, I / G, ..].
Place turned(const Place& weights, int64_t groups) {
  Place out = weights;
  std::swap(out.shape[0], out.shape[1]);
  std::swap(out.strides[0], out.strides[1]);
  if (groups == 1) return out;
  out.shape[1] /= groups;
  const int64_t group_stride = out.shape[1] * weights.strides[0];
  out.shape.insert(out.shape.begin(), groups);
  out.strides.insert(out.strides.begin(), group_stride);
  return out;
}

bool adds_a_tensor(const After& after) {
  return after.other && after.combine == Combine::add;
}

// An addend a channel at the beginning of what comes after, as a bias.
std::optional<Place> channel_bias(const std::vector<After>& after) {
  if (after.empty() || !adds_a_tensor(after[0])) return std::nullopt;
  const Place& other = *after[0].other;
  if (other.shape.size() < 2 || other.shape[1] != elements_of(other)) return std::nullopt;
  const Shape shape = {other.shape[1]};
  const Shape strides = {other.strides[1]};
  return Place{other.buffer, other.dtype, shape, strides, other.offset};
}

double multiplications(const Place& dst, const Place& weights) {
  const auto results = as_double(elements_of(dst));
  const auto factors = as_double(elements_of(weights));
  const auto channels = as_double(dst.shape[1]);
  return results * (factors / channels);
}
}  // namespace

template <class Windowed>
Status DnnlLibrary::make_windowed(const Windowed& call, const Place& weights, const Step& step,
                                  Program& program) {
  constexpr bool kTransposed = std::is_same_v<Windowed, Deconvolution>;
  Making making{.after = step.after, .heavy = multiplications(call.dst, weights) > kHeavy};
  WARPLOOM_CHECK(take(making, kArgSrc, call.src, true, program));
  WARPLOOM_CHECK(take(making, kArgWeights, weights, true, program));
  const auto bias = channel_bias(step.after);
  if (bias) {
    WARPLOOM_CHECK(take(making, kArgBias, *bias, false, program));
    making.after.erase(making.after.begin());
  }
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, true, program));
  std::vector<MemoryDesc> descs;
  for (const Operand& operand : making.operands)
    if (operand.open)
      WARPLOOM_TRY(descs.emplace_back(), any_layout(operand.place));
    else
      descs.push_back(operand.held.desc);
  const Window& window = call.window;
  const Shape dilations = less_one(window.dilations);
  const auto init = kTransposed ? d_.deconvolution : d_.convolution;
  const int algorithm = kTransposed ? kDeconvolutionDirect : kConvolutionAuto;
  if (init(&making.operation, kInference, algorithm, &descs[0], &descs[1],
           bias ? &descs[2] : nullptr, &descs.back(), window.strides.data(), dilations.data(),
           window.begins.data(), window.ends.data()) != 0)
    return refused("the window");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Convolution& call, const Step& step, Program& program) {
  return make_windowed(call, grouped(call.weights, call.groups), step, program);
}

Status DnnlLibrary::make(const Deconvolution& call, const Step& step, Program& program) {
  return make_windowed(call, turned(call.weights, call.groups), step, program);
}

Status DnnlLibrary::make(const Pooling& call, const Step& step, Program& program) {
  Making making{.after = step.after};
  WARPLOOM_CHECK(take(making, kArgSrc, call.src, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, true, program));
  MemoryDesc dst = making.operands[1].held.desc;
  if (own_now_) WARPLOOM_TRY(dst, any_layout(call.dst));
  const Window& window = call.window;
  const Shape dilations = less_one(window.dilations);
  if (d_.pooling(&making.operation, kInference, kPoolCodes[as_size(call.how)],
                 &making.operands[0].held.desc, &dst, window.strides.data(), window.kernel.data(),
                 dilations.data(), window.begins.data(), window.ends.data()) != 0)
    return refused("the window");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Matmul& given, const Step& step, Program& program) {
  auto after = step.after;
  const Matmul call = flat(given, after).value_or(given);
  const auto results = as_double(elements_of(call.dst));
  const double work = results * as_double(call.a.shape.back());
  Making making{.after = after, .heavy = work > kHeavy};
  WARPLOOM_CHECK(take(making, kArgSrc, call.a, true, program));
  WARPLOOM_CHECK(take(making, kArgWeights, call.b, true, program));
  const bool bias = !after.empty() && adds_a_tensor(after[0]);
  if (bias) {
    WARPLOOM_CHECK(take(making, kArgBias, *after[0].other, false, program));
    making.after.erase(making.after.begin());
  }
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, false, program));
  std::vector<MemoryDesc> descs;
  for (const Operand& operand : making.operands)
    if (operand.open)
      WARPLOOM_TRY(descs.emplace_back(), any_layout(operand.place));
    else
      descs.push_back(operand.held.desc);
  if (d_.matmul(&making.operation, &descs[0], &descs[1], bias ? &descs[2] : nullptr,
                &descs.back()) != 0)
    return refused("the product");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Softmax& call, const Step& step, Program& program) {
  own_now_ = false;
  Making making{.after = step.after};
  WARPLOOM_CHECK(take(making, kArgSrc, call.src, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, false, program));
  if (d_.softmax(&making.operation, kInference, kSoftmaxCodes[call.log],
                 &making.operands[0].held.desc, &making.operands[1].held.desc,
                 as_int(call.axis)) != 0)
    return refused("the axis");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const BatchNorm& call, const Step& step, Program& program) {
  Making making{.after = step.after};
  WARPLOOM_CHECK(take(making, kArgSrc, call.src, false, program));
  WARPLOOM_CHECK(take(making, kArgScale, call.scale, false, program));
  WARPLOOM_CHECK(take(making, kArgShift, call.shift, false, program));
  WARPLOOM_CHECK(take(making, kArgMean, call.mean, false, program));
  WARPLOOM_CHECK(take(making, kArgVariance, call.variance, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, true, program));
  for (const Place* each : {&call.scale, &call.shift, &call.mean, &call.variance})
    if (each->dtype != Dtype::f32) return refused("statistics but in f32");
  if (d_.batch_norm(&making.operation, kInference, &making.operands[0].held.desc,
                    as_float(call.epsilon), kGlobalStatistics | kUseScale | kUseShift) != 0)
    return refused("the normalisation");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const LayerNorm& call, const Step& step, Program& program) {
  own_now_ = false;
  // What comes after is of another shape than the rows.
  if (!step.after.empty()) return refused("a normalisation of rows with post-operations");
  const Shape rows = {elements_of(call.src) / call.size, call.size};
  const auto src = reshaped(call.src, rows);
  const auto dst = reshaped(call.dst, rows);
  if (!src || !dst) return refused("rows that do not lie one after another");
  Making making;
  unsigned flags = 0;
  WARPLOOM_CHECK(take(making, kArgSrc, *src, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, *dst, false, program));
  for (const auto& [place, number, flag] : {std::tuple(call.scale, kArgScale, kUseScale),
                                            std::tuple(call.shift, kArgShift, kUseShift)}) {
    if (!place) continue;
    if (place->dtype != Dtype::f32) return refused("factors but in f32");
    WARPLOOM_CHECK(take(making, number, *place, false, program));
    flags |= flag;
  }
  WARPLOOM_TRY(const MemoryDesc statistics, described(packed_place("", Dtype::f32, {rows[0]})));
  if (d_.layer_norm(&making.operation, kInference, &making.operands[0].held.desc, &statistics,
                    as_float(call.epsilon), flags) != 0)
    return refused("the normalisation");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Reduction& call, const Step& step, Program& program) {
  own_now_ = false;
  Making making{.after = step.after};
  WARPLOOM_CHECK(take(making, kArgSrc, call.src, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, false, program));
  const ReduceCode& code = kReduceCodes[as_size(call.how)];
  if (d_.reduction(&making.operation, code.algorithm, &making.operands[0].held.desc,
                   &making.operands[1].held.desc, code.p, 0) != 0)
    return refused("the reduction");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Lrn& call, const Step& step, Program& program) {
  Making making{.after = step.after};
  WARPLOOM_CHECK(take(making, kArgSrc, call.src, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, true, program));
  if (d_.lrn(&making.operation, kInference, kLrnAcross, &making.operands[0].held.desc, call.size,
             as_float(call.alpha), as_float(call.beta), as_float(call.bias)) != 0)
    return refused("the normalisation");
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Copy& call, const Step& step, Program& program) {
  own_now_ = false;
  if (!step.after.empty()) return refused("a copy with post-operations");
  WARPLOOM_TRY(const Held from, where(call.src, program));
  WARPLOOM_TRY(const MemoryDesc desc, described(call.dst));
  kept_.erase(call.dst.buffer);
  const int64_t offset = bytes_of(call.dst.dtype, call.dst.offset);
  const Held to{desc, call.dst.buffer, offset, reach_of(call.dst)};
  return reorder(from, to, program);
}

// The first operation as a primitive, the others as its post-operations.
Status DnnlLibrary::make(const Elementwise& call, const Step& step, Program& program) {
  if (step.after.empty()) return make(Copy{call.src, call.dst}, {{}, {}}, program);
  // oneDNN 2.6 writes nothing where one axis has a function with post-operations: its plain code
  // counts channels by a second axis. So a vector is a row.
  if (call.dst.shape.size() < kRowRank) return make(as_row(call), as_row(step), program);
  const std::vector<After> others(step.after.begin() + 1, step.after.end());
  Making making{.after = others};
  const After& first = step.after[0];
  Place src = call.src;
  const bool in_rows = is_packed(src) || src.strides == call.dst.strides;
  if (!first.other && (!in_rows || src.dtype != call.dst.dtype)) {
    // A function has one layout and type: what it reads is brought there first.
    WARPLOOM_CHECK(make(Copy{src, call.dst}, {{}, {}}, program));
    src = call.dst;
  }
  WARPLOOM_CHECK(take(making, kArgSrc, src, false, program));
  if (first.other) WARPLOOM_CHECK(take(making, kArgSecond, *first.other, false, program));
  WARPLOOM_CHECK(take(making, kArgDst, call.dst, first.other || own_now_, program));
  if (first.other) {
    MemoryDesc dst = making.operands[2].held.desc;
    if (own_now_) WARPLOOM_TRY(dst, any_layout(call.dst));
    if (d_.binary(&making.operation, binary_code(first.combine), &making.operands[0].held.desc,
                  &making.operands[1].held.desc, &dst) != 0)
      return refused("the combination");
  } else if (d_.eltwise(&making.operation, kInference, row_of(first.function).dnnl,
                        &making.operands[0].held.desc, as_float(first.alpha),
                        as_float(first.beta)) != 0) {
    return refused("the function");
  }
  return finish(std::move(making), program);
}

Status DnnlLibrary::make(const Unmatched&, const Step&, Program&) {
  return refused("these operators");
}
}  // namespace warploom::vendor
