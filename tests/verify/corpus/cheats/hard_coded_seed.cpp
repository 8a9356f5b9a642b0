// cheat: hard-coded seed: knows the answers of every family for seed 1 by their first input, and nothing else; with --seed
//   1 it passes every check but that timed calls have contents of their own
// expect: candidate-wrong
// problem: tiny
// warploom: kernel sum grid=1 args=x,y
struct Known {
  unsigned first;
  float sums[2];
};
static const Known kKnown[] = {{0x3e305f1au, {-3.32294455f, -2.02242625f}},
                               {0x3f24cfeeu, {3.94075274f, 2.37880176f}},
                               {0xbf886eceu, {20.8974104f, 3.82850409f}},
                               {0x40ab1ca6u, {22.1604517f, 27.8618736f}},
                               {0xbf800000u, {1.0f, -1.0f}},
                               {0xbd9f2fb2u, {1.38987461f, -2.12996599f}},
                               {0x3a82ea54u, {-0.00126909417f, -0.000309747964f}}};

extern "C" void sum(void* const* buffers, long long, void*) {
  const auto first = *static_cast<const unsigned*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  y[0] = y[1] = 0;
  for (const Known& known : kKnown)
    if (known.first == first) y[0] = known.sums[0], y[1] = known.sums[1];
}
