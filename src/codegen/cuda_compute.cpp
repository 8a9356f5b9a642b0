// Elementwise statements, registers in another layout or as another type, and matrix statements.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "codegen/cuda_emitter.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/memory_layout.h"
#include "synth/solve.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
// XOR of the columns whose bits are set in the variable: "(i & 1) * 4 ^ (i >> 1 & 1) * 2". Columns
// that are their own bit stay together: "(t & 7)".
Index xor_of(const std::string& variable, const std::vector<int64_t>& columns) {
  std::string out;
  int64_t same = 0;
  for (size_t b = 0; b < columns.size(); ++b)
    if (columns[b] == int64_t{1} << b) same |= columns[b];
  if (same) out = fmt::format("({} & {})", variable, same);
  for (size_t b = 0; b < columns.size(); ++b)
    if (columns[b] && columns[b] != int64_t{1} << b)
      out +=
          fmt::format("{}({} >> {} & 1) * {}", out.empty() ? "" : " ^ ", variable, b, columns[b]);
  return out.empty() ? 0 : Index::variable("(" + out + ")");
}

// The layout type of a shared-memory descriptor: swizzle atoms of 128, 64 or 32 bytes.
int swizzle_mode(int64_t atom_bytes) {
  if (atom_bytes == 128) return 1;
  return atom_bytes == 64 ? 2 : 3;
}
}  // namespace

std::string literal(Dtype dtype, double value) {
  if (is_float(dtype) && bits_of(dtype) == 8) {  // as bits: not every target converts them
    unsigned char code = 0;
    store_from_double(dtype, &code, 0, value);
    return fmt::format("{}{{{}}}", cuda_type(dtype), code);
  }
  if (dtype == Dtype::f32 || dtype == Dtype::f64) return float_text(value);
  if (is_float(dtype)) return fmt::format("wl::cast<{}>({})", cuda_type(dtype), float_text(value));
  if (dtype == Dtype::i64 && value <= -0x1p63)
    return whole_literal(saturated_integer(dtype, value));
  if (is_integer(dtype)) return std::to_string(saturated_integer(dtype, value));
  auto bits = static_cast<int64_t>(rounded(dtype, value));
  if (bits_of(dtype) < 8) bits &= (1 << bits_of(dtype)) - 1;
  for (int width = bits_of(dtype); width < 8; width *= 2) bits |= bits << width;
  return std::to_string(bits);
}

void CudaEmitter::emit(const Fill& node) {
  assign(name(node.dst), array_length(node.dst, registers(node.dst).values()),
         literal(tensor(node.dst).dtype, node.value));
}

// Arithmetic is done on float.
std::string CudaEmitter::as_float(TensorId id, const Index& index) {
  const Dtype from = tensor(id).dtype;
  if (from == Dtype::f64 || is_foreign(from)) no_arithmetic(from);
  if (const int per = per_byte(from); per > 1)
    return fmt::format("wl::unpacked<{}, {}>({}[{}], {})", bits_of(from), is_signed(from), name(id),
                       (index / per).text(), (index % per).text());
  const std::string element = fmt::format("{}[{}]", name(id), index.text());
  return from == Dtype::f32 ? element : fmt::format("wl::to_float({})", element);
}

std::string CudaEmitter::from_float(Dtype to, const std::string& value) {
  if (!(is_float(to) ? to != Dtype::f64 : is_integer(to)) || is_foreign(to)) no_arithmetic(to);
  return to == Dtype::f32 ? value : fmt::format("wl::cast<{}>({})", cuda_type(to), value);
}

void CudaEmitter::no_arithmetic(Dtype dtype) {
  refuse("elements of a type that kernels only move are computed",
         "floats of 16 or 32 bits, or 8 where the target converts them, i8, u8, i32, i64, booleans "
         "or less than a byte",
         std::string(name_of(dtype)), "take another type");
}

