#include "vendor/cudnn.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/executor.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
using runtime::Bindings, runtime::Buffer, runtime::Executor;

namespace {
constexpr size_t kLeastRank = 4;  // of a tensor descriptor
constexpr size_t kMostRank = 8;

// Strides of a tensor whose channels, axis 1, lie next to each other.
Shape channels_last(const Shape& shape) {
  Shape strides(shape.size(), 1);
  int64_t step = shape[1];
  for (size_t d = shape.size(); d-- > 2;) {
    strides[d] = step;
    step *= shape[d];
  }
  strides[0] = step;
  return strides;
}
}  // namespace

const Cudnn& Cudnn::get() {
  static const Cudnn cudnn;
  return cudnn;
}

std::string Cudnn::name() const {
  const size_t number = version();
  // 90501 is 9.5.1; before the ninth version 8907 was 8.9.7.
  const size_t unit = number >= 10000 ? 10000 : 1000;
  return fmt::format("cuDNN {}.{}.{}", number / unit, number % unit / 100, number % 100);
}

std::vector<int> integers(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

Place spatial(const Place& place) {
  if (place.shape.size() != 3) return place;
  Place out = place;
  const int64_t stride = place.shape[2] * place.strides[2];
  out.shape.insert(out.shape.begin() + 2, 1);
  out.strides.insert(out.strides.begin() + 2, stride);
  return out;
}

Window spatial(const Window& window) {
  Window out = window;
  if (window.kernel.size() != 1) return out;
  for (Shape* each : {&out.kernel, &out.strides, &out.dilations})
    each->insert(each->begin(), 1);
  for (Shape* each : {&out.begins, &out.ends})
    each->insert(each->begin(), 0);
  return out;
}

std::unique_ptr<Library> cudnn_library(Executor& device, Layouts layouts, Track track,
                                       const VendorProblem& problem) {
  if (!Cudnn::get().ready) return nullptr;
  return std::make_unique<CudnnLibrary>(device, layouts, track, problem);
}

CudnnLibrary::CudnnLibrary(Executor& device, Layouts layouts, Track track,
                           const VendorProblem& problem)
    : device_(device), layouts_(layouts), track_(track) {
  for (const Step& step : problem.steps)
    if (const Place* to = destination(step.operation)) passed_on_.insert(to->buffer);
  for (const graph::TensorId id : problem.graph.outputs)
    passed_on_.erase(problem.graph.tensor(id).name);
}

int CudnnLibrary::type_of(Dtype dtype) const {
  switch (dtype) {
    case Dtype::f32: return kFloat;
    case Dtype::f64: return 1;
    case Dtype::f16: return 2;
    case Dtype::bf16: return 9;
    default: return -1;
  }
}

Object CudnnLibrary::tensor_of(const Place& place) const {
  Place padded = place;
  while (padded.shape.size() < kLeastRank) {
    padded.shape.push_back(1);
    padded.strides.push_back(1);
  }
  // Axes of size 1 may have any stride; cuDNN wants none of 0.
  for (size_t d = 0; d < padded.shape.size(); ++d)
    if (padded.shape[d] == 1) padded.strides[d] = 1;
  const int type = type_of(place.dtype);
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (type < 0 || padded.shape.size() > kMostRank || reach_of(place) > kMost) return nullptr;
  Object made = d_.tensor();
  if (!made) return nullptr;
  const auto rank = as_int(padded.shape.size());
  const auto sizes = integers(padded.shape);
  const auto strides = integers(padded.strides);
  const Handle desc = made.get();
  const int status = d_.tensor_set(desc, type, rank, sizes.data(), strides.data());
  return status == 0 ? made : nullptr;
}

// Buffers of zeros for one call, and the program's filled scratch as it will be.
Result<Bindings> CudnnLibrary::trial(const std::vector<Place>& places,
                                     const std::vector<Filled>& filled, const Program& program) {
  std::map<std::string, int64_t> bytes;
  for (const Place& place : places) {
    int64_t& most = bytes[place.buffer];
    most = std::max(most, reach_of(place));
    const auto scratch = program.scratch.find(place.buffer);
    if (scratch != program.scratch.end()) most = std::max(most, scratch->second);
  }
  Bindings out;
  for (const auto& [name, size] : bytes) {
    WARPLOOM_TRY(out[name], device_.allocate(size));
    const auto known = std::ranges::find(filled, name, &Filled::buffer);
    const uint32_t word = known == filled.end() ? 0u : known->word;
    WARPLOOM_CHECK(device_.fill(out[name], word));
  }
  return out;
}

Addresses CudnnLibrary::addresses_of(const Bindings& buffers, const std::vector<Place>& places) {
  Addresses out;
  for (const Place& place : places)
    out.push_back(address_of(buffers.at(place.buffer), place));
  return out;
}

// A call that works on zeros becomes the program's next piece.
Status CudnnLibrary::attempt(const std::vector<Place>& places, const Work& work,
                             std::string_view what, Program& program,
                             const std::vector<Filled>& filled) {
  WARPLOOM_TRY(const Bindings zeros, trial(places, filled, program));
  const auto run = [work, &device = device_](const Addresses& addresses) {
    const Cudnn& d = Cudnn::get();
    const int stream = d.set_stream(d.handle, device.stream());
    return stream != 0 ? stream : work(addresses);
  };
  const int status = run(addresses_of(zeros, places));
  WARPLOOM_CHECK(device_.synchronize());
  if (status != 0) return refused(fmt::format("{} (status {})", what, status));
  const std::string call = fmt::format("{}, {}", name(), what);
  Executor& device = device_;
  const auto bind = [run, places, filled, call,
                     &device](const Bindings& buffers) -> Result<runtime::Call> {
    std::vector<Buffer> kept;
    for (const Place& place : places)
      WARPLOOM_TRY(kept.emplace_back(), buffer_of(buffers, place));
    for (const Filled& each : filled)
      WARPLOOM_CHECK(device.fill(buffers.at(each.buffer), each.word));
    return [run, kept, addresses = addresses_of(buffers, places), call]() -> Status {
      const int code = run(addresses);
      if (code == 0) return ok();
      const std::string found = fmt::format("status {}", code);
      return fail({ErrorCode::kCudaCall, "a call of cuDNN failed", call, "status 0", found,
                   "check nvidia-smi and the kernel log"});
    };
  };
  program.pieces.push_back(bind);
  return ok();
}

CudnnLibrary::Work CudnnLibrary::transforming(const Object& x, const Object& y) const {
  return overwriting(d_.transform, x, y);
}

Status CudnnLibrary::copy(const Place& from, const Place& to, Program& program) {
  const Object x = tensor_of(from);
  const Object y = tensor_of(to);
  if (!x || !y) return refused("a layout or element type");
  return attempt({from, to}, transforming(x, y), "a copy", program);
}

Status CudnnLibrary::release(const std::string& buffer, Program& program) {
  const auto kept = kept_.find(buffer);
  if (kept == kept_.end()) return ok();
  const auto [in_rows, instead] = kept->second;
  kept_.erase(kept);
  return copy(instead, in_rows, program);
}

Result<Place> CudnnLibrary::rows(const Place& place, Program& program) {
  WARPLOOM_CHECK(release(place.buffer, program));
  return place;
}

// With channels last where that is this program's layout, made so if it is not yet.
Result<Place> CudnnLibrary::read(const Place& place, Program& program) {
  const auto kept = kept_.find(place.buffer);
  if (own_now_ && kept != kept_.end()) {
    const auto& [in_rows, instead] = kept->second;
    if (in_rows.shape == place.shape && place.offset == 0) return instead;
  }
  WARPLOOM_TRY(const Place here, rows(place, program));
  if (!own_now_ || place.shape.size() < kLeastRank) return here;
  const Place turned = scratch_like(here, here.shape, true, program);
  WARPLOOM_CHECK(copy(here, turned, program));
  program.prepare_last(here.buffer);
  return turned;
}

Place CudnnLibrary::scratch_like(const Place& place, Shape shape, bool last,
                                 Program& program) const {
  Shape strides = last ? channels_last(shape) : graph::strides_of(shape);
  const int64_t bytes = bytes_of(place.dtype, graph::element_count(shape));
  const std::string buffer = program.add_scratch(place.buffer, bytes);
  return {buffer, place.dtype, std::move(shape), std::move(strides), 0};
}

Place CudnnLibrary::to_write(const Place& place, Program& program) const {
  if (!own_now_ || place.shape.size() < kLeastRank) return place;
  return scratch_like(place, place.shape, true, program);
}

Status CudnnLibrary::deliver(const Place& place, const Place& written, Program& program) {
  kept_.erase(place.buffer);
  if (written.buffer == place.buffer) return ok();
  const bool whole = place.offset == 0 && is_packed(place);
  if (!whole || !passed_on_.contains(place.buffer)) return copy(written, place, program);
  kept_[place.buffer] = {place, written};
  return ok();
}

// The source as it is where its padding is the same on both sides (cuDNN has one number an axis),
// else in the middle of a larger tensor, which then needs no padding.
Result<Place> CudnnLibrary::padded(const Place& src, const Window& window, const Shape& wanted,
                                   uint32_t border, Program& program) {
  bool even = true;
  Shape larger = src.shape;
  Place middle = src;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t stride = window.strides[d];
    const int64_t begin = window.begins[d];
    const int64_t own = src.shape[d + 2];
    const int64_t count = wanted[d + 2];
    const int64_t reach = reach_of(window, d);
    const int64_t size = own + 2 * begin - reach;
    even = even && size >= 0 && size / stride + 1 == count;
    const int64_t read = (count - 1) * stride + reach;
    larger[d + 2] = std::max(read, own + begin);
  }
  if (even) return src;
  Place whole = scratch_like(src, larger, own_now_, program);
  middle = whole;
  middle.shape = src.shape;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t stride = middle.strides[d + 2];
    middle.offset += window.begins[d] * stride;
  }
  const Object x = tensor_of(src);
  const Object y = tensor_of(middle);
  if (!x || !y) return refused("a layout or element type");
  const std::vector<Filled> filled = {{whole.buffer, border}};
  const Work run = transforming(x, y);
  WARPLOOM_CHECK(attempt({src, middle}, run, "a copy", program, filled));
  return whole;
}

Status CudnnLibrary::add(const Step& step, Program& program) {
  const auto made = [&](bool own) -> Status {
    own_now_ = own;
    return std::visit([&](const auto& call) { return make(call, step, program); }, step.operation);
  };
  if (layouts_ == Layouts::own && made(true)) return ok();
  return made(false);
}
}  // namespace warploom::vendor
