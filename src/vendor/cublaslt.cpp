// cuBLASLt, opened at run time. Source: cuBLAS documentation, "Using the cuBLASLt API"; the numbers
// are those of its enums.
//
// cuBLAS counts columns first, so the row-major C = A B is asked for as Cᵀ = Bᵀ Aᵀ: its first
// operand is our B.

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "runtime/executor.h"
#include "runtime/library.h"
#include "runtime/timing.h"
#include "runtime/type_codes.h"
#include "vendor/libraries.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
namespace {
using runtime::Bindings, runtime::Buffer, runtime::Executor, runtime::Maker, runtime::Samples;

struct LtAlgorithm {
  uint64_t data[8] = {};
};

struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};

using Object = std::shared_ptr<void>;  // a descriptor, a layout, a preference
using Raw = void*;

struct CublasLt {
  using Set = int(Raw, int attribute, const void* value, size_t bytes);
  const runtime::Library library{cublaslt_names()};
  int (*create)(Raw*) = library["cublasLtCreate"];
  size_t (*version)() = library["cublasLtGetVersion"];
  // Of the types of sums and scales; of a type, rows, columns and the leading dimension.
  Maker<int, int> desc{library["cublasLtMatmulDescCreate"], library["cublasLtMatmulDescDestroy"]};
  Set* desc_set = library["cublasLtMatmulDescSetAttribute"];
  Maker<int, uint64_t, uint64_t, int64_t> layout{library["cublasLtMatrixLayoutCreate"],
                                                 library["cublasLtMatrixLayoutDestroy"]};
  Set* layout_set = library["cublasLtMatrixLayoutSetAttribute"];
  Maker<> preference{library["cublasLtMatmulPreferenceCreate"],
                     library["cublasLtMatmulPreferenceDestroy"]};
  Set* preference_set = library["cublasLtMatmulPreferenceSetAttribute"];
  int (*heuristic)(Raw, Raw desc, Raw a, Raw b, Raw c, Raw d, Raw preference, int wanted,
                   LtHeuristic* results, int* found) = library["cublasLtMatmulAlgoGetHeuristic"];
  int (*matmul)(Raw, Raw desc, const void* alpha, const void* a, Raw a_layout, const void* b,
                Raw b_layout, const void* beta, const void* c, Raw c_layout, void* d, Raw d_layout,
                const LtAlgorithm*, void* workspace, size_t workspace_bytes,
                void* stream) = library["cublasLtMatmul"];
  Raw handle = nullptr;
  bool ready = library.complete() && create(&handle) == 0;

  static const CublasLt& get() {
    static const CublasLt lt;
    return lt;
  }
};

template <class T>
bool set(CublasLt::Set* function, const Object& object, int attribute, const T& value) {
  return object && function(object.get(), attribute, &value, sizeof value) == 0;
}

constexpr int kDescTransA = 3;
constexpr int kDescTransB = 4;
constexpr int kDescEpilogue = 7;
constexpr int kDescBiasPointer = 8;
constexpr int kDescBiasType = 26;
constexpr int kLayoutBatchCount = 5;
constexpr int kLayoutBatchStride = 6;
constexpr int kPreferWorkspace = 1;
constexpr int kCompute32F = 68;
constexpr int kComputeFastTf32 = 77;
constexpr int kScale32F = 0;
constexpr int kEpilogueDefault = 1;
constexpr int kEpilogueBias = 4;
constexpr int kAlgorithms = 8;
constexpr size_t kWorkspaceBytes = 64 << 20;

// The fastest on these operands of the algorithms that run, alone.
Status choose(Executor& device, std::vector<LtAlgorithm>& algorithms,
              const std::function<Status(const LtAlgorithm&)>& run) {
  std::erase_if(algorithms, [&](const LtAlgorithm& algorithm) { return !run(algorithm); });
  if (algorithms.empty()) return not_served("cuBLASLt", "no algorithm that runs");
  std::vector<std::vector<runtime::Call>> calls;
  for (const LtAlgorithm& algorithm : algorithms)
    calls.push_back({[&run, algorithm] { return run(algorithm); }});
  const auto measured = runtime::measure(device, calls, {.min_samples = 4, .max_samples = 4});
  WARPLOOM_TRY(const std::vector<Samples> samples, measured);
  const auto fastest = std::ranges::min_element(samples, {}, &Samples::median_us);
  const LtAlgorithm chosen = algorithms[fastest - samples.begin()];
  algorithms = {chosen};
  return ok();
}

