#include "tile/program.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "tile/index.h"

namespace warploom::tile {
namespace {
// f(statement) for each statement of a body, then for all inside it, in order.
void for_statements(Body& body, const auto& f) {
  for (Statement& statement : body) {
    f(statement);
    std::visit(
        [&](auto& node) {
          if constexpr (requires { node.body; }) for_statements(node.body, f);
          if constexpr (requires { node.roles; })
            for (Role& role : node.roles)
              for_statements(role.body, f);
        },
        statement.node);
  }
}
}  // namespace

void number_statements(Program& program) {
  StatementId next = 0;
  for_statements(program.body,
                 [&](const Statement& statement) { next = std::max(next, statement.id + 1); });
  for_statements(program.body, [&](Statement& statement) {
    if (statement.id == kNoStatement) statement.id = next++;
  });
}

const Statement* statement_with(const Program& program, StatementId id) {
  const Statement* found = nullptr;
  for (const Statement& statement : program.body)
    for_statements(statement, [&](const Statement& one) {
      if (one.id == id) found = &one;
    });
  return found;
}

void own_stages(Program& program) {
  for (size_t id = 0; id < program.pipelines.size(); ++id)
    for (size_t t = 0; t < program.tensors.size(); ++t)
      for (const TensorId stage : program.pipelines[id].tensors)
        if (stage == static_cast<TensorId>(t) || stage == program.tensors[t].as_strided)
          program.tensors[t].pipeline = static_cast<PipelineId>(id);
}

Tile whole(const Program& program, TensorId id) {
  const auto& shape = program.tensor(id).shape;
  const std::vector<Index> origin(shape.size(), Index(0));
  return Tile{id, origin, shape};
}

std::string place_of(const Program& program) {
  return fmt::format("program '{}'", program.name);
}

std::string place_of(const Statement& statement) {
  const Location& at = statement.location;
  if (at.file.empty()) return {};
  return at.file + ":" + std::to_string(at.line);
}

std::vector<TensorId> tensors_of(const Value& value) {
  if (value.kind == Value::Kind::tensor) return {value.tensor};
  std::vector<TensorId> out;
  for (const Value& operand : value.operands)
    std::ranges::copy(tensors_of(operand), std::back_inserter(out));
  return out;
}

std::vector<TensorUse> uses_of(const Statement& statement) {
  std::vector<TensorUse> out;
  const auto add = [&](const auto& member, bool read, bool written) {
    if constexpr (std::is_same_v<decltype(member), const Tile&>) {
      out.push_back({member.tensor, read, written, &member});
      if (member.lookup >= 0) out.push_back({member.lookup, true, false, nullptr, &member});
    } else {
      out.push_back({member, read, written});
    }
  };
  statement.visit([&](const auto& node) {
    if constexpr (requires { node.src; }) add(node.src, true, false);
    if constexpr (requires { node.dst; }) add(node.dst, Of<decltype(node), ClusterReduce>, true);
    if constexpr (requires { node.flag; }) add(node.flag, true, Of<decltype(node), Signal>);
    if constexpr (requires { node.acc; }) {
      add(node.acc, true, true);
      add(node.a, true, false);
      add(node.b, true, false);
    }
    if constexpr (requires { node.value.operands; })
      for (const TensorId id : tensors_of(node.value))
        add(id, true, false);
  });
  return out;
}

const Roles* roles_of(const Program& program) {
  const Roles* found = nullptr;
  for (const Statement& statement : program.body)
    if (const auto* roles = statement.as<Roles>()) found = roles;
  return found;
}

void count_warps(Program& program) {
  const Roles* roles = roles_of(program);
  if (roles) program.warps = 0;
  for (size_t i = 0; roles && i < roles->roles.size(); ++i)
    program.warps = std::min(program.warps + roles->roles[i].warps,
                             1 << 20);  // text may hold any number of them
}

std::vector<size_t> wide_dims(const std::vector<int64_t>& extent) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < extent.size(); ++d)
    if (extent[d] > 1) dims.push_back(d);
  return dims;
}

std::optional<std::vector<Meeting>> meetings(const std::vector<int64_t>& a,
                                             const std::vector<int64_t>& b) {
  std::vector<Meeting> found;
  const auto in_a = wide_dims(a);
  const auto in_b = wide_dims(b);
  size_t i = 0;
  size_t j = 0;
  while (i < in_a.size() || j < in_b.size()) {
    Meeting& here = found.emplace_back();
    int64_t left = 1;
    int64_t right = 1;
    while (left != right || here.a.empty()) {
      const bool from_a = left < right || here.a.empty();
      if (from_a ? i == in_a.size() : j == in_b.size()) return std::nullopt;
      if (from_a)
        left *= a[here.a.emplace_back(in_a[i++])];
      else
        right *= b[here.b.emplace_back(in_b[j++])];
    }
    if (here.a.size() > 1 && here.b.size() > 1) return std::nullopt;
  }
  return found;
}

std::vector<int64_t> matrix_extent(std::vector<int64_t> extent) {
  for (auto one = extent.begin();
       extent.size() > 2 && (one = std::ranges::find(extent, 1)) != extent.end();)
    extent.erase(one);
  return extent;
}

std::vector<int64_t> grouped_extent(std::vector<int64_t> extent) {
  extent = matrix_extent(std::move(extent));
  while (extent.size() > 2) {
    extent[1] *= extent[0];
    extent.erase(extent.begin());
  }
  return extent;
}

std::vector<int64_t> windows_extent(const std::vector<int64_t>& extent, int64_t rows) {
  size_t first = 0;  // of k
  int64_t made = 1;
  while (first < extent.size() && made < rows)
    made *= extent[first++];
  int64_t depth = 1;
  for (size_t d = first; d < extent.size(); ++d)
    depth *= extent[d];
  if (made != rows) return {made * depth};
  return {rows, depth};
}

int64_t element_count(const std::vector<int64_t>& extent) {
  int64_t count = 1;
  for (const int64_t e : extent) {
    if (e < 1) return 0;
    if (__builtin_mul_overflow(count, e, &count)) return -1;
  }
  return count;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  uint64_t stride = 1;  // unsigned: a nonsensical shape may wrap, and verify() refuses it
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = as_int64(stride);
    stride *= as_uint64(shape[i]);
  }
  return strides;
}

int64_t span_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    last += (shape[i] - 1) * strides[i];
  return last + 1;
}

int64_t cluster_size(const Program& program) {
  return element_count(program.cluster);
}

std::string text_of(const std::vector<int64_t>& extent) {
  return fmt::format("[{}]", fmt::join(extent, ", "));
}

bool in_integers(const Program& program, const Statement& statement) {
  const auto dtype = [&](TensorId id) { return program.tensor(id).dtype; };
  if (const auto* map = statement.as<Map>()) return map->integers;
  if (const auto* fill = statement.as<Fill>()) return is_wide_integer(dtype(fill->dst));
  const auto both_wide = [&](const auto& node) {
    return is_wide_integer(dtype(node.src)) && is_wide_integer(dtype(node.dst));
  };
  if (const auto* reduce = statement.as<Reduce>()) return both_wide(*reduce);
  if (const auto* scan = statement.as<Scan>()) return both_wide(*scan);
  const auto* copy = statement.as<Copy>();
  if (copy == nullptr) return false;
  const Dtype from = dtype(copy->src.tensor);
  const Dtype to = dtype(copy->dst.tensor);
  return is_integer(from) && is_integer(to) && (is_wide_integer(from) || is_wide_integer(to));
}
}  // namespace warploom::tile