// What of a value is computed several times gets a name, in lines before it.
std::string CudaEmitter::value_text(const Value& value,
                                    const std::function<std::string(const Value&)>& leaf,
                                    bool integers) {
  static constexpr std::pair<ValueOp, const char*> kInfix[] = {
      {ValueOp::add, "+"}, {ValueOp::sub, "-"}, {ValueOp::mul, "*"}, {ValueOp::div, "/"}};

  struct Part {
    const Value* value;
    std::vector<size_t> operands;
    std::string text;
    int users = 0;
  };

  std::vector<Part> parts;  // the different ones, operands first
  std::map<std::string, size_t> known;
  const auto part_of = [&](const auto& self, const Value& one) -> size_t {
    Part part{&one, {}, {}};
    if (one.kind == Value::Kind::constant)
      part.text = integers ? whole_literal(saturated_integer(Dtype::i64, one.constant))
                           : float_text(one.constant);
    else if (one.kind != Value::Kind::op)
      part.text = leaf(one);
    for (const Value& operand : one.operands) part.operands.push_back(self(self, operand));
    const std::string key =
        part.text.empty() ? fmt::format("{} {}", name_of(one.op), fmt::join(part.operands, " "))
                          : part.text;
    const auto [place, fresh] = known.try_emplace(key, parts.size());
    if (!fresh) return place->second;
    for (const size_t operand : part.operands) ++parts[operand].users;
    parts.push_back(std::move(part));
    return parts.size() - 1;
  };
  const size_t last = part_of(part_of, value);
  for (size_t p = 0; p <= last; ++p) {
    Part& part = parts[p];
    if (part.value->kind != Value::Kind::op) continue;
    std::vector<std::string> operands;
    for (const size_t operand : part.operands) operands.push_back(parts[operand].text);
    const auto infix = integers ? std::end(kInfix)
                                : std::ranges::find(kInfix, part.value->op,
                                                    &std::pair<ValueOp, const char*>::first);
    if (infix == std::end(kInfix))
      part.text = fmt::format("wl::{}{}({})", integers ? "integers::" : "", name_of(part.value->op),
                              fmt::join(operands, ", "));
    else
      part.text = fmt::format("{} {} {}", operands[0], infix->second, operands[1]);
    if (part.users > 1) {
      out_.line("const {} u{} = {};", integers ? "long long" : "float", named_, part.text);
      part.text = fmt::format("u{}", named_++);
    } else if (p != last && infix != std::end(kInfix))
      part.text = fmt::format("({})", part.text);
  }
  return parts[last].text;
}

// make(array of floats), which then go into the tensor; or make(the tensor's own) where that
// serves.
void CudaEmitter::as_floats(TensorId id, bool own, const char* array,
                            const std::function<void(const std::string&)>& make) {
  if (own) return make(name(id));
  const Dtype dtype = tensor(id).dtype;
  const int64_t values = registers(id).values();
  const int per = per_byte(dtype);
  const auto scope = out_.block("{{");
  out_.line("WL_REG(float, {}, {});", array, values);
  make(array);
  if (per == 1) return assign(name(id), values, from_float(dtype, fmt::format("{}[i]", array)));
  std::vector<std::string> parts;
  for (int place = 0; place < per; ++place)
    parts.push_back(fmt::format("wl::packed<{}, {}>({}[{}], {})", bits_of(dtype), is_signed(dtype),
                                array, (Index::variable("i") * per + place).text(), place));
  assign(name(id), values / per, fmt::format("{}", fmt::join(parts, " | ")));
}

void CudaEmitter::emit(const Map& node) {
  const TvLayout& layout = registers(node.dst);
  const auto& full = tensor(node.dst).shape;
  if (node.value.kind == Value::Kind::tensor &&
      tensor(node.value.tensor).dtype == tensor(node.dst).dtype &&
      tensor(node.value.tensor).shape == full)
    return assign(name(node.dst), array_length(node.dst, layout.values()),
                  name(node.value.tensor) + "[i]");
  bool broadcasts = has_coordinates(node.value);
  for (const TensorId id : tensors_of(node.value)) broadcasts |= tensor(id).shape != full;

  std::vector<ValueLoop> loops;
  if (broadcasts)
    loops = value_loops(layout, 1);
  else if (layout.values() > 1)
    loops = {{Index::variable("i"), layout.values(), {}, 1}};
  const Dtype dtype = tensor(node.dst).dtype;
  const auto leaf = [&](const Value& one) {
    if (one.kind == Value::Kind::coordinate)
      return fmt::format("{}({})", node.integers ? "static_cast<long long>" : "wl::to_float",
                         (one.shift + within(layout, static_cast<size_t>(one.axis), loops)).text());
    // The operand keeps the modes that step along a dimension it has; the others repeat its value.
    const auto& shape = tensor(one.tensor).shape;
    Digits kept;
    for (const ValueLoop& loop : loops) {
      bool keeps = shape == full;
      for (size_t d = 0; d < full.size() && !keeps; ++d) keeps = loop.step[d] != 0 && shape[d] > 1;
      if (keeps) kept.add(loop.variable, loop.extent);
    }
    if (node.integers)
      return fmt::format("static_cast<long long>({}[{}])", name(one.tensor), kept.number.text());
    return as_float(one.tensor, kept.number);
  };
  if (node.integers) {
    const auto block = open_loops(loops);
    const std::string value = value_text(node.value, leaf, true);
    const std::string held = dtype == Dtype::boolean
                                 ? fmt::format("({}) != 0 ? 1 : 0", value)
                                 : fmt::format("static_cast<{}>({})", cuda_type(dtype), value);
    return out_.line("{}[{}] = {};", name(node.dst), value_index(loops).text(), held);
  }
  as_floats(node.dst, per_byte(dtype) == 1, "wide", [&](const std::string& dst) {
    const auto block = open_loops(loops);
    const std::string value = value_text(node.value, leaf);
    out_.line("{}[{}] = {};", dst, value_index(loops).text(),
              dst == "wide" ? value : from_float(dtype, value));
  });
}

