#include "base/integers.h"
#include "tile/syntax.h"
#include "tile/verify.h"

namespace warploom::tile {
namespace {
bool contains(const std::vector<PipelineId>& list, PipelineId id) {
  return std::ranges::count(list, id) > 0;
}

using tile::text_of;

std::string text_of(Dtype type) {
  return std::string(warploom::name_of(type));
}

// The accumulator's type for operands of a type; nothing where such operands cannot be multiplied.
std::optional<Dtype> accumulator_of(Dtype operand) {
  if (operand == Dtype::f64) return Dtype::f64;
  if (operand == Dtype::i8 || operand == Dtype::u8) return Dtype::i32;
  return is_float(operand) ? std::optional(Dtype::f32) : std::nullopt;
}

// The place of the statement under check: what encloses it. A copy goes into each body.
class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  Status body(const Body& statements, bool top) {
    for (const Statement& statement : statements) {
      location_ = &statement.location;
      if (!top && statement.is<Roles>())
        return refuse("roles stand inside another statement", "roles at the top of the program",
                      "nested roles");
      for (const TensorUse& used : uses_of(statement))
        WARPLOOM_CHECK(check(used, kStatementWords[statement.node.index()]));
      WARPLOOM_CHECK(statement.visit([&](const auto& node) { return check(node); }));
      if (!producing_.empty()) WARPLOOM_CHECK(produced(statement));
      WARPLOOM_CHECK(statement.visit([&](const auto& node) { return inside(node); }));
    }
    return ok();
  }

 private:
  Status refuse(std::string message, std::string expected = {}, std::string found = {}) const {
    return invalid(program_, location_, std::move(message), std::move(expected), std::move(found));
  }

  const std::string& name(TensorId id) const { return program_.tensor(id).name; }

  const std::string& pipeline(PipelineId id) const { return program_.pipeline(id).name; }

  // What the body of a statement finds around it.
  Status inside(const auto& node) const {
    Verifier inner = *this;
    if constexpr (Of<decltype(node), For>) {
      inner.loops_[node.variable] = &node;
      inner.divergent_ |= differs(node.begin) || differs(node.end) || differs(node.step);
    }
    if constexpr (Of<decltype(node), If>)
      inner.divergent_ |= differs(node.left) || differs(node.right);
    if constexpr (Of<decltype(node), Roles>) {
      inner.in_role_ = true;
      inner.meeting_roles_ = std::ranges::count_if(node.roles, [](const Role& role) {
        bool meets = false;
        for (const Statement& statement : role.body)
          for_statements(statement,
                         [&](const Statement& one) { meets |= one.is<ClusterReduce>(); });
        return meets;
      });
    }
    if constexpr (Of<decltype(node), Produce>) inner.producing_.push_back(node.pipeline);
    if constexpr (Of<decltype(node), Consume>) inner.consuming_.push_back(node.pipeline);
    if constexpr (requires { node.body; }) return inner.body(node.body, false);
    if constexpr (requires { node.roles; })
      for (const Role& role : node.roles) WARPLOOM_CHECK(inner.body(role.body, false));
    return ok();
  }

  // Blocks of one cluster that differ in these dimensions alone may disagree on the index.
  bool differs(const Index& index, std::string_view along = "xyz") const {
    if (index.op() == IndexOp::constant) return false;
    for (int d = 0; d < 3; ++d) {
      if (index.same(block(d)))
        return program_.cluster[d] > 1 && along.find("xyz"[d]) != along.npos;
      // The cluster's own number: block_x / 4 in clusters of 4 along x.
      if (index.op() == IndexOp::div && index.left().same(block(d)) && index.right().constant() &&
          *index.right().constant() % program_.cluster[d] == 0)
        return false;
    }
    if (index.op() == IndexOp::variable)
      return index.same(cluster_rank()) && cluster_size(program_) > 1;
    return differs(index.left(), along) || differs(index.right(), along);
  }

