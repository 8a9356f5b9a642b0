// OpenBLAS, opened at run time: products in f32 and f64. Source: its user manual and the C
// interface of BLAS, whose numbers are those of its enums.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "runtime/executor.h"
#include "runtime/library.h"
#include "vendor/libraries.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
namespace {
using runtime::Bindings, runtime::Buffer;

constexpr int kRowMajor = 101;
constexpr int kAsItIs = 111;
constexpr int kTransposed = 112;

struct OpenBlas {
  template <class T>
  using Gemm = void (*)(int order, int a, int b, int m, int n, int k, T alpha, const T*, int,
                        const T*, int, T beta, T*, int);
  const runtime::Library library{openblas_names()};
  const char* (*config)() = library["openblas_get_config"];
  Gemm<float> sgemm = library["cblas_sgemm"];
  Gemm<double> dgemm = library["cblas_dgemm"];

  static const OpenBlas& get() {
    static const OpenBlas blas;
    return blas;
  }
};

// How BLAS sees a matrix: as it is or transposed, and how far its lines lie apart.
struct Side {
  int transposed = kAsItIs;
  int line = 1;
};

std::optional<Side> side_of(const Place& place) {
  const size_t rank = place.shape.size();
  const int64_t rows = place.shape[rank - 2];
  const int64_t columns = place.shape[rank - 1];
  const int64_t down = place.strides[rank - 2];
  const int64_t along = place.strides[rank - 1];
  if (columns == 1 || along == 1) {
    const int64_t line = rows == 1 ? columns : std::max(down, columns);
    return Side{kAsItIs, as_int(line)};
  }
  if (rows == 1 || down == 1) {
    const int64_t line = std::max(along, rows);
    return Side{kTransposed, as_int(line)};
  }
  return std::nullopt;
}

// The offsets of the matrices of a batch, in elements, as the product's result counts them.
std::vector<int64_t> offsets_of(const Place& place, const Shape& batch) {
  std::vector<int64_t> out = {0};
  for (size_t d = 0; d < batch.size(); ++d) {
    std::vector<int64_t> next;
    const int64_t step = place.shape[d] == 1 ? 0 : place.strides[d];
    for (const int64_t base : out)
      for (int64_t i = 0; i < batch[d]; ++i)
        next.push_back(base + i * step);
    out = std::move(next);
  }
  return out;
}

template <class T>
Piece product(const Matmul& call, Side a, Side b, Side c, OpenBlas::Gemm<T> gemm) {
  const Shape& to = call.dst.shape;
  const size_t rank = to.size();
  const Shape batch(to.begin(), to.end() - 2);
  const auto m = as_int(to[rank - 2]);
  const auto n = as_int(to[rank - 1]);
  const auto k = as_int(call.a.shape[rank - 1]);
  const auto in_a = offsets_of(call.a, batch);
  const auto in_b = offsets_of(call.b, batch);
  const auto in_c = offsets_of(call.dst, batch);
  return [=](const Bindings& buffers) -> Result<runtime::Call> {
    std::vector<Buffer> kept(3);
    WARPLOOM_TRY(kept[0], buffer_of(buffers, call.a));
    WARPLOOM_TRY(kept[1], buffer_of(buffers, call.b));
    WARPLOOM_TRY(kept[2], buffer_of(buffers, call.dst));
    const auto* x = static_cast<const T*>(address_of(kept[0], call.a));
    const auto* y = static_cast<const T*>(address_of(kept[1], call.b));
    auto* z = static_cast<T*>(address_of(kept[2], call.dst));
    return [=]() -> Status {
      for (size_t i = 0; i < in_c.size(); ++i) {
        const T* const first = x + in_a[i];
        const T* const second = y + in_b[i];
        T* const result = z + in_c[i];
        gemm(kRowMajor, a.transposed, b.transposed, m, n, k, T(1), first, a.line, second, b.line,
             T(0), result, c.line);
      }
      return ok();
    };
  };
}

class OpenBlasLibrary : public Library {
 public:
  std::string name() const override {
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH …"
    const std::string_view config = OpenBlas::get().config();
    const size_t first_space = config.find(' ');
    const size_t second_space = config.find(' ', first_space + 1);
    return std::string(config.substr(0, second_space));
  }

  Status add(const Step& step, Program& program) override {
    const auto* given = std::get_if<Matmul>(&step.operation);
    if (!given || !step.after.empty()) return not_served(name(), "anything but products");
    std::vector<After> after;
    const Matmul call = flat(*given, after).value_or(*given);
    const auto a = side_of(call.a);
    const auto b = side_of(call.b);
    const auto c = side_of(call.dst);
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const auto is_small = [](const Place& place) { return elements_of(place) < kMost; };
    const bool small = is_small(call.a) && is_small(call.b) && is_small(call.dst);
    if (!a || !b || !c || c->transposed != kAsItIs || !small)
      return not_served(name(), "a layout or size");
    const Dtype dtype = call.dst.dtype;
    if (call.a.dtype != dtype || call.b.dtype != dtype) return not_served(name(), "mixed types");
    const OpenBlas& blas = OpenBlas::get();
    Piece piece;
    if (dtype == Dtype::f32)
      piece = product<float>(call, *a, *b, *c, blas.sgemm);
    else if (dtype == Dtype::f64)
      piece = product<double>(call, *a, *b, *c, blas.dgemm);
    else
      return not_served(name(), name_of(dtype));
    program.pieces.push_back(std::move(piece));
    return ok();
  }
};
}  // namespace

std::unique_ptr<Library> openblas_library() {
  if (!OpenBlas::get().library.complete()) return nullptr;
  return std::make_unique<OpenBlasLibrary>();
}
}  // namespace warploom::vendor
