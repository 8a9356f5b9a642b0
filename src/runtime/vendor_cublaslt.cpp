// cuBLASLt, opened at run time. Source: cuBLAS documentation, "Using the cuBLASLt API"; the numbers
// are those of its enums.
//
// cuBLAS counts columns first, so the row-major C = A B is asked for as Cᵀ = Bᵀ Aᵀ: its first
// operand is our B.

#include "runtime/library.h"
#include "runtime/timing.h"
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

using Object = std::shared_ptr<void>;  // a descriptor, a layout, a preference
using Raw = void*;

struct CublasLt {
  using Set = int(Raw, int attribute, const void* value, std::size_t bytes);
  const Library library{"libcublasLt.so.13", "libcublasLt.so.12",
                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                        "/usr/local/cuda/lib64/libcublasLt.so.12"};
  int (*create)(Raw*) = library["cublasLtCreate"];
  std::size_t (*version)() = library["cublasLtGetVersion"];
  // Of the types of sums and scales; of a type, rows, columns and the leading dimension.
  Maker<int, int> desc{library["cublasLtMatmulDescCreate"], library["cublasLtMatmulDescDestroy"]};
  Set* desc_set = library["cublasLtMatmulDescSetAttribute"];
  Maker<int, std::uint64_t, std::uint64_t, std::int64_t> layout{
      library["cublasLtMatrixLayoutCreate"], library["cublasLtMatrixLayoutDestroy"]};
  Set* layout_set = library["cublasLtMatrixLayoutSetAttribute"];
  Maker<> preference{library["cublasLtMatmulPreferenceCreate"],
                     library["cublasLtMatmulPreferenceDestroy"]};
  Set* preference_set = library["cublasLtMatmulPreferenceSetAttribute"];
  int (*heuristic)(Raw, Raw desc, Raw a, Raw b, Raw c, Raw d, Raw preference, int wanted,
                   LtHeuristic* results, int* found) = library["cublasLtMatmulAlgoGetHeuristic"];
  int (*matmul)(Raw, Raw desc, const void* alpha, const void* a, Raw a_layout, const void* b,
                Raw b_layout, const void* beta, const void* c, Raw c_layout, void* d, Raw d_layout,
                const LtAlgorithm*, void* workspace, std::size_t workspace_bytes,
                void* stream) = library["cublasLtMatmul"];
  Raw handle = nullptr;
  bool ready = library.complete() && create(&handle) == 0;
};

template <class T>
bool set(CublasLt::Set* function, const Object& object, int attribute, const T& value) {
  return object && function(object.get(), attribute, &value, sizeof value) == 0;
}

constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8,
              kDescBiasType = 26;
constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kPreferWorkspace = 1;
constexpr int kCompute32F = 68, kComputeFastTf32 = 77, kScale32F = 0;
constexpr int kEpilogueDefault = 1, kEpilogueBias = 4;
constexpr int kAlgorithms = 8;
constexpr std::size_t kWorkspaceBytes = 64 << 20;

// The fastest on these operands of the algorithms that run, alone.
Status choose(Executor& device, std::vector<LtAlgorithm>& algorithms,
              const std::function<Status(const LtAlgorithm&)>& run) {
  std::erase_if(algorithms, [&](const LtAlgorithm& algorithm) { return !run(algorithm); });
  if (algorithms.empty()) return not_served("cuBLASLt", "no algorithm that runs");
  std::vector<std::vector<Call>> calls;
  for (const LtAlgorithm& algorithm : algorithms)
    calls.push_back({[&run, algorithm] { return run(algorithm); }});
  WARPLOOM_TRY(const std::vector<Samples> samples,
               measure(device, calls, {.min_samples = 4, .max_samples = 4}));
  algorithms = {
      algorithms[std::ranges::min_element(samples, {}, &Samples::median_us) - samples.begin()]};
  return ok();
}
}  // namespace

