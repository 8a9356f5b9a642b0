// Statements that bring register tensors' elements together or elsewhere: prefixes along an axis, transposition.
#include "codegen/cpu_emitter.h"
namespace warploom::codegen {
using tile::TensorId;

// Along the dimension that vectors run along one element after another, along others a vector at a time.
Status CpuEmitter::visit(const tile::Scan& scan) {
  const tile::Tensor &src = tensor(scan.src), &dst = tensor(scan.dst);
  const Reduction how = reduction_of(scan.op);
  const auto axis = static_cast<std::size_t>(scan.axis);
  const std::size_t along = vector_dim_of(src.shape);
  const std::vector<Loop> loops = open_loops(src.shape, along, axis);
  const std::string total = fresh("t"), v = fresh("v"), k = fresh("k"), x = fresh("x");
  auto inner = loops;
  if (axis != along) {
    out_.open("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, src.shape[along]);
    inner.push_back({k, src.shape[axis], axis});
  }
  const std::string place = axis == along ? k : v, from = element(scan.src, inner), to = element(scan.dst, inner);
  out_.line("wl::vf {} = {{}};", total);
  out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", k, src.shape[axis]);
  out_.line("const wl::vf {} = wl::{}{} + {}{};", x, axis == along ? "splat(*(" : "load(", from, place,
            axis == along ? "))" : ")");
  out_.line("{0} = {1} == 0 ? {2} : {3}({2}, {0});", total, k, x, how.combine);
  const std::string value = rounded(dst.dtype, total);
  if (axis == along) {
    out_.line("wl::store_one({} + {}, ({})[0]);", to, place, value);
  } else {
    out_.line("wl::store_first({} + {}, {}, {}); ", to, place, value,
              fmt::format("{0} - {1} < wl::kLanes ? {0} - {1} : wl::kLanes", src.shape[along], v));
  }
  out_.close();
  if (axis != along) out_.close();
  for (std::size_t i = 0; i < loops.size(); ++i) out_.close();
  return ok();
}

Status CpuEmitter::visit(const tile::Rearrange& node) {
  if (!node.transpose) return visit(tile::Copy{whole(program_, node.src), whole(program_, node.dst)});
  const auto &shape = tensor(node.src).shape, from = layout(node.src).strides(shape),
             to = layout(node.dst).strides(tensor(node.dst).shape);
  const std::string i = fresh("i"), j = fresh("j");
  out_.line("for (long {0} = 0; {0} < {1}; ++{0})", i, shape[0]);
  out_.line("  for (long {0} = 0; {0} < {1}; ++{0}) {2}[{0} * {3} + {4} * {5}] = {6}[{4} * {7} + {0} * {8}];", j, shape[1],
            name(node.dst), to[0], i, to[1], name(node.src), from[0], from[1]);
  return ok();
}
}  // namespace warploom::codegen
