// Elementwise statements, registers in another layout or as another type, and matrix statements.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
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
  std::vector<std::string> terms;
  int64_t same = 0;
  const auto is_own_bit = [&](size_t b) { return columns[b] == int64_t{1} << b; };
  for (size_t b = 0; b < columns.size(); ++b)
    if (is_own_bit(b)) same |= columns[b];
  if (same) terms.push_back(fmt::format("({} & {})", variable, same));
  for (size_t b = 0; b < columns.size(); ++b)
    if (columns[b] && !is_own_bit(b))
      terms.push_back(fmt::format("({} >> {} & 1) * {}", variable, b, columns[b]));
  if (terms.empty()) return 0;
  return Index::variable(fmt::format("({})", fmt::join(terms, " ^ ")));
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
  auto bits = as_int64(rounded(dtype, value));
  if (bits_of(dtype) < 8) bits &= (1 << bits_of(dtype)) - 1;
  for (int width = bits_of(dtype); width < 8; width *= 2)
    bits |= bits << width;
  return std::to_string(bits);
}

void CudaEmitter::emit(const Fill& node) {
  const int64_t length = array_length(node.dst, registers(node.dst).values());
  assign(name(node.dst), length, literal(tensor(node.dst).dtype, node.value));
}

// Arithmetic is done on float.
std::string CudaEmitter::as_float(TensorId id, const Index& index) {
  const Dtype from = tensor(id).dtype;
  if (from == Dtype::f64 || is_foreign(from)) no_arithmetic(from);
  if (const int per = per_byte(from); per > 1) {
    const std::string byte = fmt::format("{}[{}]", name(id), (index / per).text());
    const std::string place = (index % per).text();
    return fmt::format("wl::unpacked<{}, {}>({}, {})", bits_of(from), is_signed(from), byte, place);
  }
  const std::string element = fmt::format("{}[{}]", name(id), index.text());
  return from == Dtype::f32 ? element : fmt::format("wl::to_float({})", element);
}

std::string CudaEmitter::from_float(Dtype to, const std::string& value) {
  const bool computable = is_float(to) ? to != Dtype::f64 : is_integer(to);
  if (!computable || is_foreign(to)) no_arithmetic(to);
  return to == Dtype::f32 ? value : fmt::format("wl::cast<{}>({})", cuda_type(to), value);
}

void CudaEmitter::no_arithmetic(Dtype dtype) {
  refuse("elements of a type that kernels only move are computed",
         "floats of 16 or 32 bits, or 8 where the target converts them, i8, u8, i32, i64, booleans "
         "or less than a byte",
         std::string(name_of(dtype)), "take another type");
}

// The text of one value. What of it is computed several times gets a name, in lines before it.
class CudaEmitter::ValueText {
 public:
  ValueText(CudaEmitter& emitter, const LeafText& leaf, bool integers)
      : emitter_(emitter), leaf_(leaf), integers_(integers) {}

  std::string of(const Value& value) {
    const size_t last = part_of(value);
    for (size_t p = 0; p <= last; ++p) {
      Part& part = parts_[p];
      if (part.value->kind != Value::Kind::op) continue;
      const char* sign = infix_of(part.value->op);
      part.text = operation(part, sign);
      if (part.users > 1)
        part.text = named(part.text);
      else if (p != last && sign)
        part.text = fmt::format("({})", part.text);
    }
    return parts_[last].text;
  }

 private:
  struct Part {
    const Value* value;
    std::vector<size_t> operands;
    std::string text;
    int users = 0;
  };

  size_t part_of(const Value& one) {
    Part part{&one, {}, {}};
    if (one.kind == Value::Kind::constant)
      part.text = constant(one.constant);
    else if (one.kind != Value::Kind::op)
      part.text = leaf_(one);
    for (const Value& operand : one.operands)
      part.operands.push_back(part_of(operand));
    std::string key = part.text;
    if (key.empty()) key = fmt::format("{} {}", name_of(one.op), fmt::join(part.operands, " "));
    const auto [place, fresh] = known_.try_emplace(key, parts_.size());
    if (!fresh) return place->second;
    for (const size_t operand : part.operands)
      ++parts_[operand].users;
    parts_.push_back(std::move(part));
    return parts_.size() - 1;
  }

  std::string constant(double number) const {
    if (integers_) return whole_literal(saturated_integer(Dtype::i64, number));
    return float_text(number);
  }

  // "+"; or null where the operation is a call.
  const char* infix_of(ValueOp op) const {
    if (integers_) return nullptr;
    switch (op) {
      case ValueOp::add: return "+";
      case ValueOp::sub: return "-";
      case ValueOp::mul: return "*";
      case ValueOp::div: return "/";
      default: return nullptr;
    }
  }

