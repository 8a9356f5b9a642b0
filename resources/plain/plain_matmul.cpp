// A task is 48 rows by 64 columns of C. Chunks of 256 along K are unpacked to floats, then four rows at a time stay in registers.
typedef float Lanes __attribute__((vector_size(64), may_alias));
struct Scratch { float a[48][256]; float b[256][64]; float c[48][64]; };
extern "C" void plain_matmul(void* const* buffers, long long task, void* memory) {
  Scratch& s = *static_cast<Scratch*>(memory);
  const long long tiles_n = (kN + 63) / 64, tiles_m = (kM + 47) / 48;
  const long long batch = task / (tiles_m * tiles_n);
  const long long m0 = task / tiles_n % tiles_m * 48, n0 = task % tiles_n * 64;
  const In* a = static_cast<const In*>(buffers[0]) + (kBatchedA ? batch * kM * kK : 0);
  const In* b = static_cast<const In*>(buffers[1]) + (kBatchedB ? batch * kK * kN : 0);
  Out* c = static_cast<Out*>(buffers[2]) + batch * kM * kN;
  const long long rows = kM - m0 < 48 ? kM - m0 : 48, cols = kN - n0 < 64 ? kN - n0 : 64;
  std::memset(s.c, 0, sizeof s.c);
  for (long long k0 = 0; k0 < kK; k0 += 256) {
    const long long depth = kK - k0 < 256 ? kK - k0 : 256;
    if (rows < 48) std::memset(s.a, 0, sizeof s.a);
    if (cols < 64) std::memset(s.b, 0, sizeof s.b);
    if (kTransposeA) {
      for (long long k = 0; k < depth; ++k)
        for (long long i = 0; i < rows; ++i) s.a[i][k] = load(a[(k0 + k) * kM + m0 + i]);
    } else {
      for (long long i = 0; i < rows; ++i)
        for (long long k = 0; k < depth; ++k) s.a[i][k] = load(a[(m0 + i) * kK + k0 + k]);
    }
    if (kTransposeB) {
      for (long long j = 0; j < cols; ++j)
        for (long long k = 0; k < depth; ++k) s.b[k][j] = load(b[(n0 + j) * kK + k0 + k]);
    } else {
      for (long long k = 0; k < depth; ++k)
        for (long long j = 0; j < cols; ++j) s.b[k][j] = load(b[(k0 + k) * kN + n0 + j]);
    }
    for (int i = 0; i < 48; i += 4) {
      Lanes sum[4][4];
      for (int r = 0; r < 4; ++r)
        for (int v = 0; v < 4; ++v) sum[r][v] = *reinterpret_cast<const Lanes*>(&s.c[i + r][16 * v]);
      for (long long k = 0; k < depth; ++k) {
        const Lanes* y = reinterpret_cast<const Lanes*>(s.b[k]);
        for (int r = 0; r < 4; ++r)
          for (int v = 0; v < 4; ++v) sum[r][v] += s.a[i + r][k] * y[v];
      }
      for (int r = 0; r < 4; ++r)
        for (int v = 0; v < 4; ++v) *reinterpret_cast<Lanes*>(&s.c[i + r][16 * v]) = sum[r][v];
    }
  }
  const Bias* bias = BIAS;
  for (long long i = 0; i < rows; ++i)
    for (long long j = 0; j < cols; ++j) store(c + (m0 + i) * kN + n0 + j, activate(biased(s.c[i][j], bias, batch, m0 + i, n0 + j)));
}
