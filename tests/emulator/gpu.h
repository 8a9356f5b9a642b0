// The least of the CUDA driver that running a conformance kernel needs, found at run time; no
// toolkit header.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "tensor_map.h"

namespace warploom::emulator::testing {
class Gpu {
 public:
  static Gpu* find();  // null without a driver or a device

  struct Buffer {
    uint64_t address = 0;
    size_t bytes = 0;
  };

  Buffer upload(const void* data, size_t bytes);
  void download(const Buffer& from, void* to);
  void release(const Buffer& b);

  // The driver's 128-byte map for m over a buffer that starts `offset` bytes into b; m.base is
  // ignored. 16-bit elements.
  struct alignas(128) Map {
    unsigned char bytes[128];
  };

  std::string encode(const wl::TensorMap& m, const Buffer& b, size_t offset, Map* map);

  // "" or what went wrong. cubin: file contents. Clusters come from the kernel's own attribute.
  std::string launch(const std::string& cubin, const std::string& kernel, const int grid[3],
                     int threads, int shared_bytes, void** args);

 private:
  Gpu() = default;
  struct Api;
  std::shared_ptr<Api> api_;
};

std::string cubin_of(const std::string& text, const std::string& arch);  // "" without nvcc
}  // namespace warploom::emulator::testing
