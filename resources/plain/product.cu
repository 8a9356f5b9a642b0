// c[b] = a[b] * b[b] in FP64, and the same of absolute values: the products of the oracle
// (verify/gpu_products.cpp). A problem is one piece of memory of 8-byte words. It begins with its
// sizes and with where in it its parts begin; an element of an operand is at offset of the batch +
// line + depth.
struct Side {
  long long offsets;
  long long lines;
  long long depths;
  long long data;
};

struct Problem {
  long long m;
  long long n;
  long long k;
  long long batch;
  Side a;
  Side b;
  long long value;
  long long magnitude;
};

// Lines first ... first + 63 and depths k0 ... k0 + 15 of an operand, zeros where it has none.
// Neighbouring threads read neighbours.
__device__ inline void load(double (*tile)[65], const long long* memory, const Side& side,
                            long long batch, long long first, long long count, long long k0,
                            long long k) {
  const double* numbers = reinterpret_cast<const double*>(memory);
  const double* from = numbers + side.data + memory[side.offsets + batch];
  const long long* lines = memory + side.lines;
  const long long* depths = memory + side.depths;
  const bool along = k > 1 && depths[1] - depths[0] == 1;
  for (int e = threadIdx.x; e < 16 * 64; e += blockDim.x) {
    const int line = along ? e / 16 : e % 64;
    const int depth = along ? e % 16 : e / 64;
    const bool inside = first + line < count && k0 + depth < k;
    tile[depth][line] = inside ? from[lines[first + line] + depths[k0 + depth]] : 0.0;
  }
}

// What 16 depths add to the sums of a thread: every 16th row from ty and column from tx.
__device__ inline void add_products(const double (&tile_a)[16][65], const double (&tile_b)[16][65],
                                    int tx, int ty, double (&sum)[4][4],
                                    double (&absolute)[4][4]) {
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const double x = tile_a[k][16 * i + ty];
        const double y = tile_b[k][16 * j + tx];
        sum[i][j] += x * y;
        absolute[i][j] += fabs(x) * fabs(y);
      }
}

extern "C" __global__ void __launch_bounds__(256, 2) oracle_product(long long* memory) {
  __shared__ double tile_a[16][65];
  __shared__ double tile_b[16][65];
  const Problem& p = *reinterpret_cast<const Problem*>(memory);
  const long long rows = (p.m + 63) / 64;
  const long long columns = (p.n + 63) / 64;
  const int tx = threadIdx.x % 16;
  const int ty = threadIdx.x / 16;
  for (long long tile = blockIdx.x; tile < p.batch * rows * columns; tile += gridDim.x) {
    // Tiles of one column are neighbours in time, and share what they read of b.
    const long long batch = tile / (rows * columns);
    const long long m0 = tile % rows * 64;
    const long long n0 = tile / rows % columns * 64;
    double sum[4][4] = {};
    double absolute[4][4] = {};
    for (long long k0 = 0; k0 < p.k; k0 += 16) {
      load(tile_a, memory, p.a, batch, m0, p.m, k0, p.k);
      load(tile_b, memory, p.b, batch, n0, p.n, k0, p.k);
      __syncthreads();
      add_products(tile_a, tile_b, tx, ty, sum, absolute);
      __syncthreads();
    }
    double* value = reinterpret_cast<double*>(memory) + p.value + batch * p.m * p.n;
    double* magnitude = value + (p.magnitude - p.value);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const long long row = m0 + 16 * i + ty;
        const long long column = n0 + 16 * j + tx;
        if (row >= p.m || column >= p.n) continue;
        value[row * p.n + column] = sum[i][j];
        magnitude[row * p.n + column] = absolute[i][j];
      }
  }
}
