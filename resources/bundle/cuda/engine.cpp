void must(cudaError_t status, const char* what) {
  if (status != cudaSuccess) stop(std::string(what) + ": " + cudaGetErrorString(status));
}
void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes > 0) must(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}
void release(void* memory) { cudaFree(memory); }
void copy(void* to, const void* from, std::size_t bytes) { must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy"); }

// One call; its time in microseconds.
double call(void** tensors, void* workspace) {
  static cudaEvent_t start = nullptr, end = nullptr;
  if (start == nullptr) must(cudaEventCreate(&start), "cudaEventCreate"), must(cudaEventCreate(&end), "cudaEventCreate");
  must(cudaEventRecord(start, nullptr), "cudaEventRecord");
  must({{bundle}}_launch({{#inputs}}static_cast<const {{type}}*>(tensors[{{index}}]), {{/inputs}}{{#outputs}}static_cast<{{type}}*>(tensors[{{index}}]), {{/outputs}}workspace, nullptr), "{{bundle}}_launch");
  must(cudaEventRecord(end, nullptr), "cudaEventRecord");
  must(cudaEventSynchronize(end), "the kernels");
  float milliseconds = 0;
  must(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
  return 1000.0 * static_cast<double>(milliseconds);
}
