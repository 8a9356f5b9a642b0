// control: a layer norm by loops that templates unfold and a table that the compiler computed
// expect: accepted
// problem: layernorm
// warploom: kernel normalize grid=29 args=x,g,b,y
#include <array>
#include <cmath>
#include <utility>

template <int... I> constexpr auto squares(std::integer_sequence<int, I...>) {
  return std::array<int, sizeof...(I)>{I * I...};
}
constexpr auto kSquares = squares(std::make_integer_sequence<int, 15>());  // 14 * 14 = 196

template <int N, class F> inline void unfolded(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (f(I), ...); }(std::make_integer_sequence<int, N>());
}

extern "C" void normalize(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  std::array<float, 7> sums{};
  for (int j = 0; j < 203; j += 7) unfolded<7>([&](int i) { sums[i] += x[j + i]; });
  float mean = 0, variance = 0;
  unfolded<7>([&](int i) { mean += sums[i] / (kSquares[14] + 7); });
  for (int j = 0; j < 203; ++j) variance += (x[j] - mean) * (x[j] - mean) / 203;
  const float scale = 1 / std::sqrt(variance + 1e-5f);
  for (int j = 0; j < 203; ++j) y[j] = (x[j] - mean) * scale * g[j] + b[j];
}
