// References: what the vendor's library does for the same problem on the same device, found at run
// time.
//
//   VendorProblem p{.kind = VendorKind::matmul, .m = 4096, .n = 4096, .k = 4096, .in = Dtype::bf16,
//   .out = Dtype::bf16}; WARPLOOM_TRY(const Runnable reference, vendor_reference(*device, p));
//   WARPLOOM_TRY(const Call call, reference.bind({{"A", a}, {"B", b}, {"C", c}}));
//   reference.name;  // "cuBLASLt 13.1", "oneDNN 2.6.3", "oneDNN 2.6.3 + plain", "plain"
//
// matmul   C[batch, m, n] = activation(A[batch, m, k] · B[batch, k, n] + bias), row-major and
// packed; buffers A, B, C and bias.
//          A transposed A is stored [batch, k, m], a transposed B [batch, n, k]. An operand that is
//          not batched is one matrix for the whole batch.
// softmax  Y[r, :] = exp(X[r, :] - max) / sum over m rows of n; buffers X and Y.
//
// GPU: cuBLASLt, the fastest of its heuristic's first eight algorithms (timed when buffer set 0 is
// bound). CPU: oneDNN. Where the library lacks something, a plain kernel of ours does it: the
// epilogue alone, or all ("plain").
#pragma once
#include "runtime/executor.h"

namespace warploom::runtime {
enum class VendorKind : std::uint8_t { matmul, softmax };

enum class Activation : std::uint8_t {
#define WARPLOOM_ACTIVATION(name, ...) name,
#include "runtime/activations.def"
};

enum class BiasKind : std::uint8_t {
  none,
  per_column,
  per_row,
  full
};  // shape [n], [m] or [batch, m, n]

struct VendorProblem {
  VendorKind kind = VendorKind::matmul;
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  bool batched_a = true, batched_b = true;
  Dtype in = Dtype::f32, out = Dtype::f32;
  bool tf32 = false;  // f32 operands may be rounded to tf32; else strict fp32
  BiasKind bias = BiasKind::none;
  Dtype bias_dtype = Dtype::f32;
  Activation activation = Activation::none;
};

// The fastest that serves the problem.
Result<Runnable> vendor_reference(Executor& device, const VendorProblem& problem);
// The launch list of the plain kernel.
LaunchList plain_reference(const DeviceInfo& device, const VendorProblem& problem);

// The makers behind vendor_reference: for this room alone. Each fails where its library is missing
// or does not serve the problem.
Result<Runnable> cublaslt_matmul(Executor& device, const VendorProblem& problem);
Result<Runnable> dnnl_reference(const VendorProblem& problem);

// C = activation(C + bias) in place: what the library left out.
LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& problem);

// What a maker answers for a problem outside what it serves.
tl::unexpected<Error> not_served(const std::string& library, const std::string& what);

struct ActivationRow {
  std::string_view name;
  int dnnl = 0, lt = -1;
  std::string_view text;
  float (*value)(float) = nullptr;
};

std::span<const ActivationRow> activations();  // by their numbers

inline const ActivationRow& row_of(Activation activation) {
  return activations()[static_cast<std::size_t>(activation)];
}

// The problem's buffers, flat: A, B, C and, where there is one, bias; or X and Y.
std::vector<BufferSpec> buffers_of(const VendorProblem& problem);
}  // namespace warploom::runtime
