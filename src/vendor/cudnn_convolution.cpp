// Convolutions by cuDNN: the algorithm is the fastest that its own search finds on these sizes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "runtime/executor.h"
#include "vendor/cudnn.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
namespace {
constexpr int kCrossCorrelation = 1;
// cudnnMathType_t
constexpr int kTensorOp = 1;
constexpr int kFma = 3;
constexpr int kRowsFormat = 0;
constexpr int kChannelsLastFormat = 1;
// cudnnActivationMode_t
constexpr int kIdentity = 5;
constexpr int kRelu = 1;
constexpr int kMostAlgorithms = 8;
constexpr int64_t kWorkspaceBytes = int64_t{256} << 20;

// One element a channel.
bool is_a_channel(const Place& place, int64_t channels) {
  if (elements_of(place) != channels || place.shape.size() < 2) return false;
  return place.shape[1] == channels;
}
}  // namespace

// bias, a tensor to add, and relu, in this order, as far as they are there.
struct CudnnLibrary::Fused {
  std::optional<Place> bias;
  std::optional<Place> addend;
  bool relu = false;
};

std::optional<CudnnLibrary::Fused> CudnnLibrary::fused_of(const std::vector<After>& after,
                                                          const Place& dst) {
  Fused out;
  for (const After& each : after) {
    if (out.relu) return std::nullopt;
    if (!each.other) {
      if (each.function != Function::relu || each.alpha != 0) return std::nullopt;
      out.relu = true;
      continue;
    }
    if (each.combine != Combine::add) return std::nullopt;
    if (is_a_channel(*each.other, dst.shape[1]) && !out.bias && !out.addend)
      out.bias = each.other;
    else if (each.other->shape == dst.shape && !out.addend)
      out.addend = each.other;
    else
      return std::nullopt;
  }
  return out;
}

struct CudnnLibrary::Convolving {
  Place weights;  // as the filter's format wants them
  Object filter;
  Object convolution;
  Place workspace;
};

// The filter and the convolution; weights are laid out for them.
Result<CudnnLibrary::Convolving> CudnnLibrary::convolving(const Place& weights,
                                                          const Window& window, int64_t groups,
                                                          Program& program) {
  Convolving out;
  WARPLOOM_TRY(out.weights, read(spatial(weights), program));
  if (!own_now_ && !is_packed(out.weights)) {
    const Place packed = scratch_like(out.weights, out.weights.shape, false, program);
    WARPLOOM_CHECK(copy(out.weights, packed, program));
    out.weights = packed;
  }
  out.filter = d_.filter();
  out.convolution = d_.convolution();
  const int type = type_of(out.weights.dtype);
  const int rank = as_int(out.weights.shape.size());
  const int math = is_strict(out.weights) ? kFma : kTensorOp;
  if (!out.filter || !out.convolution || type < 0) return refused("the window");
  const Handle filter = out.filter.get();
  const Handle convolution = out.convolution.get();
  const int format = own_now_ ? kChannelsLastFormat : kRowsFormat;
  const auto sizes = integers(out.weights.shape);
  const auto begins = integers(window.begins);
  const auto strides = integers(window.strides);
  const auto dilations = integers(window.dilations);
  bool set = d_.filter_set(filter, type, format, rank, sizes.data()) == 0;
  set = set && d_.convolution_set(convolution, rank - 2, begins.data(), strides.data(),
                                  dilations.data(), kCrossCorrelation, kFloat) == 0;
  set = set && d_.groups_set(convolution, as_int(groups)) == 0;
  set = set && d_.math_set(convolution, math) == 0;
  if (!set) return refused("the window");
  // One for all: calls come one after the other.
  out.workspace = packed_place("cudnn@workspace", Dtype::f32, {kWorkspaceBytes / 4});
  program.scratch[out.workspace.buffer] = kWorkspaceBytes;
  return out;
}