Result<Runnable> cublaslt_matmul(Executor& device, const VendorProblem& p) {
  static const CublasLt lt;
  if (!lt.ready) return not_served("cuBLASLt", "no libcublasLt.so.13 or .12");
  const std::string name =
      fmt::format("cuBLASLt {}.{}", lt.version() / 10000, lt.version() % 10000 / 100);
  const bool bias = p.bias != BiasKind::none;
  const int in = codes_of(p.in).cuda, out = codes_of(p.out).cuda,
            epilogue = row_of(p.activation).lt;
  if (epilogue < 0 || in < 0 || out < 0 || (bias && p.bias != BiasKind::per_column))
    return not_served(name, "its epilogue or element types");
  const auto layout = [&](int type, std::int64_t rows, std::int64_t cols, bool batched) -> Object {
    Object made =
        lt.layout(type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), rows);
    const bool good =
        p.batch == 1 ||
        (set(lt.layout_set, made, kLayoutBatchCount, static_cast<std::int32_t>(p.batch)) &&
         set(lt.layout_set, made, kLayoutBatchStride, batched ? rows * cols : std::int64_t{0}));
    return good ? made : nullptr;
  };
  // A row-major [r, c] matrix is a column-major one of c rows and r columns.
  const Object b = layout(in, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.batched_b);
  const Object a = layout(in, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.batched_a);
  const Object c = layout(out, p.n, p.m, true);
  const int compute = p.tf32 || p.in == Dtype::tf32 ? kComputeFastTf32 : kCompute32F;
  const Object desc = lt.desc(compute, kScale32F);
  const Object preference = lt.preference();
  if (!a || !b || !c || !set(lt.desc_set, desc, kDescTransA, std::int32_t{p.transpose_b}) ||
      !set(lt.desc_set, desc, kDescTransB, std::int32_t{p.transpose_a}) ||
      !set(lt.desc_set, desc, kDescEpilogue,
           bias ? (epilogue & ~kEpilogueDefault) | kEpilogueBias : epilogue) ||
      (bias && !set(lt.desc_set, desc, kDescBiasType, codes_of(p.bias_dtype).cuda)) ||
      !set(lt.preference_set, preference, kPreferWorkspace, kWorkspaceBytes))
    return not_served(name, "a descriptor it refused");

  std::array<LtHeuristic, kAlgorithms> results;
  int found = 0;
  const bool good = lt.heuristic(lt.handle, desc.get(), b.get(), a.get(), c.get(), c.get(),
                                 preference.get(), kAlgorithms, results.data(), &found) == 0;
  const auto algorithms = std::make_shared<std::vector<LtAlgorithm>>();
  for (const LtHeuristic& result : std::span(results).first(good ? found : 0))
    if (result.state == 0) algorithms->push_back(result.algorithm);
  if (algorithms->empty()) return not_served(name, "no algorithm");
  WARPLOOM_TRY(const Buffer workspace, device.allocate(kWorkspaceBytes));

  const auto bind = [=, &device](const Bindings& buffers) -> Result<Call> {
    std::vector<Buffer> operands;  // A, B, C, bias
    for (const BufferSpec& spec : buffers_of(p))
      WARPLOOM_TRY(operands.emplace_back(), named_buffer(buffers, spec));
    const auto run = [=, &device](const LtAlgorithm& algorithm) -> Status {
      const float one = 1, zero = 0;  // the factors of A B and of C
      if (bias) set(lt.desc_set, desc, kDescBiasPointer, operands[3].address());
      const int code = lt.matmul(lt.handle, desc.get(), &one, operands[1].address(), b.get(),
                                 operands[0].address(), a.get(), &zero, operands[2].address(),
                                 c.get(), operands[2].address(), c.get(), &algorithm,
                                 workspace.address(), kWorkspaceBytes, device.stream());
      if (code == 0) return ok();
      return fail({ErrorCode::kCudaCall, "cublasLtMatmul failed", name, "status 0",
                   fmt::format("status {}", code), "check nvidia-smi and the kernel log"});
    };
    if (algorithms->size() > 1) WARPLOOM_CHECK(choose(device, *algorithms, run));
    return [run, algorithm = algorithms->front()] { return run(algorithm); };
  };
  return Runnable{name, bind};
}
}  // namespace warploom::runtime