  std::string operation(const Part& part, const char* sign) const {
    std::vector<std::string> operands;
    for (const size_t operand : part.operands)
      operands.push_back(parts_[operand].text);
    if (sign) return fmt::format("{} {} {}", operands[0], sign, operands[1]);
    const char* space = integers_ ? "integers::" : "";
    const auto call = name_of(part.value->op);
    return fmt::format("wl::{}{}({})", space, call, fmt::join(operands, ", "));
  }

  std::string named(const std::string& text) {
    const char* type = integers_ ? "long long" : "float";
    emitter_.out_.line("const {} u{} = {};", type, emitter_.named_, text);
    return fmt::format("u{}", emitter_.named_++);
  }

  CudaEmitter& emitter_;
  const LeafText& leaf_;
  bool integers_;
  std::vector<Part> parts_;  // the different ones, operands first
  std::map<std::string, size_t> known_;
};

std::string CudaEmitter::value_text(const Value& value, const LeafText& leaf, bool integers) {
  return ValueText(*this, leaf, integers).of(value);
}

// make(array of floats), which then go into the tensor; or make(the tensor's own) where that
// serves.
void CudaEmitter::as_floats(TensorId id, bool own, const char* array, const MakeFloats& make) {
  if (own) return make(name(id));
  const Dtype dtype = tensor(id).dtype;
  const int64_t values = registers(id).values();
  const int per = per_byte(dtype);
  const auto scope = out_.block("{{");
  out_.line("WL_REG(float, {}, {});", array, values);
  make(array);
  if (per == 1) return assign(name(id), values, from_float(dtype, fmt::format("{}[i]", array)));
  std::vector<std::string> parts;
  for (int place = 0; place < per; ++place) {
    const Index element = Index::variable("i") * per + place;
    const std::string value = fmt::format("{}[{}]", array, element.text());
    parts.push_back(
        fmt::format("wl::packed<{}, {}>({}, {})", bits_of(dtype), is_signed(dtype), value, place));
  }
  assign(name(id), values / per, fmt::format("{}", fmt::join(parts, " | ")));
}

namespace {
// Which element of an operand a turn of the loops over values of shape `full` reads: the operand
// keeps the modes that step along a dimension it has; the others repeat its value.
Index kept_by_operand(const std::vector<int64_t>& shape, const std::vector<int64_t>& full,
                      const std::vector<ValueLoop>& loops) {
  Digits kept;
  for (const ValueLoop& loop : loops) {
    bool keeps = shape == full;
    for (size_t d = 0; d < full.size() && !keeps; ++d)
      keeps = loop.step[d] != 0 && shape[d] > 1;
    if (keeps) kept.add(loop.variable, loop.extent);
  }
  return kept.number;
}

// An integer value as an element of the type.
std::string whole_held(Dtype dtype, const std::string& value) {
  if (dtype == Dtype::boolean) return fmt::format("({}) != 0 ? 1 : 0", value);
  return fmt::format("static_cast<{}>({})", cuda_type(dtype), value);
}
}  // namespace

