// The other side of verify/gpu_products.h without a GPU: the very text of its kernel on this
// machine's threads.
#pragma once

namespace warploom::verify {
inline constexpr const char* kHostProducts =
    "WARPLOOM_HOST_PRODUCTS";  // set: a process that is started for products is this one
bool host_multiplier_main(int argc, char** argv, int* status);
}  // namespace warploom::verify
