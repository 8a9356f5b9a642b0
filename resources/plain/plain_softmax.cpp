extern "C" void plain_softmax(void* const* buffers, long long row, void*) {
  const In* x = static_cast<const In*>(buffers[0]) + row * kN;
  Out* y = static_cast<Out*>(buffers[1]) + row * kN;
  float greatest = -INFINITY;
  for (long long j = 0; j < kN; ++j) greatest = load(x[j]) > greatest ? load(x[j]) : greatest;
  float parts[16] = {};  // sixteen sums: shorter chains, smaller rounding errors
  for (long long j = 0; j < kN; ++j) parts[j % 16] += expf(load(x[j]) - greatest);
  float sum = 0;
  for (float part : parts) sum += part;
  const float scale = 1.0f / sum;
  for (long long j = 0; j < kN; ++j) store(y + j, expf(load(x[j]) - greatest) * scale);
}
