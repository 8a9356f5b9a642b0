// What the tests of the runtime share: a cache of their own, environment variables that come back,
// small launch lists.
#pragma once
#include <gtest/gtest.h>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/file.h"
#include "base/random.h"
#include "runtime/executor.h"

namespace warploom::runtime {
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }

  ~WithVariable() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// A cache folder that holds nothing but what the test puts there.
struct OwnCache {
  ScratchFolder folder{"test-cache"};
  WithVariable variable{"XDG_CACHE_HOME", folder.path().string()};
};

// y[i] = 2 x[i], 1000 elements in 4 blocks.
inline LaunchList doubling_list(Engine engine, const std::string& arch) {
  Kernel kernel;
  kernel.name = "twice";
  kernel.grid = {4, 1, 1};
  kernel.threads = engine == Engine::cuda ? 256 : 1;
  kernel.source =
      engine == Engine::cuda
          ? "extern \"C\" __global__ void twice(const float* x, float* y) {\n"
            "  const int i = blockIdx.x * 256 + threadIdx.x;\n  if (i < 1000) y[i] = 2 * x[i];\n}\n"
          : "extern \"C\" void twice(void* const* b, long long task, void*) {\n"
            "  for (long long i = task * 250; i < task * 250 + 250; ++i)\n"
            "    static_cast<float*>(b[1])[i] = 2 * static_cast<const float*>(b[0])[i];\n}\n";
  kernel.args = {{.buffer = "x"}, {.buffer = "y"}};
  LaunchList list;
  list.engine = engine;
  list.arch = arch;
  list.inputs = {{"x", Dtype::f32, {1000}}};
  list.outputs = {{"y", Dtype::f32, {1000}}};
  list.kernels = {kernel};
  return list;
}

// Normal numbers of `dtype`, packed.
inline std::vector<char> random_tensor(Dtype dtype, int64_t elements, uint64_t seed) {
  std::vector<char> bytes(static_cast<size_t>(elements * bytes_of(dtype)));
  Random random(seed);
  for (size_t i = 0; i < static_cast<size_t>(elements); ++i)
    store_from_double(dtype, bytes.data(), i, random.normal());
  return bytes;
}

// Binds, calls and waits.
inline Status run(Executor& device, const Runnable& what, const Bindings& buffers) {
  WARPLOOM_TRY(const Call call, what.bind(buffers));
  WARPLOOM_CHECK(call());
  return device.synchronize();
}

inline Result<Buffer> on_device(Executor& device, const std::vector<char>& bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  WARPLOOM_TRY(Buffer buffer, device.allocate(size));
  WARPLOOM_CHECK(device.upload(buffer, bytes.data(), size));
  return buffer;
}
}  // namespace warploom::runtime

#define ASSERT_OK(...)                                                           \
  do {                                                                           \
    auto&& asserted = (__VA_ARGS__);                                             \
    ASSERT_TRUE(asserted.has_value()) << ::warploom::describe(asserted.error()); \
  } while (false)