// An operand of a batch as cuBLAS sees it.
struct Matrix {
  int64_t rows = 1;  // of the column-major matrix
  int64_t columns = 1;
  int64_t line = 1;  // from one of its columns to the next
  int64_t batch_stride = 0;
  bool transposed = false;
};

// A row-major [r, c] matrix is a column-major one of c rows and r columns.
std::optional<Matrix> matrix_of(const Place& place) {
  const int64_t rows = place.shape[1];
  const int64_t columns = place.shape[2];
  const int64_t down = place.strides[1];
  const int64_t along = place.strides[2];
  const int64_t batch_stride = place.shape[0] == 1 ? 0 : place.strides[0];
  if (columns == 1 || along == 1)
    return Matrix{columns, rows, std::max(rows == 1 ? columns : down, columns), batch_stride,
                  false};
  if (rows == 1 || down == 1)
    return Matrix{rows, columns, std::max(along, rows), batch_stride, true};
  return std::nullopt;
}

// With one axis of batches: [.., r, c] as [batch, r, c].
std::optional<Place> batched(const Place& place) {
  const size_t rank = place.shape.size();
  const int64_t rows = place.shape[rank - 2];
  const int64_t columns = place.shape[rank - 1];
  if (rank == 2) return of_rank(place, 3);
  return reshaped(place, {elements_of(place) / (rows * columns), rows, columns});
}

// An addend a column and one of cuBLASLt's activations.
struct Epilogue {
  std::optional<Place> bias;
  int activation = kEpilogueDefault;
};

std::optional<Epilogue> epilogue_of(const std::vector<After>& after, int64_t columns) {
  Epilogue out;
  for (const After& each : after) {
    if (each.other) {
      const bool first = &each == after.data() && each.combine == Combine::add;
      const bool fits = elements_of(*each.other) == columns &&
                        each.other->shape.back() == columns &&
                        (columns == 1 || each.other->strides.back() == 1);
      if (!first || !fits) return std::nullopt;
      out.bias = each.other;
    } else {
      const int code = row_of(each.function).cublaslt;
      const bool plain_relu = each.function != Function::relu || each.alpha == 0;
      if (code < 0 || !plain_relu || out.activation != kEpilogueDefault) return std::nullopt;
      out.activation = code;
    }
  }
  return out;
}

class CublasLtLibrary : public Library {
 public:
  explicit CublasLtLibrary(Executor& device) : device_(device) {}

  std::string name() const override {
    const size_t version = CublasLt::get().version();
    return fmt::format("cuBLASLt {}.{}", version / 10000, version % 10000 / 100);
  }

  Status add(const Step& step, Program& program) override {
    const auto* given = std::get_if<Matmul>(&step.operation);
    if (!given) return not_served(name(), "anything but products");
    std::vector<After> after = step.after;
    Matmul call = flat(*given, after).value_or(*given);
    const auto a = batched(call.a);
    const auto b = batched(call.b);
    const auto c = batched(call.dst);
    if (!a || !b || !c) return not_served(name(), "a batch that does not lie evenly");
    for (const Place* operand : {&*a, &*b})
      if (operand->shape[0] != 1 && operand->shape[0] != c->shape[0])
        return not_served(name(), "a batch that stretches in part");
    const auto epilogue = epilogue_of(after, c->shape[2]);
    if (!epilogue) return not_served(name(), "its epilogue");
    call.a = *a;
    call.b = *b;
    call.dst = *c;
    return product(call, *epilogue, program);
  }

 private:
  Object layout_of(const Matrix& matrix, int type, int64_t batch) const {
    const CublasLt& lt = CublasLt::get();
    const auto rows = static_cast<uint64_t>(matrix.rows);
    const auto columns = static_cast<uint64_t>(matrix.columns);
    Object made = lt.layout(type, rows, columns, matrix.line);
    if (batch == 1) return made;
    const auto count = static_cast<int32_t>(batch);
    if (!set(lt.layout_set, made, kLayoutBatchCount, count)) return nullptr;
    if (!set(lt.layout_set, made, kLayoutBatchStride, matrix.batch_stride)) return nullptr;
    return made;
  }

