// cheat: pipe and fd forging: says, on the socket that it shares with the judge, that it is done and took half a
//   microsecond, before it begins
// expect: candidate-forbidden
// problem: deep_matmul
// warploom: kernel matmul grid=1 args=x,w,y
static long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

// {"us": 0.5}, with its length in front.
static const char kTime[] = "\x07\0\0\0\0\0\0\0\xa1\x62us\xf9\x38\0";

extern "C" void matmul(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  for (int file = 3; file < 64; ++file) system_call(44, file, reinterpret_cast<long>(kTime), sizeof kTime - 1, 0x4000);  // sendto
  for (volatile int i = 0; i < 30000000; i = i + 1) {}
  for (int i = 0; i < 128; ++i) {
    float sums[64] = {};
    for (int k = 0; k < 4096; ++k) sums[k % 64] += x[i / 8 * 4096 + k] * w[k * 8 + i % 8];
    for (int step = 32; step > 0; step /= 2)
      for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
    y[i] = sums[0];
  }
}
