// What the executors of both engines and the references share.
#pragma once
#include "runtime/driver.h"
#include "runtime/executor.h"
namespace warploom::runtime {
// The buffer called `spec.name`, or plan-invalid where there is none or it is too small.
Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec);

// A buffer of the host's memory, which `allocate` gives; out-of-memory where it gives none or `room` is less.
Result<Buffer> host_buffer(std::int64_t bytes, std::int64_t room,
                           const std::function<std::shared_ptr<void>(std::int64_t)>& allocate);

// The function of a compiled CPU kernel, which stays loaded: a closed image would pull the code from under others. compile-failed.
Result<CpuKernel> cpu_kernel(const std::string& image, const std::string& name);

// What stands behind `field` on its line of a /proc file, or "".
std::string proc_value(const char* path, const char* field);

// The two executors.
Result<std::unique_ptr<Executor>> open_gpu();
Result<std::unique_ptr<Executor>> open_cpu();
Result<DeviceInfo> gpu_info();
Result<DeviceInfo> cpu_info();
}  // namespace warploom::runtime