  // Inside a Produce: nothing but copies from global memory into the slot, perhaps in loops and
  // branches.
  Status produced(const Statement& statement) const {
    if (statement.is<For, If>()) return ok();
    const Copy* copy = statement.as<Copy>();
    if (!copy || program_.tensor(copy->src.tensor).scope != Scope::global ||
        program_.tensor(copy->dst.tensor).pipeline != producing_.back())
      return refuse(fmt::format("a produce of '{}' holds something other than copies into it",
                                pipeline(producing_.back())),
                    "copies from global tensors to tensors of the pipeline, in for and if at most");
    return ok();
  }

  // A tensor of a pipeline has a meaning only inside a Produce or Consume of that pipeline;
  // consumers do not write it.
  Status use(TensorId id, bool written) const {
    if (id < 0 || static_cast<size_t>(id) >= program_.tensors.size())
      return refuse(fmt::format("no tensor has the number {}", id));
    const PipelineId ring = program_.tensor(id).pipeline;
    if (ring < 0 || contains(producing_, ring)) return ok();
    if (!contains(consuming_, ring))
      return refuse(fmt::format("'{}' is used outside produce and consume of its pipeline '{}'",
                                name(id), pipeline(ring)));
    if (written)
      return refuse(fmt::format("'{}' is written while its pipeline is consumed", name(id)),
                    "slots are written by produce only");
    return ok();
  }

  // A tile lies within its tensor; what a statement names without a tile is all of a register
  // tensor.
  Status check(const TensorUse& used, std::string_view statement) const {
    WARPLOOM_CHECK(use(used.tensor, used.written));
    const Tensor& tensor = program_.tensor(used.tensor);
    if ((tensor.windows_of >= 0 || tensor.packed) && (statement != "copy" || used.gathers))
      return refuse(fmt::format("{} {} '{}'", statement,
                                tensor.packed ? "reads packed" : "works on windows", tensor.name),
                    "a copy to a register tensor before it", std::string(statement));
    if (used.tile) return check(*used.tile);
    if (used.gathers) return check_lookup(*used.gathers);
    if (program_.tensor(used.tensor).scope == Scope::reg) return ok();
    return refuse(
        fmt::format("{} works on register tensors and '{}' is none", statement, name(used.tensor)),
        "a register tensor", name(used.tensor));
  }

  Status check(const Index& index) const {
    if (index.op() == IndexOp::constant) return ok();
    if (index.op() == IndexOp::variable) {
      if (is_grid_variable(index.name()) || loops_.count(index.name())) return ok();
      return refuse(fmt::format("'{}' is no variable here", index.name()),
                    "a grid variable or that of a loop around", index.name());
    }
    WARPLOOM_CHECK(check(index.left()));
    WARPLOOM_CHECK(check(index.right()));
    if (index.op() != IndexOp::div && index.op() != IndexOp::mod) return ok();
    bool bad = index.right().constant().value_or(1) < 1;
    for (const auto& loop : loops_) bad |= index.right().depends_on(loop.first);
    if (!bad) return ok();
    return refuse(fmt::format("'{}' divides by something that may not be positive", index.text()),
                  "a positive constant, or what no loop changes", index.right().text());
  }

  Status check(const Tile& tile) const {
    const Tensor& tensor = program_.tensor(tile.tensor);
    if (tile.offset.size() != tensor.shape.size() || tile.extent.size() != tensor.shape.size())
      return refuse(fmt::format("a tile of '{}' has another rank than the tensor", tensor.name),
                    std::to_string(tensor.shape.size()),
                    fmt::format("{} offsets, {} extents", tile.offset.size(), tile.extent.size()));
    for (const Index& offset : tile.offset) WARPLOOM_CHECK(check(offset));
    if (!tile.step.empty()) WARPLOOM_CHECK(check_step(tile));
    for (size_t i = 0; i < tile.extent.size() && tensor.scope == Scope::global && !tensor.packed;
         ++i)
      if (const int per = per_byte(tensor.dtype);
          tensor.shape[i] > 1 && tensor.strides[i] == 1 && per > 1 &&
          (tile.extent[i] % per || tile.offset[i].known_divisor() % per ||
           tile.lookup_dim == static_cast<int>(i)))
        return refuse(
            fmt::format("a tile of '{}' is not known to begin and end with a byte", tensor.name),
            fmt::format("multiples of {} elements", per),
            fmt::format("{} +{}", tile.offset[i].text(), tile.extent[i]));
    if (element_count(tile.extent) < 1)
      return refuse(fmt::format("a tile of '{}' has an extent below 1", tensor.name),
                    "extents of at least 1", text_of(tile.extent));
    for (size_t i = 0; i < tile.extent.size() && tensor.scope != Scope::global; ++i) {
      const int64_t room = tensor.shape[i] - tile.extent[i];
      const int64_t offset = tile.offset[i].constant().value_or(0);
      if (room < 0 || offset < 0 || offset > room)
        return refuse(fmt::format("a tile reaches outside '{}' in dimension {}", tensor.name, i),
                      "a tile inside " + text_of(tensor.shape),
                      fmt::format("{} +{}", tile.offset[i].text(), tile.extent[i]));
    }
    return ok();
  }

