#include "kernels/pieces/promotion.h"
#include <utility>
#include "kernels/kernel_builder.h"
#include "tile/build.h"

namespace warploom::kernels::promotion {
void add_compensated(tile::Builder& b, TensorId sum, TensorId part, TensorId total,
                     Overflow overflow) {
  b.map(total, b.value(sum) + b.value(part));
  Value lost = b.value(part) - (b.value(total) - b.value(sum));
  if (overflow == Overflow::stays) lost = tile::finite_or_0(lost);
  b.map(part, std::move(lost));
  b.map(sum, b.value(total));
}
}  // namespace warploom::kernels::promotion