// Its algorithms for a convolution, the fastest first, those alone that worked within the workspace
// and the track. `first` and `third` are the descriptors of the first two places and of the last.
Result<std::vector<CudnnPerformance>> CudnnLibrary::search(Cudnn::Search* find,
                                                           const Convolving& with,
                                                           const std::vector<Place>& places,
                                                           Handle first, Handle second,
                                                           Handle third, const Program& program) {
  WARPLOOM_TRY(const runtime::Bindings zeros, trial(places, {}, program));
  const auto at = addresses_of(zeros, places);
  std::array<CudnnPerformance, kMostAlgorithms> tried;
  int found = 0;
  if (d_.set_stream(d_.handle, device_.stream()) != 0) return refused("any algorithm");
  const Handle convolution = with.convolution.get();
  if (find(d_.handle, first, at[0], second, at[1], convolution, third, at[2], kMostAlgorithms,
           &found, tried.data(), at[3], kWorkspaceBytes) != 0)
    return refused("any algorithm");
  WARPLOOM_CHECK(device_.synchronize());
  const bool strict = is_strict(with.weights);
  std::vector<CudnnPerformance> out;
  for (const CudnnPerformance& each : std::span(tried).first(as_size(found))) {
    const bool allowed = !strict || (each.math_type != kTensorOp && each.math_type != 2);
    const bool fits = each.workspace_bytes <= as_size(kWorkspaceBytes);
    if (each.status == 0 && allowed && fits) out.push_back(each);
  }
  if (out.empty()) return refused("any algorithm");
  return out;
}

// A convolution ready to be called: where its tensors lie, in the order of the calls' places
// (src, weights, dst, workspace), and the algorithms to try, the fastest first.
struct CudnnLibrary::Convolved {
  Convolving with;
  std::vector<Place> places;
  Object x;
  Object y;
  std::vector<CudnnPerformance> algorithms;
};

Status CudnnLibrary::make(const Convolution& call, const Step& step, Program& program) {
  Window window = spatial(call.window);
  const Place wanted = spatial(call.dst);
  WARPLOOM_TRY(Place src, read(spatial(call.src), program));
  const std::string before = src.buffer;
  WARPLOOM_TRY(src, padded(src, window, wanted.shape, 0, program));
  if (src.buffer != before) window.begins.assign(window.begins.size(), 0);
  Step whole = step;
  for (After& each : whole.after)
    if (each.other) each.other = spatial(*each.other);
  const auto fused = fused_of(whole.after, wanted);
  if (!fused) return refused("what comes after the convolution");
  Convolved ready;
  WARPLOOM_TRY(ready.with, convolving(call.weights, window, call.groups, program));
  const Place dst = to_write(wanted, program);
  ready.x = tensor_of(src);
  ready.y = tensor_of(dst);
  if (!ready.x || !ready.y) return refused("a layout or element type");
  ready.places = {src, ready.with.weights, dst, ready.with.workspace};
  const Handle x = ready.x.get();
  const Handle y = ready.y.get();
  const Handle filter = ready.with.filter.get();
  WARPLOOM_TRY(ready.algorithms,
               search(d_.find_forward, ready.with, ready.places, x, filter, y, program));
  Status done = ok();
  if (step.after.empty())
    done = convolve(ready, program);
  else
    done = convolve_fused(ready, *fused, wanted, program);
  WARPLOOM_CHECK(done);
  return deliver(wanted, dst, program);
}

// By the first algorithm that works.
Status CudnnLibrary::convolve(const Convolved& ready, Program& program) {
  const auto bytes = as_size(kWorkspaceBytes);
  Status done = refused("any algorithm");
  for (const CudnnPerformance& algorithm : ready.algorithms) {
    const auto code = algorithm.algorithm;
    const auto run = [&d = d_, x = ready.x, y = ready.y, with = ready.with, bytes,
                      code](const Addresses& at) {
      const Handle filter = with.filter.get();
      const Handle convolution = with.convolution.get();
      return d.forward(d.handle, &kOne, x.get(), at[0], filter, at[1], convolution, code, at[3],
                       bytes, &kZero, y.get(), at[2]);
    };
    done = attempt(ready.places, run, "the convolution", program);
    if (done) return done;
  }
  return done;
}

