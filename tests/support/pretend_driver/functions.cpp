// Every function of runtime/driver.def, as far as memory.cpp and device.cpp do not have it: it does
// nothing, and succeeds while the GPU is there.
#include <cstddef>    // IWYU pragma: keep (runtime/driver.def)
#include <cstdint>    // IWYU pragma: keep (runtime/driver.def)
#include "pretend.h"  // IWYU pragma: keep (WARPLOOM_DRIVER)

#define WARPLOOM_DRIVER(name, version, ...)                                                 \
  extern "C" __attribute__((weak)) warploom::runtime::CUresult name##version(__VA_ARGS__) { \
    return pretend::answer();                                                               \
  }

using namespace warploom::runtime;
#include "runtime/driver.def"