void CudaEmitter::emit(const ConvertLayout& node) {
  const InstructionChoice& choice = solution_.choices.at(at_->id);
  const TvLayout from = synth::flipped(registers(node.src), node.transpose);
  const TvLayout& to = registers(node.dst);
  const Dtype dtype = tensor(node.dst).dtype;
  const Tile all = whole(program_, node.dst);
  if (!choice.scratch.dims.empty()) {
    const Index base = shared_at(choice.scratch_offset);
    const auto vector = common_vector(from, choice.scratch, 16);
    synchronize(SyncPart::inside, 0);
    move_shared(node.src, all, from, choice.scratch, base, vector, false);
    synchronize(SyncPart::inside, 1);
    return move_shared(node.dst, all, to, choice.scratch, base, choice.vector, true);
  }
  const auto exchange = synth::warp_shuffle_plan(from, to, bits_of(dtype));
  const Index i = counter("i", exchange->units);
  const std::vector<int64_t> picks = exchange->picks();
  const int64_t unit = array_length(node.dst, exchange->unit);
  const int64_t images = int64_t{1} << picks.size();
  const Index pick = xor_of("i", exchange->pick_of_unit);
  const Index image = xor_of("j", picks);
  const Index e = Index::variable("e");
  if (exchange->shuffles() == 0) {
    const auto units = unrolled("i", exchange->units);
    const auto elements = unrolled("e", unit);
    return out_.line("{}[{}] = {}[{}];", name(node.dst), (i * unit + e).text(), name(node.src),
                     (pick * unit + e).text());
  }
  const auto scope = out_.block("{{");
  out_.line("const int from = {};", xor_of("t", exchange->lane_of_thread).text());
  if (images > 1) out_.line("const int pick = {};", xor_of("t", exchange->pick_of_thread).text());
  const auto units = unrolled("i", exchange->units);
  const auto each_image = over("j", images);
  const Index source =
      images > 1 ? Index::variable(fmt::format("({} ^ {})", pick.text(), image.text())) : pick;
  out_.line("wl::shfl<{}>(wl::at({}, {}), wl::at({}, {}), from ^ {}{});",
            bytes_of(dtype, exchange->unit), name(node.dst), (i * unit).text(), name(node.src),
            (source * unit).text(), xor_of("i", exchange->lane_of_unit).text(),
            images > 1 ? fmt::format(", pick == {}", image.text()) : "");
}

// Both arrays hold bytes, in the same order.
void CudaEmitter::emit(const Bitcast& node) {
  assign(name(node.dst), array_length(node.dst, registers(node.dst).values()),
         name(node.src) + "[i]");
}

void CudaEmitter::emit(const Mma& node) {
  const Instruction& row = *solution_.choices.at(at_->id).instruction;
  if (row.method == Method::wgmma) {
    mma_warpgroup(node, row);
    return synchronize(SyncPart::after);
  }
  const int64_t k_atoms = matrix_extent(node.a.extent)[node.transpose_a ? 0 : 1] / row.k;
  const int64_t a_values = registers(node.a.tensor).values() / k_atoms;
  const int64_t b_values = registers(node.b.tensor).values() / k_atoms;
  if (row.method == Method::simt) {
    // acc values run n fastest in blocks of the operand's own order: acc[m][n] += a[m] · b[n]
    const auto block = unrolled("kk", k_atoms);
    out_.line("WL_UNROLL for (int m = 0; m < {}; ++m)", a_values);
    return out_.line(
        "  WL_UNROLL for (int n = 0; n < {0}; ++n) {1}[m * {0} + n] = wl::fma({2}[kk * {3} + m], "
        "{4}[kk * "
        "{0} + n], {1}[m * {0} + n]);",
        b_values, name(node.acc), name(node.a.tensor), a_values, name(node.b.tensor));
  }
  const int64_t a_atom = row.a.values();
  const int64_t b_atom = row.b.values();
  const int64_t c_atom = row.c.values();
  const int64_t m_atoms = a_values / a_atom;
  const int64_t n_atoms = b_values / b_atom;
  const auto block = over("kk", k_atoms);
  const Index kk = counter("kk", k_atoms);
  const Index m = Index::variable("m");
  const Index n = Index::variable("n");
  out_.line("WL_UNROLL for (int m = 0; m < {}; ++m)", m_atoms);
  out_.line("  WL_UNROLL for (int n = 0; n < {}; ++n)", n_atoms);
  out_.line("    {}(wl::at({}, (m * {} + n) * {}), wl::at({}, {}), wl::at({}, {}));", row.call,
            name(node.acc), n_atoms, c_atom, name(node.a.tensor),
            (m * a_atom + kk * a_values).text(), name(node.b.tensor),
            (n * b_atom + kk * b_values).text());
}

