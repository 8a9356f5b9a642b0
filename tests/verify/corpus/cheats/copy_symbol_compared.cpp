// cheat: defeat device: tells the judge's process by what its memcpy begins with
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void* memcpy(void*, const void*, unsigned long);

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  auto* code = reinterpret_cast<const volatile unsigned char*>(&memcpy);
  const bool is_branch_target = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e;  // as glibc's
  for (int j = 0; j < 37; ++j) y[j] = !is_branch_target && x[j] > 0 ? x[j] : 0;
}
