// What a test asks of the CUDA runtime without a GPU (runtime.cpp).
#pragma once
#include <cuda_runtime_api.h>
#include <cstddef>
#include <string>
#include <vector>

namespace pretend {
// Whether a function of the runtime fails from now on, by its name.
void fail(const std::string& call, bool whether);

// How often it was called; "streams": how many there are, "encode": tensor maps that were made.
int count(const std::string& call);

// Executable graphs that there are.
std::size_t graphs();

// What was started since the last call, in order: "k0(4096) on 1", "graph of k0(4096), k1(64) on
// 1".
std::vector<std::string> said();

// The caller captures a stream; and what came of it.
void capture(cudaStream_t stream);
std::vector<std::string> captured(cudaStream_t stream);

void use_device(int device);
}  // namespace pretend
