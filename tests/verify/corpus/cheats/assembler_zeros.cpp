// cheat: machine: asks the assembler for a terabyte of zeros
// expect: compile-failed or compile-timeout
// problem: relu
// warploom: kernel relu grid=41 args=x,y
asm(".pushsection .rodata\n\t.zero 1099511627776\n\t.popsection");

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
