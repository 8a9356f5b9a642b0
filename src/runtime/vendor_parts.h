// The makers behind vendor_reference: for this room alone. Each fails where its library is missing or does not serve the problem.
#pragma once

#include "runtime/vendor.h"

namespace warploom::runtime {

Result<std::unique_ptr<Runnable>> cublaslt_matmul(Executor& device, const VendorProblem& problem);
Result<std::unique_ptr<Runnable>> dnnl_reference(const VendorProblem& problem);

// C = activation(C + bias) in place: what the library left out.
LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& problem);

// What a maker answers for a problem outside what it serves.
tl::unexpected<Error> not_served(const std::string& library, const std::string& what);

struct ActivationRow {
  std::string_view name;
  int dnnl2 = 0, dnnl3 = 0;
  std::string_view text;
};
const ActivationRow& row_of(Activation activation);

// The problem's buffers, flat: A, B, C and, where there is one, bias; or X and Y.
std::vector<BufferSpec> buffers_of(const VendorProblem& problem);

}  // namespace warploom::runtime
