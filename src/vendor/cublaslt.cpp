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
#include "base/casts.h"
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
  using Search = int(Raw, Raw desc, Raw a, Raw b, Raw c, Raw d, Raw preference, int wanted,
                     LtHeuristic* results, int* found);
  using Multiply = int(Raw, Raw desc, const void* alpha, const void* a, Raw a_layout, const void* b,
                       Raw b_layout, const void* beta, const void* c, Raw c_layout, void* d,
                       Raw d_layout, const LtAlgorithm*, void* workspace, size_t workspace_bytes,
                       void* stream);
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
  Search* heuristic = library["cublasLtMatmulAlgoGetHeuristic"];
  Multiply* matmul = library["cublasLtMatmul"];
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
  if (columns == 1 || along == 1) {
    const int64_t line = rows == 1 ? columns : std::max(down, columns);
    return Matrix{columns, rows, line, batch_stride, false};
  }
  if (rows == 1 || down == 1) {
    const int64_t line = std::max(along, rows);
    return Matrix{rows, columns, line, batch_stride, true};
  }
  return std::nullopt;
}

// With one axis of batches: [.., r, c] as [batch, r, c].
std::optional<Place> batched(const Place& place) {
  const size_t rank = place.shape.size();
  const int64_t rows = place.shape[rank - 2];
  const int64_t columns = place.shape[rank - 1];
  if (rank == 2) return of_rank(place, 3);
  const int64_t count = elements_of(place) / (rows * columns);
  return reshaped(place, {count, rows, columns});
}

// An addend a column and one of cuBLASLt's activations.
struct Epilogue {
  std::optional<Place> bias;
  int activation = kEpilogueDefault;
};

// One element a column, that lie one after the other.
bool is_row(const Place& place, int64_t columns) {
  if (elements_of(place) != columns || place.shape.back() != columns) return false;
  return columns == 1 || place.strides.back() == 1;
}

