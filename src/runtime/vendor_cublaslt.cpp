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
using LtHandle = struct LtContext*;
using LtObject = void*;  // descriptors, layouts, preferences

struct CublasLt {
  using Set = int(LtObject, int attribute, const void* value, std::size_t bytes);
  const Library library{"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                        "/usr/local/cuda/lib64/libcublasLt.so.12"};
  int (*create)(LtHandle*) = library["cublasLtCreate"];
  std::size_t (*version)() = library["cublasLtGetVersion"];
  int (*desc_create)(LtObject*, int compute_type, int scale_type) = library["cublasLtMatmulDescCreate"];
  int (*desc_destroy)(LtObject) = library["cublasLtMatmulDescDestroy"];
  Set* desc_set = library["cublasLtMatmulDescSetAttribute"];
  int (*layout_create)(LtObject*, int type, std::uint64_t rows, std::uint64_t cols,
                       std::int64_t leading) = library["cublasLtMatrixLayoutCreate"];
  int (*layout_destroy)(LtObject) = library["cublasLtMatrixLayoutDestroy"];
  Set* layout_set = library["cublasLtMatrixLayoutSetAttribute"];
  int (*preference_create)(LtObject*) = library["cublasLtMatmulPreferenceCreate"];
  int (*preference_destroy)(LtObject) = library["cublasLtMatmulPreferenceDestroy"];
  Set* preference_set = library["cublasLtMatmulPreferenceSetAttribute"];
  int (*heuristic)(LtHandle, LtObject desc, LtObject a, LtObject b, LtObject c, LtObject d, LtObject preference, int wanted,
                   LtHeuristic* results, int* found) = library["cublasLtMatmulAlgoGetHeuristic"];
  int (*matmul)(LtHandle, LtObject desc, const void* alpha, const void* a, LtObject a_layout, const void* b, LtObject b_layout,
                const void* beta, const void* c, LtObject c_layout, void* d, LtObject d_layout, const LtAlgorithm*,
                void* workspace, std::size_t workspace_bytes, void* stream) = library["cublasLtMatmul"];
  LtHandle handle = nullptr;
  bool ready = library.complete() && create(&handle) == 0;
};

const CublasLt& cublaslt() {
  static const CublasLt instance;
  return instance;
}

template <class T>
bool set(CublasLt::Set* function, LtObject object, int attribute, const T& value) {
  return function(object, attribute, &value, sizeof value) == 0;
}

constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8, kDescBiasType = 26;
constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kPreferWorkspace = 1, kPreferAlignmentA = 5;  // B, C and D follow
constexpr int kCompute32F = 68, kCompute64F = 70, kComputeFastTf32 = 77;
constexpr int kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32;  // GELU in its tanh form
constexpr int kAlgorithms = 8;
constexpr std::uint32_t kAlignment = 256;
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

class LtMatmul final : public WithSets<std::vector<Buffer>> {  // A, B, C, bias
 public:
  LtMatmul(Executor& device, const VendorProblem& problem) : device_(device), p_(problem), lt_(cublaslt()) {}
  ~LtMatmul() override {
    (void)device_.synchronize();
    for (LtObject layout : {b_, a_, c_})
      if (layout) lt_.layout_destroy(layout);
    if (desc_) lt_.desc_destroy(desc_);
    if (preference_) lt_.preference_destroy(preference_);
  }

  Status prepare() {
    const int epilogue = epilogue_code(p_);
    const int in = codes_of(p_.in).cuda, out = codes_of(p_.out).cuda;
    if (epilogue < 0 || in < 0 || out < 0) return not_served(name(), "its epilogue or element types");
    const bool wide = p_.in == Dtype::f64;
    const int compute = wide ? kCompute64F : p_.tf32 || p_.in == Dtype::tf32 ? kComputeFastTf32 : kCompute32F;
    bool good = lt_.desc_create(&desc_, compute, wide ? 1 : 0) == 0 &&
                set(lt_.desc_set, desc_, kDescTransA, std::int32_t{p_.transpose_b}) &&
                set(lt_.desc_set, desc_, kDescTransB, std::int32_t{p_.transpose_a}) &&
                set(lt_.desc_set, desc_, kDescEpilogue, epilogue) && lt_.preference_create(&preference_) == 0 &&
                set(lt_.preference_set, preference_, kPreferWorkspace, kWorkspaceBytes);
    if (p_.bias != BiasKind::none) good = good && set(lt_.desc_set, desc_, kDescBiasType, codes_of(p_.bias_dtype).cuda);
    // A row-major [r, c] matrix is a column-major one of c rows and r columns.
    good = good && layout(b_, in, p_.transpose_b ? p_.k : p_.n, p_.transpose_b ? p_.n : p_.k, p_.batched_b) &&
           layout(a_, in, p_.transpose_a ? p_.m : p_.k, p_.transpose_a ? p_.k : p_.m, p_.batched_a) &&
           layout(c_, out, p_.n, p_.m, true);
    if (!good) return not_served(name(), "a descriptor it refused");
    WARPLOOM_TRY(workspace_, device_.allocate(kWorkspaceBytes));
    return ask();
  }

