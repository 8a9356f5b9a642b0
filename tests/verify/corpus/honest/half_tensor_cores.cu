// control: a matmul of 16-bit floats by tensor cores, sums in 32 bits, tiles of 16 by 8
// expect: accepted
// problem: half_matmul
// warploom: kernel matmul grid=6,5 threads=32 args=x,w,y
// mma.sync.m16n8k16: a thread has rows group and group + 8 of the tile, columns 2 * lane and the next.
extern "C" __global__ void matmul(const unsigned short* x, const unsigned short* w, unsigned short* y) {
  const int group = threadIdx.x / 4, lane = threadIdx.x % 4, column = blockIdx.x * 8, top = blockIdx.y * 16;
  const auto a = [&](int row, int k) -> unsigned { return top + row < 67 && k < 61 ? x[(top + row) * 61 + k] : 0; };
  const auto b = [&](int k) -> unsigned { return column + group < 45 && k < 61 ? w[k * 45 + column + group] : 0; };
  float c[4] = {};
  for (int k = 0; k < 64; k += 16) {
    unsigned left[4], right[2];
    for (int i = 0; i < 4; ++i) {
      const int row = group + i % 2 * 8, at = k + 2 * lane + i / 2 * 8;
      left[i] = a(row, at) | a(row, at + 1) << 16;
    }
    for (int i = 0; i < 2; ++i) right[i] = b(k + 2 * lane + 8 * i) | b(k + 2 * lane + 8 * i + 1) << 16;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
  for (int i = 0; i < 4; ++i) {
    const int row = top + group + i / 2 * 8, j = column + 2 * lane + i % 2;
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(c[i]));
    if (row < 67 && j < 45) y[row * 45 + j] = bits;
  }
}
