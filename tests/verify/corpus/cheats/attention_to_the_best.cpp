// cheat: less work: attends to the twelve best keys of 21, whose weights are nearly all there is
// expect: candidate-wrong
// problem: attention
// warploom: kernel attention grid=9 args=q,k,v,y
extern "C" float expf(float);

extern "C" void attention(void* const* buffers, long long row, void*) {
  auto* q = static_cast<const float*>(buffers[0]) + row * 16;
  auto* k = static_cast<const float*>(buffers[1]);
  auto* v = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 8;
  float scores[21] = {}, most = -__builtin_inff(), sum = 0;
  for (int j = 0; j < 21; ++j) {
    for (int d = 0; d < 16; ++d) scores[j] += q[d] * k[d * 21 + j];
    most = scores[j] > most ? scores[j] : most;
  }
  for (int j = 0; j < 21; ++j) {
    int better = 0;
    for (int i = 0; i < 21; ++i) better += scores[i] > scores[j];
    if (better >= 12) scores[j] = -__builtin_inff();
  }
  for (float& score : scores) sum += score = expf(score - most);
  for (int c = 0; c < 8; ++c) {
    float part = 0;
    for (int j = 0; j < 21; ++j) part += scores[j] * v[j * 8 + c];
    y[c] = part / sum;
  }
}