  std::string name() const override {
    const std::size_t version = lt_.version();
    return fmt::format("cuBLASLt {}.{}", version / 10000, version % 10000 / 100);
  }

  Status bind(const Bindings& buffers, int set) override {
    Set bound;
    for (const BufferSpec& spec : buffers_of(p_)) {
      WARPLOOM_TRY(const Buffer buffer, named_buffer(buffers, spec));
      bound.push_back(buffer);
    }
    WARPLOOM_CHECK(keep(set, std::move(bound)));
    return chosen_ ? ok() : choose();
  }

  Status launch(int set) override {
    WARPLOOM_TRY(const Set* const bound, kept(set));
    return run(*bound, algorithms_[best_]);
  }

 private:
  using Set = std::vector<Buffer>;

  bool layout(LtObject& layout, int type, std::int64_t rows, std::int64_t cols, bool batched) {
    if (lt_.layout_create(&layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), rows) != 0)
      return false;
    return p_.batch == 1 || (set(lt_.layout_set, layout, kLayoutBatchCount, static_cast<std::int32_t>(p_.batch)) &&
                             set(lt_.layout_set, layout, kLayoutBatchStride, batched ? rows * cols : std::int64_t{0}));
  }

  // The heuristic's algorithms for operands aligned as buffers are.
  Status ask() {
    for (int operand = 0; operand < 4; ++operand) set(lt_.preference_set, preference_, kPreferAlignmentA + operand, kAlignment);
    std::array<LtHeuristic, kAlgorithms> results;
    int found = 0;
    if (lt_.heuristic(lt_.handle, desc_, b_, a_, c_, c_, preference_, kAlgorithms, results.data(), &found) != 0) found = 0;
    for (const LtHeuristic& result : std::span(results).first(static_cast<std::size_t>(found)))
      if (result.state == 0) algorithms_.push_back(result.algorithm);
    return algorithms_.empty() ? not_served(name(), "no algorithm") : ok();
  }

  // Keeps the fastest algorithm on buffer set 0.
  Status choose() {
    constexpr int kTries = 5;
    double best_us = HUGE_VAL;
    for (std::size_t i = 0; i < algorithms_.size(); ++i) {
      for (int attempt = 0; attempt < kTries; ++attempt) {
        WARPLOOM_CHECK(device_.flush_caches());
        const auto us = device_.time_us([&] { return run(sets_[0], algorithms_[i]); });
        if (!us) break;
        if (attempt > 0 && *us < best_us) best_us = *us, best_ = i;
      }
    }
    if (best_us == HUGE_VAL) return not_served(name(), "no algorithm that runs");
    chosen_ = true;
    return ok();
  }

  Status run(const Set& s, const LtAlgorithm& algorithm) {
    const std::array<double, 2> wide = {1, 0};  // the factors of A B and of C
    const std::array<float, 2> narrow = {1, 0};
    const bool f64 = p_.in == Dtype::f64;
    const void *one = f64 ? static_cast<const void*>(&wide[0]) : &narrow[0],
               *zero = f64 ? static_cast<const void*>(&wide[1]) : &narrow[1];
    if (s.size() > 3) set(lt_.desc_set, desc_, kDescBiasPointer, s[3].address());
    const int code = lt_.matmul(lt_.handle, desc_, one, s[1].address(), b_, s[0].address(), a_, zero, s[2].address(), c_,
                                s[2].address(), c_, &algorithm, workspace_.address(), kWorkspaceBytes, device_.stream());
    if (code == 0) return ok();
    return fail({ErrorCode::kCudaCall, "cublasLtMatmul failed", name(), "status 0", fmt::format("status {}", code),
                 "check nvidia-smi and the kernel log"});
  }

  Executor& device_;
  VendorProblem p_;
  const CublasLt& lt_;
  LtObject desc_ = nullptr, preference_ = nullptr, a_ = nullptr, b_ = nullptr, c_ = nullptr;
  Buffer workspace_;
  std::vector<LtAlgorithm> algorithms_;
  std::size_t best_ = 0;
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
