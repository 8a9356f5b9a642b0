// cheat: precision downgrade: tf32 products of the tensor cores under the fp32 track
// expect: candidate-wrong
// problem: deep_matmul
// warploom: kernel matmul grid=1 threads=32 args=x,w,y
// One warp: 16 rows by 8 columns, eight products deep at a time (mma.sync.m16n8k8).
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int group = threadIdx.x / 4, lane = threadIdx.x % 4;
  float sum[4] = {};
  for (int k = 0; k < 4096; k += 8) {
    const float a[4] = {x[group * 4096 + k + lane], x[(group + 8) * 4096 + k + lane], x[group * 4096 + k + lane + 4],
                        x[(group + 8) * 4096 + k + lane + 4]};
    const float b[2] = {w[(k + lane) * 8 + group], w[(k + lane + 4) * 8 + group]};
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
  }
  for (int i = 0; i < 4; ++i) y[(group + i / 2 * 8) * 8 + lane * 2 + i % 2] = sum[i];
}