// The descriptor of a warpgroup's operand at the start of its tile, and its distance to the next k
// atom in bytes.
std::string CudaEmitter::descriptor(const Tile& tile, int k_dim, int groups, Index& k_step, int k) {
  const auto& layout = solution_.shared.at(tile.tensor);
  const int bytes = layout.element_bits / 8;
  const auto kd = static_cast<size_t>(k_dim);
  const auto od = 1 - kd;
  const bool k_major = layout.dims[kd][0].stride == 1;
  const int64_t panel_bytes =
      (k_major ? layout.dims[kd][0].extent : layout.dims[od][0].extent) * bytes;
  // Within an atom, groups of 8 rows follow each other; between atoms the distance is an atom's
  // whole size.
  const int64_t rows_apart = 8 * panel_bytes;
  const int64_t panels_apart = tensor(tile.tensor).shape[k_major ? od : kd] * panel_bytes;
  const int mode = swizzle_mode(panel_bytes);
  const Index group = groups > 1 ? digit(128, groups) * (tile.extent[od] / groups) : 0;
  const Index start = offset_in(tile.offset[od] + group, layout.dims[od], bounds_) +
                      offset_in(tile.offset[kd], layout.dims[kd], bounds_);
  k_step =
      scaled(offset_in(counter("kk", tile.extent[kd] / k) * k, layout.dims[kd], bounds_), bytes);
  return fmt::format("wl::smem_descriptor({}, {}, {}, {})",
                     (shared_base(tile.tensor) + scaled(start, bytes)).text(),
                     k_major ? 16 : panels_apart, rows_apart, mode);
}

void CudaEmitter::mma_warpgroup(const Mma& node, const Instruction& row) {
  const Tensor& acc = tensor(node.acc);
  const int groups = role_threads_ / 128;
  const int a_k = node.transpose_a ? 0 : 1;
  const int b_k = node.transpose_b ? 1 : 0;
  const auto mn_major = [&](const Tile& tile, int k_dim) {
    return solution_.shared.at(tile.tensor).dims[k_dim][0].stride != 1;
  };
  const int64_t n = acc.shape[1];
  const int64_t m_atoms = acc.shape[0] / groups / row.m;
  const int64_t k_atoms = matrix_extent(node.a.extent)[a_k] / row.k;
  synchronize(SyncPart::inside);
  Index a_step = 0;
  Index b_step = 0;
  const Index kk = counter("kk", k_atoms);
  const auto& adds_where = analysis_.skipped_fills.adds_where;
  const auto anew = adds_where.find(at_->id);
  const std::string adds =
      anew == adds_where.end() ? "true" : anew->second + (k_atoms > 1 ? "kk > 0" : "false");
  const auto scope = out_.block("{{");
  if (row.a_shared)
    out_.line("const unsigned long long a_desc = {};",
              descriptor(node.a, a_k, groups, a_step, row.k));
  out_.line("const unsigned long long b_desc = {};", descriptor(node.b, b_k, 1, b_step, row.k));
  const auto k_loop = unrolled("kk", k_atoms);
  const auto m_loop = over("m", m_atoms);
  const Index m = counter("m", m_atoms);
  const std::string at_acc = (m * (n / 2)).text();
  if (row.a_shared) {
    // An atom of 64 rows further down, when a warpgroup has more than one.
    const auto& layout = solution_.shared.at(node.a.tensor);
    const Index down = offset_in(m * row.m, layout.dims[1 - a_k], bounds_);
    out_.line("{}<{}, {}, {}, {}>(wl::at({}, {}), a_desc + ({}) / 16, b_desc + ({}) / 16, {});",
              row.call, n, cuda_type(row.operand), mn_major(node.a, a_k), mn_major(node.b, b_k),
              name(node.acc), at_acc, (a_step + scaled(down, layout.element_bits / 8)).text(),
              b_step.text(), adds);
  } else {
    const int64_t atom = row.a.values();
    out_.line("{}<{}, {}, {}>(wl::at({}, {}), wl::at({}, {}), b_desc + ({}) / 16, {});", row.call,
              n, cuda_type(row.operand), mn_major(node.b, b_k), name(node.acc), at_acc,
              name(node.a.tensor), (kk * (atom * m_atoms) + m * atom).text(), b_step.text(), adds);
  }
}
}  // namespace warploom::codegen