void CudaEmitter::emit(const Map& node) {
  const TvLayout& layout = registers(node.dst);
  const Tensor& result = tensor(node.dst);
  const auto& full = result.shape;
  if (node.value.kind == Value::Kind::tensor) {
    const Tensor& same = tensor(node.value.tensor);
    if (same.dtype == result.dtype && same.shape == full)
      return assign(result.name, array_length(node.dst, layout.values()), same.name + "[i]");
  }
  bool broadcasts = has_coordinates(node.value);
  for (const TensorId id : tensors_of(node.value))
    broadcasts |= tensor(id).shape != full;

  std::vector<ValueLoop> loops;
  if (broadcasts)
    loops = value_loops(layout, 1);
  else if (layout.values() > 1)
    loops = {{Index::variable("i"), layout.values(), {}, 1}};
  const Dtype dtype = result.dtype;
  const auto leaf = [&](const Value& one) {
    if (one.kind == Value::Kind::coordinate) {
      const char* cast = node.integers ? "static_cast<long long>" : "wl::to_float";
      const auto axis = as_size(one.axis);
      const Index coordinate = one.shift + within(layout, axis, loops);
      return fmt::format("{}({})", cast, coordinate.text());
    }
    const Index element = kept_by_operand(tensor(one.tensor).shape, full, loops);
    if (!node.integers) return as_float(one.tensor, element);
    return fmt::format("static_cast<long long>({}[{}])", name(one.tensor), element.text());
  };
  if (node.integers) {
    const auto block = open_loops(loops);
    const std::string value = value_text(node.value, leaf, true);
    const std::string held = whole_held(dtype, value);
    return out_.line("{}[{}] = {};", result.name, value_index(loops).text(), held);
  }
  const bool own = per_byte(dtype) == 1;
  as_floats(node.dst, own, "wide", [&](const std::string& dst) {
    const auto block = open_loops(loops);
    const std::string value = value_text(node.value, leaf);
    const std::string held = dst == "wide" ? value : from_float(dtype, value);
    out_.line("{}[{}] = {};", dst, value_index(loops).text(), held);
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
    const VectorMove store{node.src, all, from, vector, false};
    const VectorMove load{node.dst, all, to, choice.vector, true};
    synchronize(SyncPart::inside, 0);
    move_shared(store, choice.scratch, base);
    synchronize(SyncPart::inside, 1);
    return move_shared(load, choice.scratch, base);
  }
  const auto plan = synth::warp_shuffle_plan(from, to, bits_of(dtype));
  const Index i = counter("i", plan->units);
  const auto picks = plan->picks();
  const int64_t unit = array_length(node.dst, plan->unit);
  const int64_t images = int64_t{1} << picks.size();
  const Index pick = xor_of("i", plan->pick_of_unit);
  const Index image = xor_of("j", picks);
  const std::string dst = name(node.dst);
  const std::string src = name(node.src);
  if (plan->shuffles() == 0) {
    const auto units = unrolled("i", plan->units);
    const auto elements = unrolled("e", unit);
    const Index e = Index::variable("e");
    const Index to_element = i * unit + e;
    const Index from_element = pick * unit + e;
    return out_.line("{}[{}] = {}[{}];", dst, to_element.text(), src, from_element.text());
  }
  const auto scope = out_.block("{{");
  out_.line("const int from = {};", xor_of("t", plan->lane_of_thread).text());
  if (images > 1) out_.line("const int pick = {};", xor_of("t", plan->pick_of_thread).text());
  const auto units = unrolled("i", plan->units);
  const auto each_image = over("j", images);
  Index source = pick;
  std::string taken_if;
  if (images > 1) {
    source = Index::variable(fmt::format("({} ^ {})", pick.text(), image.text()));
    taken_if = fmt::format(", pick == {}", image.text());
  }
  const std::string to_unit = fmt::format("wl::at({}, {})", dst, (i * unit).text());
  const std::string from_unit = fmt::format("wl::at({}, {})", src, (source * unit).text());
  const int64_t bytes = bytes_of(dtype, plan->unit);
  const Index lane = xor_of("i", plan->lane_of_unit);
  out_.line("wl::shfl<{}>({}, {}, from ^ {}{});", bytes, to_unit, from_unit, lane.text(), taken_if);
}

// Both arrays hold bytes, in the same order.
void CudaEmitter::emit(const Bitcast& node) {
  const int64_t length = array_length(node.dst, registers(node.dst).values());
  assign(name(node.dst), length, name(node.src) + "[i]");
}

void CudaEmitter::emit(const Mma& node) {
  const Instruction& row = *solution_.choices.at(at_->id).instruction;
  if (row.method == Method::wgmma) {
    mma_warpgroup(node, row);
    return synchronize(SyncPart::after);
  }
  const int a_k = node.transpose_a ? 0 : 1;
  const int64_t k_atoms = matrix_extent(node.a.extent)[a_k] / row.k;
  const int64_t a_values = registers(node.a.tensor).values() / k_atoms;
  const int64_t b_values = registers(node.b.tensor).values() / k_atoms;
  const std::string acc = name(node.acc);
  const std::string a = name(node.a.tensor);
  const std::string b = name(node.b.tensor);
  if (row.method == Method::simt) {
    // acc values run n fastest in blocks of the operand's own order: acc[m][n] += a[m] · b[n]
    const auto block = unrolled("kk", k_atoms);
    out_.line("WL_UNROLL for (int m = 0; m < {}; ++m)", a_values);
    return out_.line(
        "  WL_UNROLL for (int n = 0; n < {0}; ++n) {1}[m * {0} + n] = wl::fma({2}[kk * {3} + m], "
        "{4}[kk * "
        "{0} + n], {1}[m * {0} + n]);",
        b_values, acc, a, a_values, b);
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
  const Index a_at = m * a_atom + kk * a_values;
  const Index b_at = n * b_atom + kk * b_values;
  const std::string c_atom_at = fmt::format("wl::at({}, (m * {} + n) * {})", acc, n_atoms, c_atom);
  const std::string a_atom_at = fmt::format("wl::at({}, {})", a, a_at.text());
  const std::string b_atom_at = fmt::format("wl::at({}, {})", b, b_at.text());
  out_.line("    {}({}, {}, {});", row.call, c_atom_at, a_atom_at, b_atom_at);
}

// The descriptor of a warpgroup's operand at the start of its tile, and its distance to the next k
// atom in bytes.
std::string CudaEmitter::descriptor(const Tile& tile, int k_dim, int groups, Index& k_step, int k) {
  const auto& layout = solution_.shared.at(tile.tensor);
  const int bytes = layout.element_bits / 8;
  const auto kd = as_size(k_dim);
  const auto od = 1 - kd;
  const auto& k_modes = layout.dims[kd];
  const auto& other_modes = layout.dims[od];
  const bool k_major = k_modes[0].stride == 1;
  const int64_t atom_bytes = (k_major ? k_modes : other_modes)[0].extent * bytes;
  // Within an atom, groups of 8 rows follow each other; between atoms the distance is an atom's
  // whole size.
  const int64_t rows_apart = 8 * atom_bytes;
  const int64_t atoms_apart = tensor(tile.tensor).shape[k_major ? od : kd] * atom_bytes;
  const Index group = groups > 1 ? digit(128, groups) * (tile.extent[od] / groups) : 0;
  const Index k_start = offset_in(tile.offset[kd], k_modes, bounds_);
  const Index start = offset_in(tile.offset[od] + group, other_modes, bounds_) + k_start;
  const Index kk = counter("kk", tile.extent[kd] / k);
  k_step = scaled(offset_in(kk * k, k_modes, bounds_), bytes);
  const Index address = shared_base(tile.tensor) + scaled(start, bytes);
  return fmt::format("wl::smem_descriptor({}, {}, {}, {})", address.text(),
                     k_major ? 16 : atoms_apart, rows_apart, swizzle_mode(atom_bytes));
}

void CudaEmitter::mma_warpgroup(const Mma& node, const Instruction& row) {
  const Tensor& acc = tensor(node.acc);
  const int groups = role_threads_ / 128;
  const int a_k = node.transpose_a ? 0 : 1;
  const int b_k = node.transpose_b ? 1 : 0;
  const auto mn_major = [&](const Tile& tile, int k_dim) {
    const auto& k_modes = solution_.shared.at(tile.tensor).dims[k_dim];
    return k_modes[0].stride != 1;
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
  std::string adds = "true";
  if (anew != adds_where.end()) adds = anew->second + (k_atoms > 1 ? "kk > 0" : "false");
  const auto scope = out_.block("{{");
  if (row.a_shared) {
    const std::string a_desc = descriptor(node.a, a_k, groups, a_step, row.k);
    out_.line("const unsigned long long a_desc = {};", a_desc);
  }
  out_.line("const unsigned long long b_desc = {};", descriptor(node.b, b_k, 1, b_step, row.k));
  const auto k_loop = unrolled("kk", k_atoms);
  const auto m_loop = over("m", m_atoms);
  const Index m = counter("m", m_atoms);
  const Index to_element = m * (n / 2);
  const std::string to = fmt::format("wl::at({}, {})", acc.name, to_element.text());
  const std::string_view operand = cuda_type(row.operand);
  const bool b_mn_major = mn_major(node.b, b_k);
  const std::string b_at = fmt::format("b_desc + ({}) / 16", b_step.text());
  if (row.a_shared) {
    // An atom of 64 rows further down, when a warpgroup has more than one.
    const auto& layout = solution_.shared.at(node.a.tensor);
    const Index down = offset_in(m * row.m, layout.dims[1 - a_k], bounds_);
    const Index a_bytes = a_step + scaled(down, layout.element_bits / 8);
    const std::string a_at = fmt::format("a_desc + ({}) / 16", a_bytes.text());
    out_.line("{}<{}, {}, {}, {}>({}, {}, {}, {});", row.call, n, operand, mn_major(node.a, a_k),
              b_mn_major, to, a_at, b_at, adds);
  } else {
    const int64_t atom = row.a.values();
    const Index element = kk * (atom * m_atoms) + m * atom;
    const std::string a_at = fmt::format("wl::at({}, {})", name(node.a.tensor), element.text());
    out_.line("{}<{}, {}, {}>({}, {}, {}, {});", row.call, n, operand, b_mn_major, to, a_at, b_at,
              adds);
  }
}
}  // namespace warploom::codegen
