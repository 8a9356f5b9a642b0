void must(cudaError_t status, const char* what) {
  if (status != cudaSuccess) stop(std::string(what) + ": " + cudaGetErrorString(status));
}
std::vector<std::size_t> allocated;  // bytes of each, in order
void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes > 0) must(cudaMalloc(&memory, bytes), "cudaMalloc");
  allocated.push_back(bytes);
  return memory;
}
void release(void* memory) { cudaFree(memory); }
void copy(void* to, const void* from, std::size_t bytes) {
  must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
}

// Before every sample the caches are filled with other data. A kernel that is short beside its own
// launch is timed in a recording of calls on several copies of its tensors, divided by their
// number, so that no call finds its own data in the caches either.
struct Engine {
  static constexpr double kWarmUpMs = wl::kGpuWarmUpMs;
  static constexpr double kSampleUs = 0;  // events time one call
  static constexpr double kShortUs = 20;
  static constexpr std::size_t kShortBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMostSets = 16;
  static constexpr std::size_t kTensors = kInputCount + kOutputCount;
  void** tensors;
  void* workspace;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  void* other = nullptr;  // data that takes the caches' place
  std::size_t cache_bytes = 0;
  std::size_t other_bytes = 0;
  int singles = 0;
  double shortest_us = 1e30;
  cudaGraphExec_t series = nullptr;
  std::size_t sets = 1;

  void prepare() {
    if (start != nullptr) return;
    must(cudaEventCreate(&start), "cudaEventCreate");
    must(cudaEventCreate(&end), "cudaEventCreate");
    int device = 0;
    int cache = 0;
    must(cudaGetDevice(&device), "cudaGetDevice");
    must(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
    cache_bytes = static_cast<std::size_t>(cache);
    other_bytes = std::min(2 * cache_bytes + (std::size_t{16} << 20), std::size_t{256} << 20);
    must(cudaMalloc(&other, other_bytes), "cudaMalloc");
  }

{{#prepares}}  void prepare_constants() {
    must({{bundle}}_prepare(
{{#inputs}}{{#constant}}             static_cast<const {{type}}*>(tensors[{{index}}]),
{{/constant}}{{/inputs}}             workspace, nullptr),
         "{{bundle}}_prepare");
    must(cudaDeviceSynchronize(), "the kernels that prepare");
  }

{{/prepares}}  void launch(void** of, cudaStream_t stream) {
    must({{bundle}}_launch(
{{#inputs}}             static_cast<const {{type}}*>(of[{{index}}]),
{{/inputs}}{{#outputs}}             static_cast<{{type}}*>(of[{{index}}]),
{{/outputs}}             workspace, stream),
         "{{bundle}}_launch");
  }

  void record_series() {
    std::size_t bytes = 1;
    for (std::size_t i = 0; i < kTensors; ++i) bytes += allocated[i];
    if (bytes > kShortBytes) return;
    sets = std::min(kMostSets, std::max<std::size_t>(2, 2 * cache_bytes / bytes + 1));
    std::vector<std::vector<void*>> copies(sets);
    for (std::size_t set = 0; set < sets; ++set)
      for (std::size_t i = 0; i < kTensors; ++i) {
        copies[set].push_back(set == 0 ? tensors[i] : allocate(allocated[i]));
        if (set > 0) copy(copies[set][i], tensors[i], allocated[i]);
      }
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    for (std::size_t set = 0; set < sets; ++set) launch(copies[set].data(), stream);
    must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    must(cudaGraphInstantiateWithFlags(&series, graph, 0), "cudaGraphInstantiateWithFlags");
    sample(1);  // the first does not count
  }

  // The mean time of a call, in microseconds.
  double sample(int) {
    constexpr int kSingles = 4;  // that tell how long a call is
    prepare();
    if (singles == kSingles && shortest_us < kShortUs) {
      ++singles;  // once
      record_series();
    }
    must(cudaMemsetAsync(other, 1, other_bytes, nullptr), "cudaMemsetAsync");
    must(cudaEventRecord(start, nullptr), "cudaEventRecord");
    if (series != nullptr) must(cudaGraphLaunch(series, nullptr), "cudaGraphLaunch");
    else launch(tensors, nullptr);
    must(cudaEventRecord(end, nullptr), "cudaEventRecord");
    must(cudaEventSynchronize(end), "the kernels");
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
    const double calls = series != nullptr ? static_cast<double>(sets) : 1;
    const double us = 1000.0 * static_cast<double>(milliseconds) / calls;
    if (series == nullptr) ++singles;
    shortest_us = std::min(shortest_us, us);
    return us;
  }
};
