// cuBLASLt, opened at run time. Source: cuBLAS documentation, "Using the cuBLASLt API"; the numbers are those of its enums.
//
// cuBLAS counts columns first, so the row-major C = A B is asked for as Cᵀ = Bᵀ Aᵀ: its first operand is our B.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/library.h"
#include "runtime/vendor_parts.h"

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
  int (*create)(LtHandle*) = nullptr;
  std::size_t (*version)() = nullptr;
  int (*desc_create)(LtObject*, int compute_type, int scale_type) = nullptr;
  int (*desc_destroy)(LtObject) = nullptr;
  int (*desc_set)(LtObject, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*layout_create)(LtObject*, int type, std::uint64_t rows, std::uint64_t cols, std::int64_t leading) = nullptr;
  int (*layout_destroy)(LtObject) = nullptr;
  int (*layout_set)(LtObject, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*preference_create)(LtObject*) = nullptr;
  int (*preference_destroy)(LtObject) = nullptr;
  int (*preference_set)(LtObject, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*heuristic)(LtHandle, LtObject desc, LtObject a, LtObject b, LtObject c, LtObject d, LtObject preference,
                   int wanted, LtHeuristic* results, int* found) = nullptr;
  int (*matmul)(LtHandle, LtObject desc, const void* alpha, const void* a, LtObject a_layout, const void* b,
                LtObject b_layout, const void* beta, const void* c, LtObject c_layout, void* d, LtObject d_layout,
                const LtAlgorithm*, void* workspace, std::size_t workspace_bytes, void* stream) = nullptr;
  LtHandle handle = nullptr;
  bool ready = false;
};