  Status check_step(const Tile& tile) const {
    const Tensor& tensor = program_.tensor(tile.tensor);
    bool good = tensor.scope == Scope::global && tile.step.size() == tile.extent.size() &&
                per_byte(tensor.dtype) == 1;
    for (size_t i = 0; good && i < tile.step.size(); ++i)
      good = tile.step[i] >= 1 && tile.step[i] < int64_t{1} << 32 &&
             (tile.step[i] == 1 || tile.lookup_dim != static_cast<int>(i));
    if (good) return ok();
    return refuse(
        fmt::format("a tile of '{}' cannot take the steps {}", tensor.name, text_of(tile.step)),
        "steps of at least 1, one a dimension of a global tensor of whole bytes, and none where it "
        "is gathered");
  }

  Status check_lookup(const Tile& tile) const {
    const Tensor& lookup = program_.tensor(tile.lookup);
    const bool integers = lookup.dtype == Dtype::i32 || lookup.dtype == Dtype::i64;
    if (program_.tensor(tile.tensor).scope != Scope::global || tile.lookup_dim < 0 ||
        static_cast<size_t>(tile.lookup_dim) >= tile.offset.size())
      return refuse(fmt::format("a tile of '{}' cannot be gathered", name(tile.tensor)),
                    "a dimension of a global tensor");
    if (lookup.scope == Scope::global && lookup.shape.size() == 1 && integers && !lookup.writable)
      return ok();
    return refuse(fmt::format("'{}' holds no coordinates to gather by", lookup.name),
                  "a global i32 or i64 tensor of one dimension, no output");
  }

