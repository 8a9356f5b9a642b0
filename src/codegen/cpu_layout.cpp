#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/cpu_emitter.h"
#include "synth/sites.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using synth::IndexRanges;

// How the statements use one shared tensor.
struct Uses {
  const Statement* as_is = nullptr;
  const Statement* transposed = nullptr;  // the last Mma that reads it as second operand so
  int64_t width = 0;  // n of those Mmas; -1 when they differ or do not read whole panels
  bool as_a = false;
  bool with_windows = false;  // as the second operand of a product of windows
  bool in_windows = false;    // windows of it are multiplied: it lies as it was declared
  bool filled_by_columns =
      false;  // a copy into it reads a global tensor whose columns are contiguous
};

bool columns_are_contiguous(const Tensor& matrices) {
  const size_t rank = matrices.shape.size();
  return matrices.strides[rank - 2] == 1 && matrices.strides[rank - 1] != 1;
}

void note_uses(const Program& program, const Body& body, IndexRanges& ranges,
               std::vector<Uses>& uses) {
  for (const Statement& statement : body) {
    if (const auto* loop = statement.as<For>()) ranges.enter(*loop);
    for_bodies(statement, [&](const Body& inner) { note_uses(program, inner, ranges, uses); });
    if (const auto* copy = statement.as<Copy>()) {
      const Tensor& src = program.tensor(copy->src.tensor);
      const Tensor& dst = program.tensor(copy->dst.tensor);
      const size_t rank = src.shape.size();
      const bool matrices = rank >= 2 && dst.shape.size() >= 2;
      if (matrices && src.scope == Scope::global && columns_are_contiguous(src))
        uses[copy->dst.tensor].filled_by_columns = true;
    }
    const auto* mma = statement.as<Mma>();
    if (!mma) continue;
    Uses& b = uses[mma->b.tensor];
    if (const TensorId base = program.tensor(mma->a.tensor).as_strided; base >= 0) {
      uses[base].in_windows = true;
      b.with_windows = true;
    }
    uses[mma->a.tensor].as_a = true;
    (mma->transpose_b ? b.transposed : b.as_is) = &statement;
    const size_t n_dim = mma->b.extent.size() - (mma->transpose_b ? 2 : 1);
    const int64_t n = mma->b.extent[n_dim];
    const bool agrees = b.width == 0 || b.width == n;
    const bool whole = agrees && ranges.divisible(mma->b.offset[n_dim], n);
    b.width = whole ? n : -1;
  }
}

CpuLayout plain(const Tensor& tensor, int64_t lanes) {
  CpuLayout layout;
  const size_t rank = tensor.shape.size();
  layout.cols = tensor.shape.back();
  if (rank > 1) layout.rows = tensor.shape[rank - 2];
  for (size_t i = 0; i + 2 < rank; ++i)
    layout.matrices *= tensor.shape[i];
  layout.panel = layout.cols == 1 ? 1 : round_up(layout.cols, lanes);
  return layout;
}

void choose_shared(CpuLayout& layout, const Uses& uses, int64_t lanes) {
  const bool as_b = uses.as_is || uses.transposed;
  if (uses.in_windows) layout.panel = layout.cols;
  if (!as_b && !uses.as_a) return;
  layout.rows_fast = as_b ? uses.transposed != nullptr : uses.filled_by_columns;
  layout.panel = round_up(layout.fast(), lanes);
  if (as_b && uses.with_windows)
    layout.panel = std::min(layout.panel, kWindowVectors * lanes);
  else if (as_b && uses.width > 0 && uses.width % lanes == 0 && uses.width < layout.fast())
    layout.panel = uses.width;
  else if (layout.panel * 4 % 512 == 0 && layout.slow() > 1)
    layout.panel += lanes;
}
}  // namespace

int64_t CpuLayout::matrix_floats() const {
  return round_up(fast(), panel) * slow();
}

std::vector<int64_t> CpuLayout::strides(const std::vector<int64_t>& shape) const {
  std::vector<int64_t> strides(shape.size());
  int64_t next = matrix_floats();
  for (size_t i = shape.size(); i-- > 0;) {
    const bool last = i + 1 == shape.size();
    const bool matrix = i + 2 >= shape.size();
    if (matrix) {
      strides[i] = last != rows_fast ? 1 : panel;
    } else {
      strides[i] = next;
      next *= shape[i];
    }
  }
  return strides;
}

Result<CpuLayouts> choose_cpu_layouts(const Program& program,
                                      const target::Capabilities& capabilities) {
  const int64_t lanes = capabilities.lanes();
  std::vector<Uses> uses(program.tensors.size());
  IndexRanges ranges(program);
  note_uses(program, program.body, ranges, uses);

  CpuLayouts layouts;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    layouts.of.emplace_back();
    if (tensor.scope == Scope::global || tensor.as_strided >= 0) continue;
    CpuLayout& layout = layouts.of.back() = plain(tensor, lanes);
    const auto quoted = [&](const Statement& s) {
      return fmt::format("{} ({})", print(program, s), place_of(s));
    };
    const Statement* as_is = uses[i].as_is;
    const Statement* transposed = uses[i].transposed;
    if (as_is && transposed) {
      const std::string& name = tensor.name;
      return fail({ErrorCode::kNoLayout,
                   fmt::format("matrix products read '{}' both as it is and transposed", name),
                   place_of(*transposed),
                   fmt::format("one orientation of '{}', as in {}", name, quoted(*as_is)),
                   quoted(*transposed), "copy it into a tensor of its own for each orientation"});
    }
    if (tensor.scope == Scope::shared) choose_shared(layout, uses[i], lanes);
    // One vector of slack: a whole vector may be read or written at any element.
    layout.floats = round_up(layout.matrix_floats() * layout.matrices + lanes, lanes);
    int64_t& total =
        tensor.scope == Scope::shared ? layouts.shared_floats : layouts.register_floats;
    layout.offset = total;
    total += round_up(layout.floats * (is_wide_integer(tensor.dtype) ? 2 : 1), 64 / 4);
  }
  return layouts;
}
}  // namespace warploom::codegen
