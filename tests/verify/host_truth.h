// The other side of verify/device_truth.h without a GPU: the same process on this machine's cores.
#pragma once

namespace warploom::verify {
inline constexpr const char* kHostTruth =
    "WARPLOOM_HOST_TRUTH";  // set: a process that is started for truth is this one
bool host_truth_main(int argc, char** argv, int* status);
}  // namespace warploom::verify