  Status check(const Copy& copy) const {
    const Tensor& src = program_.tensor(copy.src.tensor);
    const Tensor& dst = program_.tensor(copy.dst.tensor);
    if (src.scope == Scope::global && dst.scope == Scope::global)
      return refuse("a copy goes from global to global", "shared or register on one side");
    if (src.packed) WARPLOOM_CHECK(check_packed(copy.src, src, dst));
    if (dst.scope == Scope::global && !dst.writable)
      return refuse(fmt::format("'{}' is written and is no output", dst.name));
    const auto met = meetings(copy.src.extent, copy.dst.extent);
    const auto together = [](const Meeting& m) { return m.a.size() + m.b.size() > 2; };
    const bool memory =
        src.scope == Scope::global || dst.scope == Scope::global || src.windows_of >= 0;
    if (dst.windows_of >= 0 || (src.windows_of >= 0 && dst.scope != Scope::reg))
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
  Status check_packed(const Tile& tile, const Tensor& src, const Tensor& dst) const {
    if (dst.scope != Scope::reg || tile.lookup >= 0 || !tile.step.empty())
      return refuse(
          fmt::format("'{}' is packed, and not read tile by tile into registers", src.name),
          "a register tensor, and a tile that is neither gathered nor takes steps", dst.name);
    bool one_grid = element_count(tile.extent) % per_byte(src.dtype) == 0;
    for (size_t d = 0; d < tile.extent.size(); ++d)
      one_grid &= src.shape[d] % tile.extent[d] == 0 && multiple(tile.offset[d], tile.extent[d]);
    for (const Statement& statement : program_.body)
      for_statements(statement, [&](const Statement& one) {
        for (const TensorUse& use : uses_of(one))
          one_grid &= use.tensor != tile.tensor || !use.tile || use.tile->extent == tile.extent;
      });
    if (one_grid) return ok();
    return refuse(
        fmt::format("'{}' is packed, and this may be no tile of the grid that it is packed in",
                    src.name),
        "one shape for all its tiles, of whole bytes, that divides the tensor's; offsets that are "
        "multiples of it",
        fmt::format("{} of {}", text_of(tile.extent), text_of(src.shape)));
  }

  bool multiple(const Index& index, int64_t of) const {
    return index.is_multiple(of, [&](const std::string& name) {
      const auto loop = loops_.find(name);
      return loop != loops_.end() && multiple(loop->second->begin, of) &&
             multiple(loop->second->step, of);
    });
  }

  Status combined(const Tensor& dst, ReduceOp op) const {
    const bool half = dst.dtype == Dtype::f16 || dst.dtype == Dtype::bf16;
    const bool typed =
        dst.dtype == Dtype::f32 || dst.dtype == Dtype::i32 || (half && op == ReduceOp::sum);
    if (dst.scope == Scope::global && typed) return ok();
    return refuse(fmt::format("a copy cannot combine with '{}'", dst.name),
                  "a global tensor of f32 or i32; for sums also of f16 or bf16",
                  text_of(dst.dtype));
  }

  Status from_peer(const Tensor& src, const Tensor& dst, const Index& rank) const {
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
  Status shared_along(const Copy& copy) const {
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
      if (differs(offset, along))
        return refuse(
            "the blocks that share a multicast may read different tiles",
            fmt::format(
                "an offset that does not depend on the block's place along {}, but on block_x / {} "
                "and its like",
                along, program_.cluster[0]),
            offset.text());
    return ok();
  }

  Status check_flag(const Tile& flag, bool written) const {
    const Tensor& tensor = program_.tensor(flag.tensor);
    if (tensor.scope == Scope::global && tensor.dtype == Dtype::i32 &&
        element_count(flag.extent) == 1 && flag.lookup < 0 && (tensor.writable || !written))
      return ok();
    return refuse(fmt::format("'{}' holds no such flag", tensor.name),
                  "one element of a global tensor of i32; to signal, of an output",
                  fmt::format("{} of {}", text_of(flag.extent), text_of(tensor.dtype)));
  }

  Status check(const Signal& signal) const {
    WARPLOOM_CHECK(check_flag(signal.flag, true));
    return check(signal.by);
  }

  Status check(const Wait& wait) const {
    WARPLOOM_CHECK(check_flag(wait.flag, false));
    if (!program_.cooperative)
      return refuse("a wait stands in a program whose blocks need not run at the same time",
                    "a cooperative program");
    return check(wait.least);
  }

  Status check(const Map& map) const {
    WARPLOOM_CHECK(check(map.value, program_.tensor(map.dst)));
    if (!map.integers) return ok();
    const Tensor& dst = program_.tensor(map.dst);
    if (!is_integer(dst.dtype))
      return refuse(fmt::format("'{}' does not take whole numbers", dst.name),
                    "a tensor of integers", text_of(dst.dtype));
    return check_whole(map.value);
  }

  Status check_whole(const Value& value) const {
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
    for (const Value& operand : value.operands) WARPLOOM_CHECK(check_whole(operand));
    return ok();
  }

  Status check(const Value& value, const Tensor& dst) const {
    if (value.kind == Value::Kind::constant) return ok();
    if (value.kind == Value::Kind::coordinate) {
      if (value.axis >= 0 && static_cast<size_t>(value.axis) < dst.shape.size())
        return check(value.shift);
      return refuse(fmt::format("'{}' has no axis {}", dst.name, value.axis));
    }
    if (value.kind == Value::Kind::op) {
      if (value.operands.size() != static_cast<size_t>(arity_of(value.op)))
        return refuse(fmt::format("'{}' has the wrong number of operands", name_of(value.op)),
                      std::to_string(arity_of(value.op)), std::to_string(value.operands.size()));
      for (const Value& operand : value.operands) WARPLOOM_CHECK(check(operand, dst));
      return ok();
    }
    const Tensor& tensor = program_.tensor(value.tensor);
    if (std::equal(tensor.shape.begin(), tensor.shape.end(), dst.shape.begin(), dst.shape.end(),
                   [](int64_t own, int64_t wanted) { return own == wanted || own == 1; }))
      return ok();
    return refuse(fmt::format("'{}' does not broadcast to '{}'", tensor.name, dst.name),
                  "the same rank, each extent equal or 1: " + text_of(dst.shape),
                  text_of(tensor.shape));
  }

  Status check(const Mma& mma) const {
    for (const Tile* operand : {&mma.a, &mma.b})
      if (program_.tensor(operand->tensor).scope == Scope::global)
        return refuse(
            fmt::format("operand '{}' of an mma is in global memory", name(operand->tensor)),
            "a register or shared tile");
    if (mma.acc == mma.a.tensor || mma.acc == mma.b.tensor)
      return refuse("an mma's accumulator is one of its operands");
    const Dtype a_type = program_.tensor(mma.a.tensor).dtype;
    const Dtype b_type = program_.tensor(mma.b.tensor).dtype;
    const Dtype acc_type = program_.tensor(mma.acc).dtype;
    if (a_type != b_type)
      return refuse("the operands of an mma differ in type", text_of(a_type), text_of(b_type));
    if (accumulator_of(a_type) != acc_type)
      return refuse(
          fmt::format("an mma cannot accumulate {} in {}", name_of(a_type), name_of(acc_type)),
          "f32 for floats, f64 for f64, i32 for i8 and u8", text_of(acc_type));
    auto a = matrix_extent(mma.a.extent);
    auto b = matrix_extent(mma.b.extent);
    const auto acc = matrix_extent(program_.tensor(mma.acc).shape);
    if (mma.transpose_a) std::ranges::reverse(a);
    if (mma.transpose_b) std::ranges::reverse(b);
    if (a.size() != 2 || b.size() != 2 || acc.size() != 2 || a[0] != acc[0] || b[1] != acc[1] ||
        a[1] != b[0])
      return refuse("the shapes of an mma do not fit each other", "acc [M, N], a [M, K], b [K, N]",
                    fmt::format("acc {}, a {}, b {}", text_of(acc), text_of(a), text_of(b)));
    return ok();
  }

  Status check(const Of<Reduce, Scan> auto& node) const {
    constexpr bool kKeeps = Of<decltype(node), Scan>;
    std::vector<int64_t> shape = program_.tensor(node.src).shape;
    if (node.axis < 0 || static_cast<size_t>(node.axis) >= shape.size())
      return refuse(fmt::format("'{}' has no axis {}", name(node.src), node.axis));
    if (!kKeeps) shape[node.axis] = 1;
    if (program_.tensor(node.dst).shape == shape) return ok();
    return refuse(fmt::format("the result of a {} has the wrong shape", kKeeps ? "scan" : "reduce"),
                  text_of(shape), text_of(program_.tensor(node.dst).shape));
  }

  Status check(const ConvertLayout& node) const {
    const Tensor& src = program_.tensor(node.src);
    const Tensor& dst = program_.tensor(node.dst);
    std::vector<int64_t> shape = src.shape;
    if (node.transpose) std::ranges::reverse(shape);
    const bool fits = src.dtype == dst.dtype && shape == dst.shape && node.src != node.dst;
    if (node.transpose && shape.size() != 2) return unlike("rearrange", src, dst, "two dimensions");
    return fits ? ok()
                : unlike("rearrange", src, dst,
                         "one type and shape, or two dimensions turned round");
  }

  Status check(const Bitcast& node) const {
    const Tensor& src = program_.tensor(node.src);
    const Tensor& dst = program_.tensor(node.dst);
    auto bits = src.shape;
    auto wanted = dst.shape;
    bits.back() *= bits_of(src.dtype);
    wanted.back() *= bits_of(dst.dtype);
    const auto small = [](Dtype d) {
      return !is_float(d) && d != Dtype::boolean && bits_of(d) <= 8;
    };
    const bool fits = bits == wanted && small(src.dtype) && small(dst.dtype);
    return fits ? ok()
                : unlike("reinterpret", src, dst,
                         "integers of at most a byte, last extents of equal bits");
  }

  Status unlike(std::string_view word, const Tensor& src, const Tensor& dst,
                std::string expected) const {
    return refuse(fmt::format("the two sides of a {} do not fit each other", word),
                  std::move(expected),
                  fmt::format("{} {}, {} {}", name_of(src.dtype), text_of(src.shape),
                              name_of(dst.dtype), text_of(dst.shape)));
  }

  // All blocks of the cluster meet, by all their threads or those of one role.
  Status meets(std::string_view statement) const {
    if (cluster_size(program_) < 2)
      return refuse(fmt::format("a {} stands in a program without clusters", statement),
                    "a cluster of more than one block");
    if (in_role_ && (statement != "cluster_reduce" || meeting_roles_ > 1))
      return refuse(
          fmt::format("only some threads of a block reach this {}", statement),
          "a place outside the roles; reductions over a cluster may all stand in one role");
    if (!divergent_) return ok();
    return refuse(fmt::format("not every block of a cluster may reach this {}", statement),
                  "loops and conditions around it that all blocks of the cluster decide alike");
  }

  Status check(const ClusterReduce&) const { return meets("cluster_reduce"); }

  Status check(const ClusterSync&) const { return meets("cluster_sync"); }

  Status check(const Fill&) const { return ok(); }  // nothing beyond what it names

  Status check(const For& loop) const {
    for (const Index* index : {&loop.begin, &loop.end, &loop.step}) WARPLOOM_CHECK(check(*index));
    if (loop.step.constant().value_or(1) < 1)
      return refuse("a loop's step is below 1", "a positive step", loop.step.text());
    bool taken = is_grid_variable(loop.variable) || loops_.count(loop.variable) > 0;
    for (const Tensor& tensor : program_.tensors) taken |= tensor.name == loop.variable;
    for (const Pipeline& pipeline : program_.pipelines) taken |= pipeline.name == loop.variable;
    if (is_identifier(loop.variable) && !taken) return ok();
    return refuse(fmt::format("'{}' cannot name a loop's variable", loop.variable),
                  "a C identifier that names nothing else here", loop.variable);
  }

  Status check(const If& branch) const {
    WARPLOOM_CHECK(check(branch.left));
    return check(branch.right);
  }

  Status opens(PipelineId id) const {
    if (id < 0 || static_cast<size_t>(id) >= program_.pipelines.size())
      return refuse(fmt::format("no pipeline has the number {}", id));
    if (contains(producing_, id) || contains(consuming_, id))
      return refuse(fmt::format("'{}' is produced or consumed inside itself", pipeline(id)));
    return ok();
  }

  Status check(const Produce& produce) const { return opens(produce.pipeline); }

  Status check(const Consume& consume) const {
    WARPLOOM_CHECK(opens(consume.pipeline));
    const int stages = program_.pipeline(consume.pipeline).stages;
    if (consume.lag >= 0 && consume.lag < stages) return ok();
    return refuse("a consume's lag does not fit its pipeline", fmt::format("0 to {}", stages - 1),
                  std::to_string(consume.lag));
  }

  Status check(const Roles& roles) const {
    if (roles.roles.empty()) return refuse("roles without a role");
    int warps = 0;
    for (const Role& role : roles.roles) {
      if (role.warps < 1 || role.warps > 32 || role.registers < 0)
        return refuse(
            fmt::format("role '{}' has no legal number of warps or registers", role.name));
      if (role.registers > 0 && role.warps % 4 != 0)
        return refuse(fmt::format("role '{}' sets registers", role.name), "a multiple of 4 warps",
                      std::to_string(role.warps));
      warps += role.warps;
    }
    if (warps == program_.warps) return ok();
    return refuse("the roles' warps are not the program's", std::to_string(program_.warps),
                  std::to_string(warps));
  }

  const Program& program_;
  const Location* location_ = nullptr;       // of the innermost statement
  std::map<std::string, const For*> loops_;  // in scope, by their variables
  // Produce and Consume around, outermost first
  std::vector<PipelineId> producing_;
  std::vector<PipelineId> consuming_;
  bool in_role_ = false;
  ptrdiff_t meeting_roles_ = 0;  // that have reductions over the cluster
  bool divergent_ = false;       // blocks of one cluster may disagree on whether they get here
};
}  // namespace

Status verify_statements(const Program& program) {
  return Verifier(program).body(program.body, true);
}
}  // namespace warploom::tile
