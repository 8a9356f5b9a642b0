// control: a layer norm by spans, arrays, algorithms, lambdas and templates of the standard library
// expect: accepted
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

template <class Value, std::size_t Count>
static Value mean_of(std::span<const Value, Count> values, auto change) {
  std::array<Value, 8> sums{};
  for (std::size_t i = 0; i < Count; ++i) sums[i % 8] += change(values[i]);
  return std::accumulate(sums.begin(), sums.end(), Value{}) / static_cast<Value>(Count);
}

extern "C" void layernorm(void* const* buffers, long long row, void*) {
  constexpr std::size_t kCount = 203;
  const std::span<const float, kCount> x(static_cast<const float*>(buffers[0]) + row * kCount, kCount);
  const std::span<const float, kCount> g(static_cast<const float*>(buffers[1]), kCount);
  const std::span<const float, kCount> b(static_cast<const float*>(buffers[2]), kCount);
  const std::span<float, kCount> y(static_cast<float*>(buffers[3]) + row * kCount, kCount);
  const float mean = mean_of(x, std::identity());
  const float variance = mean_of(x, [mean](float v) { return (v - mean) * (v - mean); });
  const float scale = 1 / std::sqrt(variance + 1e-5f);
  std::array<float, kCount> normed;
  std::ranges::transform(x, normed.begin(), [&](float v) { return (v - mean) * scale; });
  for (const auto i : std::array{std::popcount(0u)}) std::swap(normed[i], normed[i]);
  for (std::size_t i = 0; i < kCount; ++i) y[i] = std::fma(normed[i], g[i], b[i]);
}
