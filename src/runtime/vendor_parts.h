// The makers behind vendor_reference: for this room alone. Each fails where its library is missing or does not serve the problem.
#pragma once

#include "runtime/vendor.h"

namespace warploom::runtime {

Result<std::unique_ptr<Runnable>> cublaslt_matmul(Executor& device, const VendorProblem& problem);
Result<std::unique_ptr<Runnable>> dnnl_reference(Executor& device, const VendorProblem& problem);

// C = activation(C + bias) in place: what the library left out.
LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& problem);
Result<std::unique_ptr<Runnable>> load_plain(Executor& device, const LaunchList& list);

// What a maker answers for a problem outside what it serves.
Error not_served(const std::string& library, const std::string& what);

struct ActivationRow {
  std::string_view name;
  int dnnl2 = 0, dnnl3 = 0;
  std::string_view text;
};
const ActivationRow& row_of(Activation activation);

// Elements of the operands as they lie in memory.
struct VendorSizes {
  std::int64_t a, b, c, bias;
};
VendorSizes sizes_of(const VendorProblem& problem);
// The buffer called `name`, of at least `bytes` bytes. Fails with plan-invalid.
Result<Buffer> named_buffer(const Bindings& buffers, const std::string& name, std::int64_t bytes);

}  // namespace warploom::runtime