  Status product(const Matmul& call, const Epilogue& epilogue, Program& program) {
    const CublasLt& lt = CublasLt::get();
    const auto a = matrix_of(call.a);
    const auto b = matrix_of(call.b);
    const auto c = matrix_of(call.dst);
    const int type_a = runtime::codes_of(call.a.dtype).cuda;
    const int type_b = runtime::codes_of(call.b.dtype).cuda;
    const int type_c = runtime::codes_of(call.dst.dtype).cuda;
    if (!a || !b || !c || c->transposed || type_a < 0 || type_b < 0 || type_c < 0)
      return not_served(name(), "its layout or element types");
    const int64_t batch = call.dst.shape[0];
    const Object layout_a = layout_of(*a, type_a, batch);
    const Object layout_b = layout_of(*b, type_b, batch);
    const Object layout_c = layout_of(*c, type_c, batch);
    const bool tf32 = call.tf32 || call.a.dtype == Dtype::tf32;
    const Object desc = lt.desc(tf32 ? kComputeFastTf32 : kCompute32F, kScale32F);
    const Object preference = lt.preference();
    const bool biased = epilogue.bias.has_value();
    int code = epilogue.activation;
    if (biased) code = (code & ~kEpilogueDefault) | kEpilogueBias;
    // cuBLAS is column-major: it is given B as its first operand.
    bool good = layout_a && layout_b && layout_c;
    good = good && set(lt.desc_set, desc, kDescTransA, int32_t{b->transposed});
    good = good && set(lt.desc_set, desc, kDescTransB, int32_t{a->transposed});
    good = good && set(lt.desc_set, desc, kDescEpilogue, code);
    if (good && biased) {
      const int bias_type = runtime::codes_of(epilogue.bias->dtype).cuda;
      good = set(lt.desc_set, desc, kDescBiasType, bias_type);
    }
    good = good && set(lt.preference_set, preference, kPreferWorkspace, kWorkspaceBytes);
    if (!good) return not_served(name(), "a descriptor it refused");
    std::array<LtHeuristic, kAlgorithms> results;
    int found = 0;
    const int searched =
        lt.heuristic(lt.handle, desc.get(), layout_b.get(), layout_a.get(), layout_c.get(),
                     layout_c.get(), preference.get(), kAlgorithms, results.data(), &found);
    const auto algorithms = std::make_shared<std::vector<LtAlgorithm>>();
    for (const LtHeuristic& result : std::span(results).first(searched == 0 ? found : 0))
      if (result.state == 0) algorithms->push_back(result.algorithm);
    if (algorithms->empty()) return not_served(name(), "no algorithm");
    program.scratch[kWorkspace] = kWorkspaceBytes;
    program.pieces.push_back([=, library = name(),
                              &device = device_](const Bindings& buffers) -> Result<runtime::Call> {
      WARPLOOM_TRY(const Buffer x, buffer_of(buffers, call.a));
      WARPLOOM_TRY(const Buffer y, buffer_of(buffers, call.b));
      WARPLOOM_TRY(const Buffer z, buffer_of(buffers, call.dst));
      const Buffer workspace = buffers.at(kWorkspace);
      void* bias = nullptr;
      if (biased) {
        WARPLOOM_TRY(const Buffer held, buffer_of(buffers, *epilogue.bias));
        bias = address_of(held, *epilogue.bias);
      }
      void* const to = address_of(z, call.dst);
      const auto run = [=, &device](const LtAlgorithm& algorithm) -> Status {
        const CublasLt& cublas = CublasLt::get();
        const float one = 1;   // the factor of A·B
        const float zero = 0;  // and of C
        if (bias) set(cublas.desc_set, desc, kDescBiasPointer, bias);
        const int status = cublas.matmul(cublas.handle, desc.get(), &one, address_of(y, call.b),
                                         layout_b.get(), address_of(x, call.a), layout_a.get(),
                                         &zero, to, layout_c.get(), to, layout_c.get(), &algorithm,
                                         workspace.address(), kWorkspaceBytes, device.stream());
        if (status == 0) return ok();
        return fail({ErrorCode::kCudaCall, "cublasLtMatmul failed", library, "status 0",
                     fmt::format("status {}", status), "check nvidia-smi and the kernel log"});
      };
      if (algorithms->size() > 1) WARPLOOM_CHECK(choose(device, *algorithms, run));
      return [run, algorithm = algorithms->front()] { return run(algorithm); };
    });
    return ok();
  }

  static constexpr const char* kWorkspace = "cublaslt@workspace";
  Executor& device_;
};
}  // namespace

std::unique_ptr<Library> cublaslt_library(Executor& device) {
  if (!CublasLt::get().ready) return nullptr;
  return std::make_unique<CublasLtLibrary>(device);
}
}  // namespace warploom::vendor
