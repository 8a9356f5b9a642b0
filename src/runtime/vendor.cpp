#include "runtime/vendor.h"
namespace warploom::runtime {
namespace {
constexpr std::array kRows = {
#define WARPLOOM_ACTIVATION(name, dnnl2, dnnl3, value) ActivationRow{#name, dnnl2, dnnl3, #value},
#include "runtime/activations.def"
};

// One after the other under one name: a library's product and a plain kernel's epilogue over it, or a plain kernel alone.
class Steps final : public Runnable {
 public:
  Steps(std::string name, std::vector<std::unique_ptr<Runnable>> steps) : name_(std::move(name)), steps_(std::move(steps)) {}
  std::string name() const override { return name_; }
  int sets() const override { return steps_.back()->sets(); }
  Status bind(const Bindings& buffers, int set) override {
    for (const auto& step : steps_) WARPLOOM_CHECK(step->bind(buffers, set));
    return ok();
  }
  Status launch(int set) override {
    for (const auto& step : steps_) WARPLOOM_CHECK(step->launch(set));
    return ok();
  }

 private:
  std::string name_;
  std::vector<std::unique_ptr<Runnable>> steps_;
};

Result<std::unique_ptr<Runnable>> by_library(Executor& device, const VendorProblem& problem) {
  if (device.engine() == Engine::cpu) return dnnl_reference(problem);
  if (problem.kind == VendorKind::matmul) return cublaslt_matmul(device, problem);
  return not_served("cuBLASLt", "softmax");
}

bool plain_serves(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::tf32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
}

// `before`, if any, then the plain kernels of `list`.
Result<std::unique_ptr<Runnable>> with_plain(Executor& device, const LaunchList& list,
                                             std::unique_ptr<Runnable> before = nullptr) {
  WARPLOOM_TRY(const Binary binary, compile(list, {.allow_spills = true}));
  WARPLOOM_TRY(auto kernels, device.load(list, binary));
  std::vector<std::unique_ptr<Runnable>> steps;
  const std::string name = before ? before->name() + " + plain" : "plain";
  if (before) steps.push_back(std::move(before));
  steps.push_back(std::move(kernels));
  return std::make_unique<Steps>(name, std::move(steps));
}

Result<std::unique_ptr<Runnable>> by_library_and_plain(Executor& device, const VendorProblem& problem) {
  VendorProblem bare = problem;
  bare.bias = BiasKind::none;
  bare.activation = Activation::none;
  WARPLOOM_TRY(auto product, by_library(device, bare));
  return with_plain(device, plain_epilogue(device.info(), problem), std::move(product));
}
}  // namespace
const ActivationRow& row_of(Activation activation) { return kRows[static_cast<std::size_t>(activation)]; }
std::string_view name_of(Activation activation) { return row_of(activation).name; }

std::vector<BufferSpec> buffers_of(const VendorProblem& p) {
  if (p.kind == VendorKind::softmax) return {{"X", p.in, {p.rows * p.cols}}, {"Y", p.out, {p.rows * p.cols}}};
  const std::int64_t bias[] = {0, p.n, p.m, p.batch * p.m * p.n};  // by BiasKind
  std::vector<BufferSpec> all = {{"A", p.in, {(p.batched_a ? p.batch : 1) * p.m * p.k}},
                                 {"B", p.in, {(p.batched_b ? p.batch : 1) * p.k * p.n}},
                                 {"C", p.out, {p.batch * p.m * p.n}}};
  if (p.bias != BiasKind::none) all.push_back({"bias", p.bias_dtype, {bias[static_cast<int>(p.bias)]}});
  return all;
}

tl::unexpected<Error> not_served(const std::string& library, const std::string& what) {
  return fail({ErrorCode::kNoSchedule, "the vendor library does not serve the problem", library, "a problem it serves", what,
               "the plain reference stands in"});
}

Result<std::unique_ptr<Runnable>> vendor_reference(Executor& device, const VendorProblem& problem, bool plain_only) {
  const bool bias = problem.bias != BiasKind::none;
  if (!plain_only) {
    if (auto whole = by_library(device, problem)) return whole;
    if (problem.kind == VendorKind::matmul && (bias || problem.activation != Activation::none))
      if (auto both = by_library_and_plain(device, problem)) return both;
  }
  if (!plain_serves(problem.in) || !plain_serves(problem.out) || (bias && !plain_serves(problem.bias_dtype)))
    return fail({ErrorCode::kNoSchedule, "no reference serves the element types", std::string(name_of(problem.in)),
                 "f32, tf32, bf16 or f16 (others where the library has them)", std::string(name_of(problem.out)), ""});
  return with_plain(device, plain_reference(device.info(), problem));
}
}  // namespace warploom::runtime
