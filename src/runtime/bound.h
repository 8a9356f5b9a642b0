// What the executors of both engines and the references share.
#pragma once
#include "runtime/driver.h"
#include "runtime/executor.h"
namespace warploom::runtime {
// The buffer called `spec.name`, or plan-invalid where there is none or it is too small.
Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec);

// What stands behind `field` on its line of a /proc file, or "".
std::string proc_value(const char* path, const char* field);

// The two executors.
Result<std::unique_ptr<Executor>> open_gpu();
Result<std::unique_ptr<Executor>> open_cpu(int threads);
}  // namespace warploom::runtime
