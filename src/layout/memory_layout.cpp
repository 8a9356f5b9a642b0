#include "layout/memory_layout.h"
#include <bit>

namespace warploom::layout {
std::int64_t MemoryLayout::elements() const {
  std::int64_t last = 0;
  for (const auto& dim : dims)
    for (const MemoryMode& mode : dim) last += (mode.extent - 1) * mode.stride;
  return last + 1;
}

std::int64_t MemoryLayout::bytes() const {
  const std::int64_t plain = (elements() * element_bits + 7) / 8;
  if (swizzle.bits == 0) return plain;
  // The swizzle moves bytes within aligned blocks of 2^(base + bits): the last block may be used up to its end.
  const std::int64_t block = std::int64_t{1} << (swizzle.base + swizzle.bits);
  return (plain + block - 1) / block * block;
}

std::int64_t MemoryLayout::element_offset(const Coord& coord) const {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < std::min(dims.size(), coord.size()); ++d) {
    std::int64_t rest = coord[d];
    for (std::size_t i = 0; i < dims[d].size(); ++i) {
      const bool last = i + 1 == dims[d].size();
      offset += (last ? rest : rest % dims[d][i].extent) * dims[d][i].stride;
      rest /= dims[d][i].extent;
    }
  }
  return offset;
}

std::int64_t MemoryLayout::byte_offset(const Coord& coord) const {
  return swizzle(element_offset(coord) * element_bits / 8);
}

MemoryLayout dense(const std::vector<std::int64_t>& extents, const std::vector<int>& order, int element_bits,
                   std::int64_t pad, Swizzle swizzle) {
  MemoryLayout layout;
  layout.dims.resize(extents.size());
  layout.swizzle = swizzle;
  layout.element_bits = element_bits;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto d = static_cast<std::size_t>(order[i]);
    layout.dims[d] = {{extents[d], stride}};
    stride *= extents[d];
    if (i == 0) stride += pad;
  }
  return layout;
}

Result<MemoryLayout> panels(const std::vector<std::int64_t>& extents, int contiguous, int panel_bytes,
                            int element_bits) {
  if (panel_bytes != 32 && panel_bytes != 64 && panel_bytes != 128)
    return layout_error("a panel has a width that no swizzle mode has", "32, 64 or 128 bytes",
                        std::to_string(panel_bytes));
  if (extents.size() != 2 || contiguous < 0 || contiguous > 1 || element_bits < 1 ||
      panel_bytes * 8 % element_bits != 0)
    return layout_error("panels need a tile of two dimensions, one of them contiguous, and whole elements",
                        "two extents, contiguous 0 or 1, an element that divides the panel",
                        fmt::format("extents ({}), contiguous {}, elements of {} bits", fmt::join(extents, ","),
                                    contiguous, element_bits));
  const auto c = static_cast<std::size_t>(contiguous);
  const std::int64_t width = panel_bytes * 8 / element_bits, rows = extents[1 - c];
  if (extents[c] < 1 || rows < 1 || extents[c] % width != 0)
    return layout_error("the contiguous extent is no multiple of the panel",
                        fmt::format("a multiple of {} elements", width), std::to_string(extents[c]));
  MemoryLayout layout;
  layout.dims.resize(2);
  layout.dims[c] = {{width, 1}};
  if (extents[c] > width) layout.dims[c].push_back({extents[c] / width, width * rows});
  layout.dims[1 - c] = {{rows, width}};
  layout.swizzle = {.bits = std::countr_zero(static_cast<unsigned>(panel_bytes / 16)), .base = 4, .shift = 3};
  layout.element_bits = element_bits;
  return layout;
}

std::string to_string(const MemoryLayout& layout) {
  std::string out;
  for (std::size_t d = 0; d < layout.dims.size(); ++d) {
    if (d) out += ", ";
    for (const MemoryMode& mode : layout.dims[d]) out += fmt::format("({}:{})", mode.extent, mode.stride);
    if (layout.dims[d].empty()) out += "()";
  }
  out += fmt::format(" of {} bits", layout.element_bits);
  if (const Swizzle& s = layout.swizzle; s.bits > 0)
    out += fmt::format(" swizzle{{{},{},{}}}", s.bits, s.base, s.shift);
  return out;
}

}  // namespace warploom::layout
