#include "kernels/pieces/precision.h"
#include <cstdint>
#include <optional>
#include "base/dtype.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"

namespace warploom::kernels {
std::optional<Precision> precision_of(Dtype a, Dtype b, Track track, bool halves) {
  if (a != b) return std::nullopt;
  if (a == Dtype::bf16 && track != Track::fp16) return Precision{Dtype::bf16, 1};
  if (a == Dtype::f16 && track != Track::bf16) return Precision{Dtype::f16, 1};
  const bool takes_fp8 = track == Track::fp8 || track == Track::tolerance;
  if (bits_of(a) == 8 && takes_fp8) return Precision{a, 1};
  if (a != Dtype::f32) return std::nullopt;
  if (track == Track::tf32) return Precision{Dtype::tf32, 1};
  if (track == Track::fp32 || track == Track::tolerance)
    return Precision{halves ? Dtype::f16 : Dtype::tf32, 3};
  return std::nullopt;
}

bool fuses_rows(const Contraction& c, const Precision& precision, int64_t columns,
                const Capabilities& capabilities) {
  constexpr int64_t kMostTerms = 2048;
  const TileCoord one(c.nest);
  const int64_t width = c.nest.axes[c.column];
  const int64_t elements_of_m = one.count(c.nest, c.batch) * one.count(c.nest, c.m);
  const int64_t rows = elements_of_m * one.count(c.nest, c.n) / width;
  if (precision.accumulator() != Dtype::f32 || width > columns) return false;
  const bool few_terms = one.count(c.nest, c.k) * precision.terms <= kMostTerms;
  const int64_t tiles = rows / 64 * ceil_div(width, 64);
  return few_terms && tiles >= capabilities.num_sms / 4;
}
}  // namespace warploom::kernels
