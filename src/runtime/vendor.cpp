#include "runtime/vendor.h"

#include <fmt/format.h>

#include <array>

#include "runtime/bound.h"
#include "runtime/vendor_parts.h"

namespace warploom::runtime {
namespace {

constexpr std::array kRows = {
#define WARPLOOM_ACTIVATION(name, dnnl2, dnnl3, text) ActivationRow{#name, dnnl2, dnnl3, text},
#include "runtime/activations.def"
#undef WARPLOOM_ACTIVATION
};

// A library's product and a plain kernel's epilogue over it.
class TwoSteps final : public Runnable {
 public:
  TwoSteps(std::unique_ptr<Runnable> product, std::unique_ptr<Runnable> epilogue)
      : product_(std::move(product)), epilogue_(std::move(epilogue)) {}
  std::string name() const override { return product_->name() + " + plain"; }
  int sets() const override { return epilogue_->sets(); }
  Status bind(const Bindings& buffers, int set) override {
    WARPLOOM_CHECK(product_->bind(buffers, set));
    return epilogue_->bind(buffers, set);
  }
  Status launch(int set) override {
    WARPLOOM_CHECK(product_->launch(set));
    return epilogue_->launch(set);
  }

 private:
  std::unique_ptr<Runnable> product_, epilogue_;
};

class Plain final : public Runnable {
 public:
  explicit Plain(std::unique_ptr<Runnable> kernels) : kernels_(std::move(kernels)) {}
  std::string name() const override { return "plain"; }
  int sets() const override { return kernels_->sets(); }
  Status bind(const Bindings& buffers, int set) override { return kernels_->bind(buffers, set); }
  Status launch(int set) override { return kernels_->launch(set); }

 private:
  std::unique_ptr<Runnable> kernels_;
};

Result<std::unique_ptr<Runnable>> by_library(Executor& device, const VendorProblem& problem) {
  if (device.engine() == Engine::cpu) return dnnl_reference(device, problem);
  if (problem.kind == VendorKind::matmul) return cublaslt_matmul(device, problem);
  return fail(not_served("cuBLASLt", "softmax"));
}

bool plain_serves(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::tf32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
}

Result<std::unique_ptr<Runnable>> by_library_and_plain(Executor& device, const VendorProblem& problem) {
  VendorProblem bare = problem;
  bare.bias = BiasKind::none;
  bare.activation = Activation::none;
  WARPLOOM_TRY(auto product, by_library(device, bare));
  WARPLOOM_TRY(auto epilogue, load_plain(device, plain_epilogue(device.info(), problem)));
  return std::make_unique<TwoSteps>(std::move(product), std::move(epilogue));
}

}  // namespace

const ActivationRow& row_of(Activation activation) { return kRows[static_cast<std::size_t>(activation)]; }
std::string_view name_of(Activation activation) { return row_of(activation).name; }

VendorSizes sizes_of(const VendorProblem& p) {
  const std::int64_t bias = p.bias == BiasKind::none         ? 0
                            : p.bias == BiasKind::per_column ? p.n
                            : p.bias == BiasKind::per_row    ? p.m
                                                             : p.batch * p.m * p.n;
  return {(p.batched_a ? p.batch : 1) * p.m * p.k, (p.batched_b ? p.batch : 1) * p.k * p.n, p.batch * p.m * p.n, bias};
}

double VendorProblem::flops() const {
  if (kind == VendorKind::softmax) return 5.0 * static_cast<double>(rows) * static_cast<double>(cols);
  return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}
double VendorProblem::bytes() const {
  const double width_in = bytes_of(in), width_out = bytes_of(out);
  if (kind == VendorKind::softmax)
    return static_cast<double>(rows) * static_cast<double>(cols) * (width_in + width_out);
  const VendorSizes s = sizes_of(*this);
  return static_cast<double>(s.a + s.b) * width_in + static_cast<double>(s.c) * width_out +
         static_cast<double>(s.bias) * bytes_of(bias_dtype);
}

Error not_served(const std::string& library, const std::string& what) {
  return {ErrorCode::kNoSchedule,
          "the vendor library does not serve the problem",
          library,
          "a problem it serves",
          what,
          "the plain reference stands in"};
}

Result<Buffer> named_buffer(const Bindings& buffers, const std::string& name, std::int64_t bytes) {
  const auto found = buffers.find(name);
  const std::int64_t have = found == buffers.end() ? -1 : found->second.bytes();
  if (have >= bytes) return found->second;
  return fail({ErrorCode::kPlanInvalid, have < 0 ? "a buffer is not bound" : "a bound buffer is too small", name,
               fmt::format("{} bytes", bytes), have < 0 ? "none" : fmt::format("{} bytes", have), "bind it"});
}

Result<std::unique_ptr<Runnable>> load_plain(Executor& device, const LaunchList& list) {
  CompileOptions options;
  options.allow_spills = true;
  WARPLOOM_TRY(const Binary binary, compile(list, options));
  WARPLOOM_TRY(auto kernels, device.load(list, binary));
  return kernels;
}

Result<std::unique_ptr<Runnable>> vendor_reference(Executor& device, const VendorProblem& problem, bool plain_only) {
  if (!plain_only) {
    if (auto whole = by_library(device, problem)) return whole;
    const bool epilogue = problem.bias != BiasKind::none || problem.activation != Activation::none;
    if (problem.kind == VendorKind::matmul && epilogue)
      if (auto both = by_library_and_plain(device, problem)) return both;
  }
  const bool bias = problem.bias != BiasKind::none;
  if (!plain_serves(problem.in) || !plain_serves(problem.out) || (bias && !plain_serves(problem.bias_dtype)))
    return fail({ErrorCode::kNoSchedule, "no reference serves the element types", std::string(name_of(problem.in)),
                 "f32, tf32, bf16 or f16 (others where the library has them)", std::string(name_of(problem.out)), ""});
  WARPLOOM_TRY(auto kernels, load_plain(device, plain_reference(device.info(), problem)));
  return std::make_unique<Plain>(std::move(kernels));
}

}  // namespace warploom::runtime
