// control: rows from either end of a table, copied by the processor's own string instruction
// expect: accepted
// problem: rows
// warploom: kernel look grid=12 args=x,i,y
extern "C" void look(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  const long long index = static_cast<const long long*>(buffers[1])[row];
  const float* from = x + (index < 0 ? index + 50 : index) * 24;
  float* to = static_cast<float*>(buffers[2]) + row * 24;
  long long bytes = 24 * 4;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
