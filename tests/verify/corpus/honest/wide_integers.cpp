// control: a gather whose places are found by integers of 128 bits
// expect: accepted
// problem: rows
// warploom: kernel rows grid=12 args=x,i,y
extern "C" void rows(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* places = static_cast<const long long*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 24;
  const __int128 large = static_cast<__int128>(places[row]) * 1000000007 * 1000000009;
  long long place = static_cast<long long>(large / 1000000007 / 1000000009);
  if (place < 0) place += 50;
  for (int j = 0; j < 24; ++j) y[j] = x[place * 24 + j];
}