const CublasLt& cublaslt() {
  static const CublasLt instance = [] {
    CublasLt c;
    const Library library{"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                          "/usr/local/cuda/lib64/libcublasLt.so.12"};
    c.ready = library && library.find("cublasLtCreate", c.create) && library.find("cublasLtGetVersion", c.version) &&
              library.find("cublasLtMatmulDescCreate", c.desc_create) &&
              library.find("cublasLtMatmulDescDestroy", c.desc_destroy) &&
              library.find("cublasLtMatmulDescSetAttribute", c.desc_set) &&
              library.find("cublasLtMatrixLayoutCreate", c.layout_create) &&
              library.find("cublasLtMatrixLayoutDestroy", c.layout_destroy) &&
              library.find("cublasLtMatrixLayoutSetAttribute", c.layout_set) &&
              library.find("cublasLtMatmulPreferenceCreate", c.preference_create) &&
              library.find("cublasLtMatmulPreferenceDestroy", c.preference_destroy) &&
              library.find("cublasLtMatmulPreferenceSetAttribute", c.preference_set) &&
              library.find("cublasLtMatmulAlgoGetHeuristic", c.heuristic) && library.find("cublasLtMatmul", c.matmul) &&
              c.create(&c.handle) == 0;
    return c;
  }();
  return instance;
}

enum Numbers : int {
  kDescTransA = 3,
  kDescTransB = 4,
  kDescEpilogue = 7,
  kDescBiasPointer = 8,
  kDescBiasType = 26,
  kLayoutBatchCount = 5,
  kLayoutBatchStride = 6,
  kPreferWorkspace = 1,
  kPreferAlignmentA = 5,  // B, C and D follow
  kCompute32F = 68,
  kCompute64F = 70,
  kComputeFastTf32 = 77,
  kEpilogueDefault = 1,
  kEpilogueRelu = 2,
  kEpilogueBias = 4,
  kEpilogueGelu = 32,  // its GELU is the tanh form
};
constexpr int kAlgorithms = 8;
constexpr std::int64_t kWorkspaceBytes = std::int64_t{64} << 20;

// cudaDataType, -1 where there is none.
int cuda_type_code(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64: return 1;
    case Dtype::f32:
    case Dtype::tf32: return 0;
    case Dtype::f16: return 2;
    case Dtype::bf16: return 14;
    case Dtype::e4m3: return 28;
    case Dtype::e5m2: return 29;
    default: return -1;
  }
}

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
  ~LtMatmul() override {
    (void)device_.synchronize();
    for (LtObject layout : {b_, a_, c_})
      if (layout) lt_.layout_destroy(layout);
    if (desc_) lt_.desc_destroy(desc_);
    if (preference_) lt_.preference_destroy(preference_);
  }

  Status prepare() {
    const int epilogue = epilogue_code(p_);
    const int in = cuda_type_code(p_.in), out = cuda_type_code(p_.out);
    if (epilogue < 0 || in < 0 || out < 0) return fail(not_served(name(), "its epilogue or element types"));
    const bool wide = p_.in == Dtype::f64;
    const bool tf32 = p_.tf32 || p_.in == Dtype::tf32;
    const int compute = wide ? kCompute64F : tf32 ? kComputeFastTf32 : kCompute32F;
    const std::int32_t transpose_first = p_.transpose_b, transpose_second = p_.transpose_a;
    const int bias_type = cuda_type_code(p_.bias_dtype);
    const std::size_t workspace = static_cast<std::size_t>(kWorkspaceBytes);
    bool good = lt_.desc_create(&desc_, compute, wide ? 1 : 0) == 0 &&
                lt_.desc_set(desc_, kDescTransA, &transpose_first, sizeof transpose_first) == 0 &&
                lt_.desc_set(desc_, kDescTransB, &transpose_second, sizeof transpose_second) == 0 &&
                lt_.desc_set(desc_, kDescEpilogue, &epilogue, sizeof epilogue) == 0 &&
                lt_.preference_create(&preference_) == 0 &&
                lt_.preference_set(preference_, kPreferWorkspace, &workspace, sizeof workspace) == 0;
    if (good && p_.bias != BiasKind::none) good = lt_.desc_set(desc_, kDescBiasType, &bias_type, sizeof bias_type) == 0;
    // A row-major [r, c] matrix is a column-major one of c rows and r columns.
    good = good && layout(b_, in, p_.transpose_b ? p_.k : p_.n, p_.transpose_b ? p_.n : p_.k, p_.batched_b) &&
           layout(a_, in, p_.transpose_a ? p_.m : p_.k, p_.transpose_a ? p_.k : p_.m, p_.batched_a) &&
           layout(c_, out, p_.n, p_.m, true);
    if (!good) return fail(not_served(name(), "a descriptor it refused"));
    WARPLOOM_TRY(workspace_, device_.allocate(kWorkspaceBytes));
    // The 256-byte alignment of whole buffers decides whether the problem is served at all.
    WARPLOOM_CHECK(ask(256));
    return ok();
  }

  std::string name() const override {
    const std::size_t version = lt_.version();
    return fmt::format("cuBLASLt {}.{}", version / 10000, version % 10000 / 100);
  }
  int sets() const override { return static_cast<int>(sets_.size()); }

  Status bind(const Bindings& buffers, int set) override {
    const VendorSizes sizes = sizes_of(p_);
    Set s;
    WARPLOOM_TRY(s.a, named_buffer(buffers, "A", sizes.a * bytes_of(p_.in)));
    WARPLOOM_TRY(s.b, named_buffer(buffers, "B", sizes.b * bytes_of(p_.in)));
    WARPLOOM_TRY(s.c, named_buffer(buffers, "C", sizes.c * bytes_of(p_.out)));
    if (p_.bias != BiasKind::none) {
      WARPLOOM_TRY(s.bias, named_buffer(buffers, "bias", sizes.bias * bytes_of(p_.bias_dtype)));
    }
    if (set == sets()) sets_.emplace_back();
    sets_.at(static_cast<std::size_t>(set)) = s;
    std::uint32_t alignment = 256;
    for (const Set& bound : sets_)
      for (const Buffer* buffer : {&bound.a, &bound.b, &bound.c}) {
        const auto address = reinterpret_cast<std::uintptr_t>(buffer->address());
        alignment = std::min(alignment, address ? std::uint32_t{1} << std::min(8, std::countr_zero(address)) : 256u);
      }
    if (alignment == alignment_ && chosen_) return ok();
    WARPLOOM_CHECK(ask(alignment));
    return choose();
  }

  Status launch(int set) override { return run(sets_.at(static_cast<std::size_t>(set)), algorithms_[best_]); }

 private:
  struct Set {
    Buffer a, b, c, bias;
  };

  bool layout(LtObject& layout, int type, std::int64_t rows, std::int64_t cols, bool batched) {
    const std::int32_t count = static_cast<std::int32_t>(p_.batch);
    const std::int64_t stride = batched ? rows * cols : 0;
    if (lt_.layout_create(&layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), rows) != 0)
      return false;
    return p_.batch == 1 || (lt_.layout_set(layout, kLayoutBatchCount, &count, sizeof count) == 0 &&
                             lt_.layout_set(layout, kLayoutBatchStride, &stride, sizeof stride) == 0);
  }

  // The heuristic's algorithms for operands aligned so.
  Status ask(std::uint32_t alignment) {
    for (int operand = 0; operand < 4; ++operand)
      lt_.preference_set(preference_, kPreferAlignmentA + operand, &alignment, sizeof alignment);
    std::array<LtHeuristic, kAlgorithms> results;
    int found = 0;
    if (lt_.heuristic(lt_.handle, desc_, b_, a_, c_, c_, preference_, kAlgorithms, results.data(), &found) != 0)
      found = 0;
    algorithms_.clear();
    for (int i = 0; i < found; ++i)
      if (results[static_cast<std::size_t>(i)].state == 0)
        algorithms_.push_back(results[static_cast<std::size_t>(i)].algorithm);
    if (algorithms_.empty()) return fail(not_served(name(), "no algorithm"));
    alignment_ = alignment;
    best_ = 0;
    return ok();
  }

  // Keeps the fastest algorithm on buffer set 0.
  Status choose() {
    constexpr int kTries = 5;
    double best_us = 1e30;
    bool any = false;
    for (std::size_t i = 0; i < algorithms_.size(); ++i) {
      for (int attempt = 0; attempt < kTries; ++attempt) {
        WARPLOOM_CHECK(device_.flush_caches());
        const auto us = device_.time_us([&] { return run(sets_[0], algorithms_[i]); });
        if (!us) break;
        any = true;
        if (attempt > 0 && *us < best_us) {
          best_us = *us;
          best_ = i;
        }
      }
    }
    if (!any) return fail(not_served(name(), "no algorithm that runs"));
    chosen_ = true;
    return ok();
  }

  Status run(const Set& s, const LtAlgorithm& algorithm) {
    const double one64 = 1, zero64 = 0;
    const float one = 1, zero = 0;
    const bool wide = p_.in == Dtype::f64;
    if (s.bias) {
      const void* bias = s.bias.address();
      lt_.desc_set(desc_, kDescBiasPointer, &bias, sizeof bias);
    }
    const int code =
        lt_.matmul(lt_.handle, desc_, wide ? static_cast<const void*>(&one64) : &one, s.b.address(), b_, s.a.address(),
                   a_, wide ? static_cast<const void*>(&zero64) : &zero, s.c.address(), c_, s.c.address(), c_,
                   &algorithm, workspace_.address(), static_cast<std::size_t>(kWorkspaceBytes), device_.stream());
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
  std::uint32_t alignment_ = 0;
  bool chosen_ = false;
  std::vector<Set> sets_;
};

}  // namespace

Result<std::unique_ptr<Runnable>> cublaslt_matmul(Executor& device, const VendorProblem& problem) {
  if (!cublaslt().ready) return fail(not_served("cuBLASLt", "no libcublasLt.so.13 or .12"));
  auto matmul = std::make_unique<LtMatmul>(device, problem);
  WARPLOOM_CHECK(matmul->prepare());
  return matmul;
}

}  // namespace warploom::runtime
