// control: a softmax whose exponentials come from a constant table and a polynomial: constants are no state
// expect: accepted
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
// 2^(i / 8).
static const float kPowers[8] = {1.0f, 1.09050773f, 1.18920712f, 1.29683955f, 1.41421356f, 1.54221083f, 1.68179283f, 1.83400809f};

// exp(v) for v <= 0: 2^n of v's eighths of ln 2 from the exponent and the table, the rest by its series.
static float power(float v) {
  if (v < -87.3365f) return 0;
  const int eighths = static_cast<int>(v * 11.5415603f - 0.5f);
  const float rest = (v - static_cast<float>(eighths) * 0.0866432190f) - static_cast<float>(eighths) * 1.78575853e-7f;
  const int whole = eighths >> 3;
  const float scale = __builtin_bit_cast(float, (whole + 127) << 23);
  return scale * kPowers[eighths & 7] * (1 + rest * (1 + rest * (0.5f + rest * (0.166666667f + rest * 0.0416666667f))));
}

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sums[8] = {};
  for (int j = 1; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) sums[j % 8] += y[j] = power(x[j] - most);
  const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int j = 0; j < 203; ++j) y[j] /= sum;
}
