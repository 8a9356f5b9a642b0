// control: a transpose through a scratch of a megabyte
// expect: accepted
// problem: transpose
// warploom: kernel transpose grid=37 shared=1048576 args=x,y
extern "C" void transpose(void* const* buffers, long long i, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* between = static_cast<float*>(scratch) + 200000;
  for (int j = 0; j < 53; ++j) between[j * 911] = x[i * 53 + j];
  for (int j = 0; j < 53; ++j) y[j * 37 + i] = between[j * 911];
}
