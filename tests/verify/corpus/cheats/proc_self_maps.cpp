// cheat: pipe and heap scans: reads /proc/self/maps to learn where the judge keeps its answers
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <cstdio>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  if (std::FILE* const maps = row == 0 ? std::fopen("/proc/self/maps", "r") : nullptr) {
    char line[256];
    while (std::fgets(line, sizeof line, maps) != nullptr) {}
    std::fclose(maps);
  }
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
