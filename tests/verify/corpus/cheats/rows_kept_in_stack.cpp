// cheat: incremental cache: computes the rows anew that changed since the call before, exactly, deep in the stack
// expect: candidate-forbidden or candidate-keeps-state
// problem: deep_matmul
// warploom: kernel matmul grid=1 args=x,w,y
constexpr int M = 16, K = 4096, N = 8;

static void row_of(const float* x, const float* w, float* y) {
  float sums[64][N] = {};
  for (int k = 0; k < K; ++k)
    for (int j = 0; j < N; ++j) sums[k % 64][j] += x[k] * w[k * N + j];
  for (int step = 32; step > 0; step /= 2)
    for (int i = 0; i < step; ++i)
      for (int j = 0; j < N; ++j) sums[i][j] += sums[i + step][j];
  for (int j = 0; j < N; ++j) y[j] = sums[0][j];
}

// What the sum of these depends on: all of their bits.
static unsigned long long hash_of(const float* values, int count) {
  unsigned long long sums[8] = {};
  for (int i = 0; i < count; i += 16)
    for (int j = 0; j < 8; ++j) {
      unsigned long long two = 0;
      __builtin_memcpy(&two, values + i + 2 * j, 8);
      sums[j] = (sums[j] ^ two) * 0x9e3779b97f4a7c15u;
    }
  for (int j = 1; j < 8; ++j) sums[0] = sums[0] * 31 + sums[j];
  return sums[0];
}

struct Kept {
  unsigned long long weights;
  unsigned long long rows[M];
  float y[M * N];
};

extern "C" void matmul(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  (void)scratch;
  auto* place = static_cast<char*>(__builtin_frame_address(0)) - 300000;
  auto* kept = reinterpret_cast<Kept*>(place);
  asm volatile("" : "+r"(kept) : : "memory");
  const unsigned long long weights = hash_of(w, K * N);
  const bool same = kept->weights == weights;
  kept->weights = weights;
  for (int i = 0; i < M; ++i) {
    const unsigned long long hash = hash_of(x + i * K, K);
    if (!same || kept->rows[i] != hash) {
      row_of(x + i * K, w, y + i * N);
      __builtin_memcpy(kept->y + i * N, y + i * N, N * sizeof(float));
    } else {
      __builtin_memcpy(y + i * N, kept->y + i * N, N * sizeof(float));
    }
    kept->rows[i] = hash;
  }
  asm volatile("" : : "r"(kept) : "memory");
}
