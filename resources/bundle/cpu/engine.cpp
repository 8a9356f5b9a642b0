// The memory that kernels were judged on: huge pages where there are some.
std::vector<std::shared_ptr<void>> kept;
void* allocate(std::size_t bytes) {
  kept.push_back(wl::allocate_pages(static_cast<std::int64_t>(bytes)));
  if (kept.back() == nullptr) stop("no memory");
  return kept.back().get();
}
void release(void* memory) {
  const auto same = [memory](const std::shared_ptr<void>& one) { return one.get() == memory; };
  kept.erase(std::find_if(kept.begin(), kept.end(), same));
}
void copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

struct Engine {
  static constexpr double kWarmUpMs = 0;     // its clock holds
  static constexpr double kSampleUs = 1000;  // shorter samples drown in what wakes threads
  void** tensors;
  void* workspace;

{{#prepares}}  void prepare_constants() {
    const int status = {{bundle}}_prepare(
{{#inputs}}{{#constant}}          static_cast<const {{type}}*>(tensors[{{index}}]),
{{/constant}}{{/inputs}}          workspace);
    if (status != 0) stop("{{bundle}}_prepare returned " + std::to_string(status));
  }

{{/prepares}}  // The mean time of so many calls in a row, in microseconds.
  double sample(int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      const int status = {{bundle}}_run(
{{#inputs}}          static_cast<const {{type}}*>(tensors[{{index}}]),
{{/inputs}}{{#outputs}}          static_cast<{{type}}*>(tensors[{{index}}]),
{{/outputs}}          workspace);
      if (status != 0) stop("{{bundle}}_run returned " + std::to_string(status));
    }
    const auto spent = std::chrono::steady_clock::now() - start;
    return std::chrono::duration<double, std::micro>(spent).count() / calls;
  }
};