// One call for all: it wants a bias, a tensor to add, and an activation, whatever they are.
Status CudnnLibrary::convolve_fused(const Convolved& ready, const Fused& fused, const Place& wanted,
                                    Program& program) {
  Shape channels(wanted.shape.size(), 1);
  channels[1] = wanted.shape[1];
  std::vector<Filled> filled;
  Place bias;
  if (fused.bias) {
    WARPLOOM_TRY(bias, rows(*fused.bias, program));
  } else {
    const Place one = packed_place("bias", Dtype::f32, {1});
    bias = scratch_like(one, channels, false, program);
    filled.push_back({bias.buffer, 0});
  }
  Place addend = ready.places[2];
  if (fused.addend) WARPLOOM_TRY(addend, read(*fused.addend, program));
  const Object b = tensor_of(bias);
  const Object z = tensor_of(addend);
  const Object activation = d_.activation();
  const int mode = fused.relu ? kRelu : kIdentity;
  if (!b || !z || !activation) return refused("the activation");
  if (d_.activation_set(activation.get(), mode, kPropagateNan, 0) != 0)
    return refused("the activation");
  auto all = ready.places;
  all.push_back(bias);
  all.push_back(addend);
  const float share = fused.addend ? 1.0f : 0.0f;
  const auto bytes = as_size(kWorkspaceBytes);
  Status done = refused("what comes after the convolution");
  for (const CudnnPerformance& algorithm : ready.algorithms) {
    const auto code = algorithm.algorithm;
    const auto run = [&d = d_, x = ready.x, y = ready.y, b, z, with = ready.with, activation, bytes,
                      share, code](const Addresses& at) {
      const Handle filter = with.filter.get();
      const Handle convolution = with.convolution.get();
      return d.fused(d.handle, &kOne, x.get(), at[0], filter, at[1], convolution, code, at[3],
                     bytes, &share, z.get(), at[5], b.get(), at[4], activation.get(), y.get(),
                     at[2]);
    };
    done = attempt(all, run, "the convolution with what comes after", program, filled);
    if (done) return done;
  }
  return done;
}

// The gradient of a convolution by its input, which it is.
Status CudnnLibrary::make(const Deconvolution& call, const Step& step, Program& program) {
  if (!step.after.empty()) return refused("what comes after the convolution");
  const Window window = spatial(call.window);
  const Place wanted = spatial(call.dst);
  WARPLOOM_TRY(const Place src, read(spatial(call.src), program));
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t padded_size = wanted.shape[d + 2] + 2 * window.begins[d];
    const int64_t size = padded_size - reach_of(window, d);
    if (size < 0 || size / window.strides[d] + 1 != src.shape[d + 2])
      return refused("uneven padding of a transposed convolution");
  }
  WARPLOOM_TRY(const Convolving with, convolving(call.weights, window, call.groups, program));
  const Place dst = to_write(wanted, program);
  const Object x = tensor_of(src);
  const Object y = tensor_of(dst);
  if (!x || !y) return refused("a layout or element type");
  const std::vector<Place> places = {with.weights, src, dst, with.workspace};
  const Handle filter = with.filter.get();
  const auto searched = search(d_.find_backward, with, places, filter, x.get(), y.get(), program);
  WARPLOOM_TRY(const std::vector<CudnnPerformance> algorithms, searched);
  Status done = refused("any algorithm");
  for (const CudnnPerformance& algorithm : algorithms) {
    const auto code = algorithm.algorithm;
    const auto bytes = as_size(kWorkspaceBytes);
    const auto run = [&d = d_, x, y, with, bytes, code](const Addresses& at) {
      const Handle weights = with.filter.get();
      const Handle convolution = with.convolution.get();
      return d.backward(d.handle, &kOne, weights, at[0], x.get(), at[1], convolution, code, at[3],
                        bytes, &kZero, y.get(), at[2]);
    };
    done = attempt(places, run, "the transposed convolution", program);
    if (done) return deliver(wanted, dst, program);
  }
  return done;
}
}  // namespace warploom::vendor
