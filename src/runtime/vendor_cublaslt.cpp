// cuBLASLt, opened at run time. Source: cuBLAS documentation, "Using the cuBLASLt API"; the numbers are those of its enums.
//
// cuBLAS counts columns first, so the row-major C = A B is asked for as Cᵀ = Bᵀ Aᵀ: its first operand is our B.

#include "runtime/bound.h"
#include "runtime/library.h"
#include "runtime/type_codes.h"
#include "runtime/vendor.h"
namespace warploom::runtime {
namespace {
struct LtAlgorithm {
  std::uint64_t data[8] = {};
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};
using Object = void*;  // a context, a descriptor, a layout, a preference

struct CublasLt {
  using Set = int(Object, int attribute, const void* value, std::size_t bytes);
  const Library library{"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                        "/usr/local/cuda/lib64/libcublasLt.so.12"};
  int (*create)(Object*) = library["cublasLtCreate"];
  std::size_t (*version)() = library["cublasLtGetVersion"];
  int (*desc_create)(Object*, int compute_type, int scale_type) = library["cublasLtMatmulDescCreate"];
  int (*desc_destroy)(Object) = library["cublasLtMatmulDescDestroy"];
  Set* desc_set = library["cublasLtMatmulDescSetAttribute"];
  int (*layout_create)(Object*, int type, std::uint64_t rows, std::uint64_t cols,
                       std::int64_t leading) = library["cublasLtMatrixLayoutCreate"];
  int (*layout_destroy)(Object) = library["cublasLtMatrixLayoutDestroy"];
  Set* layout_set = library["cublasLtMatrixLayoutSetAttribute"];
  int (*preference_create)(Object*) = library["cublasLtMatmulPreferenceCreate"];
  int (*preference_destroy)(Object) = library["cublasLtMatmulPreferenceDestroy"];
  Set* preference_set = library["cublasLtMatmulPreferenceSetAttribute"];
  int (*heuristic)(Object, Object desc, Object a, Object b, Object c, Object d, Object preference, int wanted,
                   LtHeuristic* results, int* found) = library["cublasLtMatmulAlgoGetHeuristic"];
  int (*matmul)(Object, Object desc, const void* alpha, const void* a, Object a_layout, const void* b, Object b_layout,
                const void* beta, const void* c, Object c_layout, void* d, Object d_layout, const LtAlgorithm*, void* workspace,
                std::size_t workspace_bytes, void* stream) = library["cublasLtMatmul"];
  Object handle = nullptr;
  bool ready = library.complete() && create(&handle) == 0;
};

const CublasLt& cublaslt() {
  static const CublasLt instance;
  return instance;
}

template <class T>
bool set(CublasLt::Set* function, const std::shared_ptr<void>& object, int attribute, const T& value) {
  return object && function(object.get(), attribute, &value, sizeof value) == 0;
}

constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8, kDescBiasType = 26;
constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kPreferWorkspace = 1;
constexpr int kCompute32F = 68, kComputeFastTf32 = 77, kScale32F = 0;
constexpr int kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32;  // GELU in its tanh form
constexpr int kAlgorithms = 8;
constexpr std::size_t kWorkspaceBytes = 64 << 20;

// The epilogue with exactly the problem's meaning, or -1.
int epilogue_code(const VendorProblem& p) {
  if (p.bias != BiasKind::none && p.bias != BiasKind::per_column) return -1;
  const int bias = p.bias == BiasKind::none ? 0 : kEpilogueBias;
  switch (p.activation) {
    case Activation::none: return bias ? bias : kEpilogueDefault;
    case Activation::relu: return kEpilogueRelu | bias;
    case Activation::gelu_tanh: return kEpilogueGelu | bias;
    default: return -1;
  }
}

class LtMatmul final : public Runnable {
 public:
  LtMatmul(Executor& device, const VendorProblem& problem) : device_(device), p_(problem), lt_(cublaslt()) {}
  ~LtMatmul() override { (void)device_.synchronize(); }

