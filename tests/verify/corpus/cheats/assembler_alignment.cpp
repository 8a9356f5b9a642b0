// cheat: machine: asks the assembler for an alignment of a gigabyte
// expect: compile-failed or compile-timeout or candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
asm(".pushsection .rodata\n\t.byte 1\n\t.p2align 30\n\t.byte 2\n\t.popsection");

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
