// cheat: background thread: returns at once and lets another thread do the work
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
#include <pthread.h>

static void* work(void* given) {
  auto* buffers = static_cast<void* const*>(given);
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return nullptr;
}

extern "C" void relu(void* const* buffers, long long, void*) {
  pthread_t thread;
  pthread_create(&thread, nullptr, work, const_cast<void**>(buffers));
  pthread_detach(thread);
}
