#include "vendor/places.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "runtime/executor.h"
#include "vendor/problem.h"

namespace warploom::vendor {
Place packed_place(std::string buffer, Dtype dtype, Shape shape) {
  Shape strides = graph::strides_of(shape);
  return {std::move(buffer), dtype, std::move(shape), std::move(strides), 0};
}

bool is_packed(const Place& place) {
  const Shape strides = graph::strides_of(place.shape);
  for (size_t d = 0; d < strides.size(); ++d)
    if (place.shape[d] != 1 && place.strides[d] != strides[d]) return false;
  return true;
}

int64_t elements_of(const Place& place) {
  return graph::element_count(place.shape);
}

std::optional<Place> reshaped(const Place& place, const Shape& shape) {
  const Shape no_strides(shape.size());
  Place out{place.buffer, place.dtype, shape, no_strides, place.offset};
  if (graph::element_count(shape) != elements_of(place)) return std::nullopt;
  // Axes without those of size 1, neighbours that lie as one merged, from the last on.
  std::vector<std::pair<int64_t, int64_t>> axes;  // size and stride, the last first
  for (size_t d = place.shape.size(); d-- > 0;) {
    if (place.shape[d] == 1) continue;
    if (!axes.empty() && place.strides[d] == axes.back().first * axes.back().second)
      axes.back().first *= place.shape[d];
    else
      axes.emplace_back(place.shape[d], place.strides[d]);
  }
  size_t at = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    while (at < axes.size() && axes[at].first == 1)
      ++at;
    if (at == axes.size() || axes[at].first % shape[d] != 0) return std::nullopt;
    out.strides[d] = axes[at].second;
    axes[at].second *= shape[d];
    axes[at].first /= shape[d];
  }
  return out;
}

Place of_rank(Place place, size_t rank) {
  const size_t more = rank - std::min(rank, place.shape.size());
  place.shape.insert(place.shape.begin(), more, 1);
  place.strides.insert(place.strides.begin(), more, 0);
  return place;
}

int64_t reach_of(const Place& place) {
  int64_t last = place.offset;
  for (size_t d = 0; d < place.shape.size(); ++d) {
    const int64_t steps = place.shape[d] - 1;
    last += steps * place.strides[d];
  }
  return bytes_of(place.dtype, last + 1);
}

Result<runtime::Buffer> buffer_of(const runtime::Bindings& buffers, const Place& place) {
  const auto found = buffers.find(place.buffer);
  if (found != buffers.end() && found->second.bytes() >= reach_of(place)) return found->second;
  Error error{ErrorCode::kPlanInvalid, "a reference's buffer is missing or too small"};
  error.place = place.buffer;
  error.expected = fmt::format("{} bytes", reach_of(place));
  error.found = "none";
  if (found != buffers.end()) error.found = fmt::format("{} bytes", found->second.bytes());
  return fail(error);
}

void* address_of(const runtime::Buffer& buffer, const Place& place) {
  auto* const begin = static_cast<char*>(buffer.address());
  return begin + bytes_of(place.dtype, place.offset);
}

std::optional<Matmul> flat(const Matmul& call, std::vector<After>& after) {
  const size_t rank = call.a.shape.size();
  if (rank < 3) return std::nullopt;
  const Shape& b_shape = call.b.shape;
  const int64_t one_matrix = b_shape[rank - 1] * b_shape[rank - 2];
  if (elements_of(call.b) != one_matrix) return std::nullopt;
  const int64_t k = call.a.shape.back();
  const int64_t n = call.b.shape.back();
  const int64_t rows = elements_of(call.dst) / n;
  const auto a = reshaped(call.a, {rows, k});
  const auto b = reshaped(call.b, {k, n});
  const auto dst = reshaped(call.dst, {rows, n});
  if (!a || !b || !dst) return std::nullopt;
  std::vector<After> flattened = after;
  for (After& each : flattened) {
    if (!each.other) continue;
    const int64_t count = elements_of(*each.other);
    const bool whole = count == rows * n;
    const bool along_columns = count == n && each.other->shape.back() == n;
    if (!whole && !along_columns) return std::nullopt;
    each.other = reshaped(*each.other, {whole ? rows : 1, n});
    if (!each.other) return std::nullopt;
  }
  after = std::move(flattened);
  return Matmul{*a, *b, *dst, call.tf32};
}
}  // namespace warploom::vendor