std::optional<Epilogue> epilogue_of(const std::vector<After>& after, int64_t columns) {
  Epilogue out;
  for (const After& each : after) {
    if (each.other) {
      const bool first = &each == after.data() && each.combine == Combine::add;
      if (!first || !is_row(*each.other, columns)) return std::nullopt;
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
    auto after = step.after;
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
    const auto rows = as_uint64(matrix.rows);
    const auto columns = as_uint64(matrix.columns);
    Object made = lt.layout(type, rows, columns, matrix.line);
    if (batch == 1) return made;
    const auto count = static_cast<int32_t>(batch);
    if (!set(lt.layout_set, made, kLayoutBatchCount, count)) return nullptr;
    if (!set(lt.layout_set, made, kLayoutBatchStride, matrix.batch_stride)) return nullptr;
    return made;
  }

  // A product as cuBLASLt knows it.
  struct Product {
    Matmul call;
    std::optional<Place> bias;
    Object desc;
    Object layout_a;
    Object layout_b;
    Object layout_c;
    Object preference;
  };

  // Where its operands lie in one binding of buffers.
  struct Operands {
    Buffer a;
    Buffer b;
    Buffer c;
    Buffer workspace;
    void* bias = nullptr;
  };

  Status product(const Matmul& call, const Epilogue& epilogue, Program& program) {
    WARPLOOM_TRY(const Product product, described(call, epilogue));
    const auto algorithms = std::make_shared<std::vector<LtAlgorithm>>(algorithms_of(product));
    if (algorithms->empty()) return not_served(name(), "no algorithm");
    program.scratch[kWorkspace] = kWorkspaceBytes;
    const std::string library = name();
    Executor& device = device_;
    const auto bind = [product, algorithms, library,
                       &device](const Bindings& buffers) -> Result<runtime::Call> {
      WARPLOOM_TRY(const Operands at, operands_of(product, buffers));
      const auto run = [product, at, library, &device](const LtAlgorithm& algorithm) -> Status {
        const int status = multiply(product, at, algorithm, device.stream());
        if (status == 0) return ok();
        const std::string found = fmt::format("status {}", status);
        return fail({ErrorCode::kCudaCall, "cublasLtMatmul failed", library, "status 0", found,
                     "check nvidia-smi and the kernel log"});
      };
      if (algorithms->size() > 1) WARPLOOM_CHECK(choose(device, *algorithms, run));
      return [run, algorithm = algorithms->front()] { return run(algorithm); };
    };
    program.pieces.push_back(bind);
    return ok();
  }

  // Its descriptors. cuBLAS is column-major: it is given B as its first operand.
  Result<Product> described(const Matmul& call, const Epilogue& epilogue) const {
    const CublasLt& lt = CublasLt::get();
    const auto a = matrix_of(call.a);
    const auto b = matrix_of(call.b);
    const auto c = matrix_of(call.dst);
    const int type_a = runtime::codes_of(call.a.dtype).cuda;
    const int type_b = runtime::codes_of(call.b.dtype).cuda;
    const int type_c = runtime::codes_of(call.dst.dtype).cuda;
    const bool known_layouts = a && b && c && !c->transposed;
    const bool known_types = type_a >= 0 && type_b >= 0 && type_c >= 0;
    if (!known_layouts || !known_types) return not_served(name(), "its layout or element types");
    const int64_t batch = call.dst.shape[0];
    Product out{.call = call, .bias = epilogue.bias};
    out.layout_a = layout_of(*a, type_a, batch);
    out.layout_b = layout_of(*b, type_b, batch);
    out.layout_c = layout_of(*c, type_c, batch);
    const bool tf32 = call.tf32 || call.a.dtype == Dtype::tf32;
    out.desc = lt.desc(tf32 ? kComputeFastTf32 : kCompute32F, kScale32F);
    out.preference = lt.preference();
    bool good = out.layout_a && out.layout_b && out.layout_c;
    const int32_t transposes_first = b->transposed;
    const int32_t transposes_second = a->transposed;
    good = good && set(lt.desc_set, out.desc, kDescTransA, transposes_first);
    good = good && set(lt.desc_set, out.desc, kDescTransB, transposes_second);
    good = good && set_epilogue(out.desc, epilogue);
    good = good && set(lt.preference_set, out.preference, kPreferWorkspace, kWorkspaceBytes);
    if (!good) return not_served(name(), "a descriptor it refused");
    return out;
  }

  static bool set_epilogue(const Object& desc, const Epilogue& epilogue) {
    const CublasLt& lt = CublasLt::get();
    const bool biased = epilogue.bias.has_value();
    int code = epilogue.activation;
    if (biased) code = (code & ~kEpilogueDefault) | kEpilogueBias;
    if (!set(lt.desc_set, desc, kDescEpilogue, code)) return false;
    if (!biased) return true;
    const int bias_type = runtime::codes_of(epilogue.bias->dtype).cuda;
    return set(lt.desc_set, desc, kDescBiasType, bias_type);
  }

  // Those that cuBLASLt's heuristic offers, the best first.
  static std::vector<LtAlgorithm> algorithms_of(const Product& product) {
    const CublasLt& lt = CublasLt::get();
    const Raw a = product.layout_a.get();
    const Raw b = product.layout_b.get();
    const Raw c = product.layout_c.get();
    const Raw desc = product.desc.get();
    const Raw preference = product.preference.get();
    std::array<LtHeuristic, kAlgorithms> results;
    int found = 0;
    const int status =
        lt.heuristic(lt.handle, desc, b, a, c, c, preference, kAlgorithms, results.data(), &found);
    std::vector<LtAlgorithm> out;
    if (status != 0) return out;
    for (const LtHeuristic& result : std::span(results).first(as_size(found)))
      if (result.state == 0) out.push_back(result.algorithm);
    return out;
  }

  static Result<Operands> operands_of(const Product& product, const Bindings& buffers) {
    Operands out;
    WARPLOOM_TRY(out.a, buffer_of(buffers, product.call.a));
    WARPLOOM_TRY(out.b, buffer_of(buffers, product.call.b));
    WARPLOOM_TRY(out.c, buffer_of(buffers, product.call.dst));
    out.workspace = buffers.at(kWorkspace);
    if (product.bias) {
      WARPLOOM_TRY(const Buffer held, buffer_of(buffers, *product.bias));
      out.bias = address_of(held, *product.bias);
    }
    return out;
  }

  // The status of cublasLtMatmul.
  static int multiply(const Product& product, const Operands& at, const LtAlgorithm& algorithm,
                      void* stream) {
    const CublasLt& lt = CublasLt::get();
    const float one = 1;   // the factor of A·B
    const float zero = 0;  // and of C
    if (at.bias) set(lt.desc_set, product.desc, kDescBiasPointer, at.bias);
    const void* const a = address_of(at.a, product.call.a);
    const void* const b = address_of(at.b, product.call.b);
    void* const c = address_of(at.c, product.call.dst);
    const Raw layout_a = product.layout_a.get();
    const Raw layout_b = product.layout_b.get();
    const Raw layout_c = product.layout_c.get();
    return lt.matmul(lt.handle, product.desc.get(), &one, b, layout_b, a, layout_a, &zero, c,
                     layout_c, c, layout_c, &algorithm, at.workspace.address(), kWorkspaceBytes,
                     stream);
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
