// Layouts on the CPU: where an element of a shared or register tensor lies, chosen from how the statements use the tensor.
//
// A tensor is a stack of matrices [rows, cols], its last two dimensions. Either the columns or the rows run fastest, and the
// fast dimension is cut into panels of `panel` elements:
//
//   columns fast:  (r, c) → (c / panel) · rows · panel + r · panel + c % panel
//
// One panel as wide as the tensor is plain row-major storage with a pitch; a panel of 48 columns is what an Mma with 48 columns reads
// with no stride at all. Rules: the second operand of an Mma has its n dimension fast, in panels of the Mma's width where every
// Mma reads whole panels; the first operand lies as the global tensor that fills it does, so that filling it is copying; all
// else is row-major. A pitch that would map successive rows to the same cache sets gets one vector more.
#pragma once
#include "target/capabilities.h"
#include "tile/program.h"
namespace warploom::codegen {
struct CpuLayout {
  std::int64_t rows = 1, cols = 1, matrices = 1;
  bool rows_fast = false;
  std::int64_t panel = 1;   // elements, of the fast dimension
  std::int64_t floats = 0;  // of all matrices, padding included
  std::int64_t offset = 0;  // shared tensors: floats from the start of the scratch memory

  std::int64_t fast() const { return rows_fast ? rows : cols; }
  std::int64_t slow() const { return rows_fast ? cols : rows; }
  bool one_panel() const { return panel >= fast(); }
  std::int64_t matrix_floats() const;
  // Of each dimension of a tensor of this shape, within one panel.
  std::vector<std::int64_t> strides(const std::vector<std::int64_t>& shape) const;
};

struct CpuLayouts {
  std::vector<CpuLayout> of;  // by tensor; of global tensors empty
  std::int64_t shared_floats = 0, register_floats = 0;
};

Result<CpuLayouts> choose_cpu_layouts(const tile::Program& program, const target::Capabilities& capabilities);
}  // namespace warploom::codegen
