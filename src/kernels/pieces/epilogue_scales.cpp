// Scales: of the blocks that a stage's products are of, and of the rows and columns of fp16x3
// products.
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/value_op.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/fp16_split.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"

namespace warploom::kernels {
std::vector<TensorId> load_scales(KernelBuilder& draft, const Contraction& c,
                                  const TileCoord& stage, const std::vector<size_t>& axes,
                                  size_t rows, const std::string& set) {
  std::vector<TensorId> out;
  for (const size_t scale : c.scales) {
    const std::string name = fmt::format("s{}", out.size());
    const Access& access = c.nest.loads[scale];
    out.push_back(load_beside(draft, c, name, access, stage, axes, rows, set));
  }
  return out;
}

Value promoted(KernelBuilder& draft, TensorId acc, TensorId part,
               const std::vector<TensorId>& scales) {
  const Value before = draft.b.value(acc);
  const Value added = draft.b.value(part);
  if (scales.empty()) return before + added;
  Value scale = draft.b.value(scales[0]);
  for (size_t i = 1; i < scales.size(); ++i)
    scale = std::move(scale) * draft.b.value(scales[i]);
  return tile::apply(ValueOp::fma, {added, std::move(scale), before});
}

void dequantize(KernelBuilder& draft, const Contraction& c, TensorId acc,
                std::initializer_list<const Access*> amax, const TileCoord& tile,
                const std::vector<size_t>& axes, size_t rows) {
  std::optional<Value> by;  // the two first: a sum times one of them may overflow
  int number = 0;
  for (const Access* const each : amax) {
    const std::string name = fmt::format("most{}", number++);
    const TensorId back = load_beside(draft, c, name, *each, tile, axes, rows);
    draft.b.map(back, fp16_split::inverse_scale_of(draft.b.value(back)));
    const Value inverse = draft.b.value(back);
    by = by ? *std::move(by) * inverse : inverse;
  }
  draft.b.map(acc, draft.b.value(acc) * *std::move(by));
}
}  // namespace warploom::kernels
