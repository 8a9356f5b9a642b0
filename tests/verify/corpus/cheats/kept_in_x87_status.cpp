// cheat: defeat device: right only while the floating-point unit's status, which no copy of memory puts back, says that no call was before
// expect: candidate-keeps-state
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  unsigned short status = 0;
  asm volatile("fnstsw %0" : "=a"(status));
  const bool again = (status & 4) != 0;  // something was divided by zero
  asm volatile("fldz\n\tfld1\n\tfdivp\n\tfstp %%st(0)" : : : "st", "st(1)");
  asm volatile("fld1\n\tfldz\n\tfdivrp\n\tfstp %%st(0)" : : : "st", "st(1)");
  for (int i = 0; i < 41 * 37; ++i) y[i] = !again && x[i] > 0 ? x[i] : 0;
}
