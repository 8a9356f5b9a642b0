// Searches for a model's fastest CPU kernel and runs it in this program: optimize_and_run
// model.onnx FOLDER [BUDGET]
#include <cstdio>
#include <cstdlib>
#include <warploom/warploom.hpp>

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: optimize_and_run MODEL FOLDER [BUDGET]\n");
    return 2;
  }
  const std::string budget = argc > 3 ? argv[3] : "10s";
  const std::string outcome = warploom::command(
      {"optimize", argv[1], "--target", "cpu", "--budget", budget, "--out", argv[2], "--quiet"});
  std::printf("%s\n", outcome.substr(0, 80).c_str());

  warploom::Bundle bundle(argv[2], warploom::Trust::given);  // it is our own
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
  std::vector<void*> addresses;
  for (const warploom::Tensor& tensor : bundle.tensors()) {
    memory.emplace_back(std::aligned_alloc(64, (tensor.bytes + 63) / 64 * 64), std::free);
    addresses.push_back(memory.back().get());
    if (tensor.is_output) continue;
    auto* values = static_cast<float*>(addresses.back());
    for (std::size_t i = 0; i < tensor.bytes / sizeof(float); ++i)
      values[i] = 1;
  }
  bundle.run(addresses);
  std::printf("first element %g\n", static_cast<double>(*static_cast<float*>(addresses.back())));
  return 0;
} catch (const warploom::Failure& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return failure.status();
}