  Status prepare() {
    const int epilogue = epilogue_code(p_);
    const int in = codes_of(p_.in).cuda, out = codes_of(p_.out).cuda;
    if (epilogue < 0 || in < 0 || out < 0) return not_served(name(), "its epilogue or element types");
    const int compute = p_.tf32 || p_.in == Dtype::tf32 ? kComputeFastTf32 : kCompute32F;
    desc_ = owned(lt_.desc_create, lt_.desc_destroy, compute, kScale32F);
    // A row-major [r, c] matrix is a column-major one of c rows and r columns.
    b_ = layout(in, p_.transpose_b ? p_.k : p_.n, p_.transpose_b ? p_.n : p_.k, p_.batched_b);
    a_ = layout(in, p_.transpose_a ? p_.m : p_.k, p_.transpose_a ? p_.k : p_.m, p_.batched_a);
    c_ = layout(out, p_.n, p_.m, true);
    const std::shared_ptr<void> preference = owned(lt_.preference_create, lt_.preference_destroy);
    const bool good = a_ && b_ && c_ && set(lt_.desc_set, desc_, kDescTransA, std::int32_t{p_.transpose_b}) &&
                      set(lt_.desc_set, desc_, kDescTransB, std::int32_t{p_.transpose_a}) &&
                      set(lt_.desc_set, desc_, kDescEpilogue, epilogue) &&
                      (p_.bias == BiasKind::none || set(lt_.desc_set, desc_, kDescBiasType, codes_of(p_.bias_dtype).cuda)) &&
                      set(lt_.preference_set, preference, kPreferWorkspace, kWorkspaceBytes);
    if (!good) return not_served(name(), "a descriptor it refused");
    WARPLOOM_TRY(workspace_, device_.allocate(kWorkspaceBytes));
    std::array<LtHeuristic, kAlgorithms> results;
    int found = 0;
    if (lt_.heuristic(lt_.handle, desc_.get(), b_.get(), a_.get(), c_.get(), c_.get(), preference.get(), kAlgorithms,
                      results.data(), &found) != 0)
      found = 0;
    for (const LtHeuristic& result : std::span(results).first(static_cast<std::size_t>(found)))
      if (result.state == 0) algorithms_.push_back(result.algorithm);
    return algorithms_.empty() ? not_served(name(), "no algorithm") : ok();
  }

  std::string name() const override {
    const std::size_t version = lt_.version();
    return fmt::format("cuBLASLt {}.{}", version / 10000, version % 10000 / 100);
  }

  Result<Call> bind(const Bindings& buffers) override {
    std::vector<Buffer> operands;  // A, B, C, bias
    for (const BufferSpec& spec : buffers_of(p_)) { WARPLOOM_TRY(operands.emplace_back(), named_buffer(buffers, spec)); }
    if (!chosen_) WARPLOOM_CHECK(choose(operands));
    return [this, operands] { return run(operands, algorithms_[0]); };
  }

 private:
  std::shared_ptr<void> layout(int type, std::int64_t rows, std::int64_t cols, bool batched) {
    auto made = owned(lt_.layout_create, lt_.layout_destroy, type, static_cast<std::uint64_t>(rows),
                      static_cast<std::uint64_t>(cols), rows);
    const bool good = p_.batch == 1 || (set(lt_.layout_set, made, kLayoutBatchCount, static_cast<std::int32_t>(p_.batch)) &&
                                        set(lt_.layout_set, made, kLayoutBatchStride, batched ? rows * cols : std::int64_t{0}));
    return good ? made : nullptr;
  }

  // Puts the fastest algorithm first.
  Status choose(const std::vector<Buffer>& operands) {
    constexpr int kTries = 5;
    double best_us = HUGE_VAL;
    std::size_t best = 0;
    for (std::size_t i = 0; i < algorithms_.size(); ++i) {
      for (int attempt = 0; attempt < kTries; ++attempt) {
        WARPLOOM_CHECK(device_.flush_caches());
        const auto us = device_.time_us([&] { return run(operands, algorithms_[i]); });
        if (!us) break;
        if (attempt > 0 && *us < best_us) best_us = *us, best = i;
      }
    }
    if (best_us == HUGE_VAL) return not_served(name(), "no algorithm that runs");
    std::swap(algorithms_[0], algorithms_[best]);
    chosen_ = true;
    return ok();
  }

  Status run(const std::vector<Buffer>& s, const LtAlgorithm& algorithm) {
    const float one = 1, zero = 0;  // the factors of A B and of C
    if (s.size() > 3) set(lt_.desc_set, desc_, kDescBiasPointer, s[3].address());
    const int code =
        lt_.matmul(lt_.handle, desc_.get(), &one, s[1].address(), b_.get(), s[0].address(), a_.get(), &zero, s[2].address(),
                   c_.get(), s[2].address(), c_.get(), &algorithm, workspace_.address(), kWorkspaceBytes, device_.stream());
    if (code == 0) return ok();
    return fail({ErrorCode::kCudaCall, "cublasLtMatmul failed", name(), "status 0", fmt::format("status {}", code),
                 "check nvidia-smi and the kernel log"});
  }

  Executor& device_;
  VendorProblem p_;
  const CublasLt& lt_;
  std::shared_ptr<void> desc_, a_, b_, c_;
  Buffer workspace_;
  std::vector<LtAlgorithm> algorithms_;
  bool chosen_ = false;
};
}  // namespace
Result<std::unique_ptr<Runnable>> cublaslt_matmul(Executor& device, const VendorProblem& problem) {
  if (!cublaslt().ready) return not_served("cuBLASLt", "no libcublasLt.so.13 or .12");
  auto matmul = std::make_unique<LtMatmul>(device, problem);
  WARPLOOM_CHECK(matmul->prepare());
  return matmul;
}
}  // namespace warploom::runtime
