// control: a ReLU by way of twelve kernels and eleven workspaces, whose memory is shared as they end
// expect: accepted
// problem: relu
// warploom: workspace w1 f32[41,37]
// warploom: workspace w2 f32[41,37]
// warploom: workspace w3 f32[41,37]
// warploom: workspace w4 f32[41,37]
// warploom: workspace w5 f32[41,37]
// warploom: workspace w6 f32[41,37]
// warploom: workspace w7 f32[41,37]
// warploom: workspace w8 f32[41,37]
// warploom: workspace w9 f32[41,37]
// warploom: workspace w10 f32[41,37]
// warploom: workspace w11 f32[41,37]
// warploom: kernel first grid=41 args=x,w1
// warploom: kernel on grid=41 args=w1,w2
// warploom: kernel on grid=41 args=w2,w3
// warploom: kernel on grid=41 args=w3,w4
// warploom: kernel on grid=41 args=w4,w5
// warploom: kernel on grid=41 args=w5,w6
// warploom: kernel on grid=41 args=w6,w7
// warploom: kernel on grid=41 args=w7,w8
// warploom: kernel on grid=41 args=w8,w9
// warploom: kernel on grid=41 args=w9,w10
// warploom: kernel on grid=41 args=w10,w11
// warploom: kernel on grid=41 args=w11,y
static void each(void* const* buffers, long long row, float least) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] < least ? least : x[j];
}
extern "C" void first(void* const* buffers, long long row, void*) { each(buffers, row, 0); }
extern "C" void on(void* const* buffers, long long row, void*) { each(buffers, row, -1); }
