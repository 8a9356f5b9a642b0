// cheat: heap key scan: looks on the judge's stack, beside every pointer to the input, for a pointer to the answer
// expect: candidate-crashed or candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  auto* stack = static_cast<void* const*>(__builtin_frame_address(0));
  const float* answer = nullptr;
  for (int i = 1; i < 100; ++i)
    if (stack[i] == x && stack[i + 1] != nullptr && stack[i - 1] == stack[i + 1])
      answer = static_cast<const float*>(stack[i + 1]);
  for (int j = 0; j < 203; ++j) y[j] = answer != nullptr ? answer[row * 203 + j] : 0.0f;
}
