// The rules of statements that move and compute: scopes, shapes and types that agree.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "tile/index.h"
#include "tile/program.h"
#include "tile/statement_verifier.h"
#include "tile/syntax.h"

namespace warploom::tile {
namespace {
// The accumulator's type for operands of a type; nothing where such operands cannot be multiplied.
std::optional<Dtype> accumulator_of(Dtype operand) {
  if (operand == Dtype::f64) return Dtype::f64;
  if (operand == Dtype::i8 || operand == Dtype::u8 || operand == Dtype::i16) return Dtype::i32;
  return is_float(operand) ? std::optional(Dtype::f32) : std::nullopt;
}
}  // namespace

Status StatementVerifier::check(const Copy& copy) const {
  const Tensor& src = program_.tensor(copy.src.tensor);
  const Tensor& dst = program_.tensor(copy.dst.tensor);
  if (src.scope == Scope::global && dst.scope == Scope::global)
    return refuse("a copy goes from global to global", "shared or register on one side");
  if (src.prepacked) WARPLOOM_CHECK(check_prepacked(copy.src, src, dst));
  if (dst.scope == Scope::global && !dst.writable)
    return refuse(fmt::format("'{}' is written and is no output", dst.name));
  const auto met = meetings(copy.src.extent, copy.dst.extent);
  const auto together = [](const Meeting& m) { return m.a.size() + m.b.size() > 2; };
  const bool memory =
      src.scope == Scope::global || dst.scope == Scope::global || src.as_strided >= 0;
  if (dst.as_strided >= 0 || (src.as_strided >= 0 && dst.scope != Scope::reg))
    return refuse("windows are read into registers alone",
                  "a copy from windows to a register tensor",
                  fmt::format("{} -> {}", src.name, dst.name));
  if (!met || (!memory && std::any_of(met->begin(), met->end(), together)))
    return refuse("the two tiles of a copy differ in shape", text_of(copy.src.extent),
                  text_of(copy.dst.extent));
  if (copy.combine) WARPLOOM_CHECK(combined(dst, *copy.combine));
  if (copy.peer) WARPLOOM_CHECK(from_peer(src, dst, *copy.peer));
  return copy.multicast.empty() ? ok() : shared_along(copy);
}

// Of a packed tensor the tiles of one grid are read, into registers.
Status StatementVerifier::check_prepacked(const Tile& tile, const Tensor& src,
                                          const Tensor& dst) const {
  if (dst.scope != Scope::reg || tile.lookup >= 0 || !tile.step.empty())
    return refuse(fmt::format("'{}' is packed, and not read tile by tile into registers", src.name),
                  "a register tensor, and a tile that is neither gathered nor takes steps",
                  dst.name);
  bool one_grid = element_count(tile.extent) % per_byte(src.dtype) == 0;
  for (size_t d = 0; d < tile.extent.size(); ++d) {
    const int64_t extent = tile.extent[d];
    one_grid &= src.shape[d] % extent == 0 && multiple(tile.offset[d], extent);
  }
  for (const Statement& statement : program_.body)
    for_statements(statement, [&](const Statement& one) {
      for (const TensorUse& use : uses_of(one))
        one_grid &= use.tensor != tile.tensor || !use.tile || use.tile->extent == tile.extent;
    });
  if (one_grid) return ok();
  const std::string message = fmt::format(
      "'{}' is packed, and this may be no tile of the grid that it is packed in", src.name);
  const std::string expected =
      "one shape for all its tiles, of whole bytes, that divides the tensor's; offsets that are "
      "multiples of it";
  const std::string found = fmt::format("{} of {}", text_of(tile.extent), text_of(src.shape));
  return refuse(message, expected, found);
}

Status StatementVerifier::combined(const Tensor& dst, ReduceOp op) const {
  const bool half = dst.dtype == Dtype::f16 || dst.dtype == Dtype::bf16;
  const bool wide = dst.dtype == Dtype::f32 || dst.dtype == Dtype::i32;
  const bool typed = wide || (half && op == ReduceOp::sum);
  if (dst.scope == Scope::global && typed) return ok();
  return refuse(fmt::format("a copy cannot combine with '{}'", dst.name),
                "a global tensor of f32 or i32; for sums also of f16 or bf16", text_of(dst.dtype));
}

Status StatementVerifier::from_peer(const Tensor& src, const Tensor& dst, const Index& rank) const {
  WARPLOOM_CHECK(check(rank));
  if (src.scope == Scope::shared && src.pipeline < 0 && dst.scope == Scope::reg &&
      cluster_size(program_) > 1)
    return ok();
  return refuse(
      fmt::format("'{}' cannot be copied from a peer to '{}'", src.name, dst.name),
      "a shared tensor of no pipeline, a register tensor, a cluster of more than one block");
}

// Every block of the cluster along the copy's dimensions produces the same tiles in the same
// order.
Status StatementVerifier::shared_along(const Copy& copy) const {
  const std::string& along = copy.multicast;
  if (along.find_first_not_of("xyz") != along.npos || !std::ranges::is_sorted(along) ||
      std::ranges::adjacent_find(along) != along.end())
    return refuse(fmt::format("'{}' names no dimensions of a cluster", along),
                  "x, y, z, xy, xz, yz or xyz", along);
  if (producing_.empty()) return refuse("a multicast stands outside a produce");
  if (divergent_)
    return refuse("not every block of a cluster may reach this multicast",
                  "loops and conditions around it that all blocks of the cluster decide alike");
  for (const Index& offset : copy.src.offset)
    if (differs(offset, along)) {
      const std::string expected = fmt::format(
          "an offset that does not depend on the block's place along {}, but on block_x / {} "
          "and its like",
          along, program_.cluster[0]);
      return refuse("the blocks that share a multicast may read different tiles", expected,
                    offset.text());
    }
  return ok();
}

Status StatementVerifier::check_flag(const Tile& flag, bool written) const {
  const Tensor& tensor = program_.tensor(flag.tensor);
  if (tensor.scope == Scope::global && tensor.dtype == Dtype::i32 &&
      element_count(flag.extent) == 1 && flag.lookup < 0 && (tensor.writable || !written))
    return ok();
  const std::string message = fmt::format("'{}' holds no such flag", tensor.name);
  const std::string found = fmt::format("{} of {}", text_of(flag.extent), text_of(tensor.dtype));
  return refuse(message, "one element of a global tensor of i32; to signal, of an output", found);
}

Status StatementVerifier::check(const Map& map) const {
  WARPLOOM_CHECK(check(map.value, program_.tensor(map.dst)));
  if (!map.integers) return ok();
  const Tensor& dst = program_.tensor(map.dst);
  if (!is_integer(dst.dtype))
    return refuse(fmt::format("'{}' does not take whole numbers", dst.name), "a tensor of integers",
                  text_of(dst.dtype));
  return check_whole(map.value);
}

Status StatementVerifier::check_whole(const Value& value) const {
  if (value.kind == Value::Kind::constant && value.constant != std::trunc(value.constant))
    return refuse("a number among integers is none", "a whole number",
                  fmt::format("{}", value.constant));
  if (value.kind == Value::Kind::tensor)
    if (const Tensor& tensor = program_.tensor(value.tensor); !is_integer(tensor.dtype))
      return refuse(fmt::format("'{}' among integers holds none", tensor.name),
                    "a tensor of integers", text_of(tensor.dtype));
  if (value.kind != Value::Kind::op) return ok();
  if (!has_integers(value.op))
    return refuse(fmt::format("'{}' has no meaning on integers", name_of(value.op)),
                  "sums, products, quotients, choices and comparisons");
  for (const Value& operand : value.operands)
    WARPLOOM_CHECK(check_whole(operand));
  return ok();
}

Status StatementVerifier::check(const Value& value, const Tensor& dst) const {
  if (value.kind == Value::Kind::constant) return ok();
  if (value.kind == Value::Kind::coordinate) {
    if (value.axis >= 0 && as_size(value.axis) < dst.shape.size()) return check(value.shift);
    return refuse(fmt::format("'{}' has no axis {}", dst.name, value.axis));
  }
  if (value.kind == Value::Kind::op) {
    if (value.operands.size() != as_size(arity_of(value.op))) {
      const std::string message =
          fmt::format("'{}' has the wrong number of operands", name_of(value.op));
      const std::string found = std::to_string(value.operands.size());
      return refuse(message, std::to_string(arity_of(value.op)), found);
    }
    for (const Value& operand : value.operands)
      WARPLOOM_CHECK(check(operand, dst));
    return ok();
  }
  const Tensor& tensor = program_.tensor(value.tensor);
  if (std::equal(tensor.shape.begin(), tensor.shape.end(), dst.shape.begin(), dst.shape.end(),
                 [](int64_t own, int64_t wanted) { return own == wanted || own == 1; }))
    return ok();
  const std::string message = fmt::format("'{}' does not broadcast to '{}'", tensor.name, dst.name);
  const std::string expected = "the same rank, each extent equal or 1: " + text_of(dst.shape);
  return refuse(message, expected, text_of(tensor.shape));
}

Status StatementVerifier::check(const Mma& mma) const {
  for (const Tile* operand : {&mma.a, &mma.b})
    if (operand->lookup >= 0 || program_.tensor(operand->tensor).prepacked)
      return refuse(
          fmt::format("operand '{}' of an mma is gathered or packed", name(operand->tensor)),
          "a tile whose elements lie in rows");
  if (mma.acc == mma.a.tensor || mma.acc == mma.b.tensor)
    return refuse("an mma's accumulator is one of its operands");
  const Dtype a_type = program_.tensor(mma.a.tensor).dtype;
  const Dtype b_type = program_.tensor(mma.b.tensor).dtype;
  const Dtype acc_type = program_.tensor(mma.acc).dtype;
  if (a_type != b_type)
    return refuse("the operands of an mma differ in type", text_of(a_type), text_of(b_type));
  if (accumulator_of(a_type) != acc_type) {
    const std::string message =
        fmt::format("an mma cannot accumulate {} in {}", name_of(a_type), name_of(acc_type));
    return refuse(message, "f32 for floats, f64 for f64, i32 for i8, u8 and i16",
                  text_of(acc_type));
  }
  const auto acc = matrix_extent(program_.tensor(mma.acc).shape);
  const Tensor& first = program_.tensor(mma.a.tensor);
  const Tensor& second = program_.tensor(mma.b.tensor);
  if (second.as_strided >= 0 || (first.as_strided >= 0 && mma.transpose_a))
    return refuse(fmt::format("mma works on windows '{}' as its second operand, or transposed",
                              second.as_strided >= 0 ? second.name : first.name),
                  "windows as the first operand, as they are");
  auto a = matrix_extent(mma.a.extent);
  if (first.as_strided >= 0 && acc.size() == 2) a = windows_extent(mma.a.extent, acc[0]);
  const bool may_group = second.scope == Scope::global && !mma.transpose_b;
  auto b = may_group ? grouped_extent(mma.b.extent) : matrix_extent(mma.b.extent);
  if (mma.transpose_a) std::ranges::reverse(a);
  if (mma.transpose_b) std::ranges::reverse(b);
  const bool matrices = a.size() == 2 && b.size() == 2 && acc.size() == 2;
  if (matrices && a[0] == acc[0] && b[1] == acc[1] && a[1] == b[0]) return ok();
  const std::string found = fmt::format("acc {}, a {}, b {}", text_of(acc), text_of(a), text_of(b));
  return refuse("the shapes of an mma do not fit each other", "acc [M, N], a [M, K], b [K, N]",
                found);
}

Status StatementVerifier::check(const ConvertLayout& node) const {
  const Tensor& src = program_.tensor(node.src);
  const Tensor& dst = program_.tensor(node.dst);
  auto shape = src.shape;
  if (node.transpose) std::ranges::reverse(shape);
  const bool fits = src.dtype == dst.dtype && shape == dst.shape && node.src != node.dst;
  if (node.transpose && shape.size() != 2) return unlike("rearrange", src, dst, "two dimensions");
  return fits ? ok()
              : unlike("rearrange", src, dst, "one type and shape, or two dimensions turned round");
}

Status StatementVerifier::check(const Bitcast& node) const {
  const Tensor& src = program_.tensor(node.src);
  const Tensor& dst = program_.tensor(node.dst);
  auto bits = src.shape;
  auto wanted = dst.shape;
  bits.back() *= bits_of(src.dtype);
  wanted.back() *= bits_of(dst.dtype);
  const auto small = [](Dtype d) { return !is_float(d) && d != Dtype::boolean && bits_of(d) <= 8; };
  const bool fits = bits == wanted && small(src.dtype) && small(dst.dtype);
  return fits ? ok()
              : unlike("reinterpret", src, dst,
                       "integers of at most a byte, last extents of equal bits");
}

Status StatementVerifier::unlike(std::string_view word, const Tensor& src, const Tensor& dst,
                                 const std::string& expected) const {
  const auto typed = [](const Tensor& tensor) {
    return fmt::format("{} {}", name_of(tensor.dtype), text_of(tensor.shape));
  };
  const std::string message = fmt::format("the two sides of a {} do not fit each other", word);
  return refuse(message, expected, fmt::format("{}, {}", typed(src), typed(dst)));
}
}  // namespace warploom::tile
