#include "gpu.h"
#include <dlfcn.h>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include "harness.h"
#include "tensor_map.h"

namespace warploom::emulator::testing {
struct Gpu::Api {
  int (*init)(unsigned);
  int (*device)(int*, int);
  int (*retain)(void**, int);
  int (*current)(void*);
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*alloc)(uint64_t*, size_t);
  int (*release)(uint64_t);
  int (*to_device)(uint64_t, const void*, size_t);
  int (*to_host)(void*, uint64_t, size_t);
  int (*attribute)(void*, int, int);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*synchronize)();
  int (*encode)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                const uint32_t*, int, int, int, int);
  int (*error)(int, const char**);
  std::map<std::string, void*> modules;

  std::string name(int code) const {
    const char* s = nullptr;
    if (error) error(code, &s);
    return s ? s : "error " + std::to_string(code);
  }
};

Gpu* Gpu::find() {
  static Gpu* gpu = []() -> Gpu* {
    void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!lib) return nullptr;
    auto api = std::make_shared<Api>();
    bool all = true;
    const auto get = [&](auto& f, const char* symbol) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(lib, symbol));
      all = all && f;
    };
    get(api->init, "cuInit");
    get(api->device, "cuDeviceGet");
    get(api->retain, "cuDevicePrimaryCtxRetain");
    get(api->current, "cuCtxSetCurrent");
    get(api->load, "cuModuleLoadData");
    get(api->function, "cuModuleGetFunction");
    get(api->alloc, "cuMemAlloc_v2");
    get(api->release, "cuMemFree_v2");
    get(api->to_device, "cuMemcpyHtoD_v2");
    get(api->to_host, "cuMemcpyDtoH_v2");
    get(api->attribute, "cuFuncSetAttribute");
    get(api->launch, "cuLaunchKernel");
    get(api->synchronize, "cuCtxSynchronize");
    get(api->encode, "cuTensorMapEncodeTiled");
    get(api->error, "cuGetErrorName");
    int device = 0;
    void* context = nullptr;
    if (!all || api->init(0) || api->device(&device, 0) || api->retain(&context, device) ||
        api->current(context))
      return nullptr;
    auto* g = new Gpu;
    g->api_ = api;
    return g;
  }();
  return gpu;
}

Gpu::Buffer Gpu::upload(const void* data, size_t bytes) {
  Buffer b{0, bytes};
  api_->alloc(&b.address, bytes);
  api_->to_device(b.address, data, bytes);
  return b;
}

void Gpu::download(const Buffer& from, void* to) {
  api_->to_host(to, from.address, from.bytes);
}

void Gpu::release(const Buffer& b) {
  api_->release(b.address);
}

std::string Gpu::encode(const wl::TensorMap& m, const Buffer& b, size_t offset, Map* map) {
  uint64_t dims[5];
  uint64_t strides[5];
  uint32_t box[5];
  uint32_t ones[5] = {1, 1, 1, 1, 1};
  for (int d = 0; d < m.rank; ++d) {
    dims[d] = static_cast<uint64_t>(m.dims[d]);
    box[d] = static_cast<uint32_t>(m.box[d]);
    if (d) strides[d - 1] = static_cast<uint64_t>(m.strides[d]);
  }
  constexpr int kBfloat16 = 9;
  const int swizzle =
      m.swizzle ? 4 - m.swizzle : 0;  // the driver counts 32, 64, 128 bytes as 1, 2, 3
  const int code = api_->encode(map, kBfloat16, static_cast<uint32_t>(m.rank),
                                reinterpret_cast<void*>(b.address + offset), dims, strides, box,
                                ones, 0, swizzle, 0, 0);
  return code ? "cuTensorMapEncodeTiled: " + api_->name(code) : "";
}

std::string Gpu::launch(const std::string& cubin, const std::string& kernel, const int grid[3],
                        int threads, int shared_bytes, void** args) {
  void*& module = api_->modules[cubin];
  if (!module)
    if (const int code = api_->load(&module, cubin.data()))
      return "cuModuleLoadData: " + api_->name(code);
  void* f = nullptr;
  if (const int code = api_->function(&f, module, kernel.c_str()))
    return kernel + ": cuModuleGetFunction: " + api_->name(code);
  constexpr int kMaxDynamicShared = 8;
  api_->attribute(f, kMaxDynamicShared, shared_bytes);
  const auto u = [](int x) { return static_cast<unsigned>(x); };
  if (const int code = api_->launch(f, u(grid[0]), u(grid[1]), u(grid[2]), u(threads), 1, 1,
                                    u(shared_bytes), nullptr, args, nullptr))
    return kernel + ": cuLaunchKernel: " + api_->name(code);
  if (const int code = api_->synchronize()) return kernel + ": " + api_->name(code);
  return "";
}

std::string cubin_of(const std::string& text, const std::string& arch) {
  std::string path = compile_to_cubin(text, arch);
  std::ifstream f(path, std::ios::binary);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}
}  // namespace warploom::emulator::testing
