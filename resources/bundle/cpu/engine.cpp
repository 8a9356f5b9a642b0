void* allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
  if (memory == nullptr) stop("no memory");
  return memory;
}
void release(void* memory) { std::free(memory); }
void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

// One call; its time in microseconds.
double call(void** tensors, void* workspace) {
  const auto start = std::chrono::steady_clock::now();
  if (const int status = {{bundle}}_run({{#inputs}}static_cast<const {{type}}*>(tensors[{{index}}]), {{/inputs}}{{#outputs}}static_cast<{{type}}*>(tensors[{{index}}]), {{/outputs}}workspace); status != 0) stop("{{bundle}}_run returned " + std::to_string(status));
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}
