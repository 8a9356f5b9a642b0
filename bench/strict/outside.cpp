// outside: times a compiled CPU kernel as the strict judge does, but within one process and by
// plain means: whole inputs copied from one of three sets, outputs and scratch filled, one call.
//
//   outside IMAGE KERNEL BLOCKS SCRATCH CALLS in:BYTES… out:BYTES…     buffers in the order of args
//
// Prints the microseconds of each call as a JSON list. Built and driven by agreement.py.
#include <dlfcn.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>
#include "cpu/pool.h"

namespace {
constexpr int kSets = 3;

struct Argument {
  bool is_input = false;
  int64_t bytes = 0;
  std::shared_ptr<void> buffer;
  std::vector<std::vector<float>> sets;  // of an input
};

Argument argument_of(const std::string& word, std::mt19937& random) {
  Argument made;
  made.is_input = word.starts_with("in:");
  made.bytes = std::atoll(word.c_str() + word.find(':') + 1);
  made.buffer = wl::allocate_pages(made.bytes);
  std::normal_distribution<float> normal;
  for (int set = 0; made.is_input && set < kSets; ++set) {
    std::vector<float>& values = made.sets.emplace_back(static_cast<size_t>(made.bytes + 3) / 4);
    for (float& value : values) value = normal(random);
  }
  return made;
}

void renew(const std::vector<Argument>& arguments, size_t set) {
  for (const Argument& one : arguments) {
    const auto bytes = static_cast<size_t>(one.bytes);
    if (one.is_input)
      std::memcpy(one.buffer.get(), one.sets[set].data(), bytes);
    else
      std::memset(one.buffer.get(), 0xed, bytes);
  }
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  void* const image = ::dlopen(argv[1], RTLD_NOW);
  using Kernel = void (*)(void* const*, long long, void*);
  const auto kernel = image ? reinterpret_cast<Kernel>(::dlsym(image, argv[2])) : nullptr;
  if (!kernel) return 3;
  const int64_t blocks = std::atoll(argv[3]);
  const int64_t scratch = std::atoll(argv[4]);
  const int calls = std::atoi(argv[5]);
  std::mt19937 random(std::random_device{}());
  std::vector<Argument> arguments;
  for (int i = 6; i < argc; ++i) arguments.push_back(argument_of(argv[i], random));
  std::vector<void*> addresses;
  for (const Argument& one : arguments) addresses.push_back(one.buffer.get());
  const int most = static_cast<int>(wl::allowed_cores().size());
  wl::Pool pool(static_cast<int>(std::min<int64_t>(blocks, most)));
  std::printf("[");
  for (int call = 0; call < calls; ++call) {
    renew(arguments, random() % kSets);
    for (int worker = 0; scratch > 0 && worker < pool.threads(); ++worker)
      std::memset(pool.scratch(worker, scratch), 0x5a, static_cast<size_t>(scratch));
    pool.run(pool.threads(), [](int64_t, int) {});  // all awake
    const auto start = std::chrono::steady_clock::now();
    wl::run_blocks(pool, kernel, addresses.data(), blocks, scratch);
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - start;
    std::printf("%s%.3f", call == 0 ? "" : ", ", spent.count());
  }
  std::printf("]\n");
  return 0;
}
