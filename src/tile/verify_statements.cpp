#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tile/index.h"
#include "tile/program.h"
#include "tile/statement_verifier.h"
#include "tile/syntax.h"
#include "tile/verify.h"

namespace warploom::tile {
namespace {
bool contains(const std::vector<PipelineId>& list, PipelineId id) {
  return std::ranges::count(list, id) > 0;
}

// "block_x * 64 +64"
std::string extent_text(const Tile& tile, size_t dim) {
  return fmt::format("{} +{}", tile.offset[dim].text(), tile.extent[dim]);
}
}  // namespace

std::string text_of(Dtype type) {
  return std::string(warploom::name_of(type));
}

Status StatementVerifier::body(const Body& statements, bool top) {
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

Status StatementVerifier::refuse(const std::string& message, const std::string& expected,
                                 const std::string& found) const {
  return invalid(program_, location_, message, expected, found);
}

// What the body of a statement finds around it.
Status StatementVerifier::inside(const auto& node) const {
  StatementVerifier inner = *this;
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
        for_statements(statement, [&](const Statement& one) { meets |= one.is<ClusterReduce>(); });
      return meets;
    });
  }
  if constexpr (Of<decltype(node), Produce>) inner.producing_.push_back(node.pipeline);
  if constexpr (Of<decltype(node), Consume>) inner.consuming_.push_back(node.pipeline);
  if constexpr (requires { node.body; }) return inner.body(node.body, false);
  if constexpr (requires { node.roles; })
    for (const Role& role : node.roles)
      WARPLOOM_CHECK(inner.body(role.body, false));
  return ok();
}

// Blocks of one cluster that differ in these dimensions alone may disagree on the index.
bool StatementVerifier::differs(const Index& index, std::string_view along) const {
  if (index.op() == IndexOp::constant) return false;
  for (int d = 0; d < 3; ++d) {
    if (index.same(block(d))) return program_.cluster[d] > 1 && along.find("xyz"[d]) != along.npos;
    // The cluster's own number: block_x / 4 in clusters of 4 along x.
    if (index.op() == IndexOp::div && index.left().same(block(d)) && index.right().constant() &&
        *index.right().constant() % program_.cluster[d] == 0)
      return false;
  }
  if (index.op() == IndexOp::variable)
    return index.same(cluster_rank()) && cluster_size(program_) > 1;
  return differs(index.left(), along) || differs(index.right(), along);
}

// Inside a Produce: nothing but copies from global memory into the stage, perhaps in loops and
// branches.
Status StatementVerifier::produced(const Statement& statement) const {
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
Status StatementVerifier::use(TensorId id, bool written) const {
  if (id < 0 || as_size(id) >= program_.tensors.size())
    return refuse(fmt::format("no tensor has the number {}", id));
  const PipelineId ring = program_.tensor(id).pipeline;
  if (ring < 0 || contains(producing_, ring)) return ok();
  if (!contains(consuming_, ring))
    return refuse(fmt::format("'{}' is used outside produce and consume of its pipeline '{}'",
                              name(id), pipeline(ring)));
  if (written)
    return refuse(fmt::format("'{}' is written while its pipeline is consumed", name(id)),
                  "stages are written by produce only");
  return ok();
}

// A tile lies within its tensor; what a statement names without a tile is all of a register
// tensor.
Status StatementVerifier::check(const TensorUse& used, std::string_view statement) const {
  WARPLOOM_CHECK(use(used.tensor, used.written));
  const Tensor& tensor = program_.tensor(used.tensor);
  const bool multiplied = tensor.as_strided >= 0 && statement == "mma";
  const bool for_copies_alone = (tensor.as_strided >= 0 && !multiplied) || tensor.prepacked;
  if (for_copies_alone && (statement != "copy" || used.gathers)) {
    const char* const does = tensor.prepacked ? "reads packed" : "works on windows";
    return refuse(fmt::format("{} {} '{}'", statement, does, tensor.name),
                  "a copy to a register tensor before it", std::string(statement));
  }
  if (used.tile) return check(*used.tile);
  if (used.gathers) return check_lookup(*used.gathers);
  if (program_.tensor(used.tensor).scope == Scope::reg) return ok();
  const std::string& found = name(used.tensor);
  const std::string message =
      fmt::format("{} works on register tensors and '{}' is none", statement, found);
  return refuse(message, "a register tensor", found);
}

Status StatementVerifier::check(const Index& index) const {
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
  for (const auto& loop : loops_)
    bad |= index.right().depends_on(loop.first);
  if (!bad) return ok();
  const std::string message =
      fmt::format("'{}' divides by something that may not be positive", index.text());
  return refuse(message, "a positive constant, or what no loop changes", index.right().text());
}

Status StatementVerifier::check(const Tile& tile) const {
  const Tensor& tensor = program_.tensor(tile.tensor);
  if (tile.offset.size() != tensor.shape.size() || tile.extent.size() != tensor.shape.size()) {
    const std::string message =
        fmt::format("a tile of '{}' has another rank than the tensor", tensor.name);
    const std::string found =
        fmt::format("{} offsets, {} extents", tile.offset.size(), tile.extent.size());
    return refuse(message, std::to_string(tensor.shape.size()), found);
  }
  for (const Index& offset : tile.offset)
    WARPLOOM_CHECK(check(offset));
  if (!tile.step.empty()) WARPLOOM_CHECK(check_step(tile));
  if (tensor.scope == Scope::global && !tensor.prepacked) WARPLOOM_CHECK(check_bytes(tile));
  if (element_count(tile.extent) < 1)
    return refuse(fmt::format("a tile of '{}' has an extent below 1", tensor.name),
                  "extents of at least 1", text_of(tile.extent));
  for (size_t i = 0; i < tile.extent.size() && tensor.scope != Scope::global; ++i) {
    const int64_t room = tensor.shape[i] - tile.extent[i];
    const int64_t offset = tile.offset[i].constant().value_or(0);
    if (room < 0 || offset < 0 || offset > room) {
      const std::string message =
          fmt::format("a tile reaches outside '{}' in dimension {}", tensor.name, i);
      const std::string expected = "a tile inside " + text_of(tensor.shape);
      return refuse(message, expected, extent_text(tile, i));
    }
  }
  return ok();
}

// Of elements narrower than a byte: along neighbours, whole bytes are read and written.
Status StatementVerifier::check_bytes(const Tile& tile) const {
  const Tensor& tensor = program_.tensor(tile.tensor);
  const int per = per_byte(tensor.dtype);
  if (per == 1) return ok();
  for (size_t i = 0; i < tile.extent.size(); ++i) {
    if (tensor.shape[i] <= 1 || tensor.strides[i] != 1) continue;
    const bool gathered = tile.lookup_dim == as_int(i);
    const bool whole = tile.extent[i] % per == 0 && tile.offset[i].known_divisor() % per == 0;
    if (whole && !gathered) continue;
    const std::string message =
        fmt::format("a tile of '{}' is not known to begin and end with a byte", tensor.name);
    return refuse(message, fmt::format("multiples of {} elements", per), extent_text(tile, i));
  }
  return ok();
}

Status StatementVerifier::check_step(const Tile& tile) const {
  const Tensor& tensor = program_.tensor(tile.tensor);
  constexpr int64_t kMostStep = int64_t{1} << 32;
  const bool whole_bytes = tensor.scope == Scope::global && per_byte(tensor.dtype) == 1;
  bool good = whole_bytes && tile.step.size() == tile.extent.size();
  for (size_t i = 0; good && i < tile.step.size(); ++i) {
    const int64_t step = tile.step[i];
    const bool gathered = tile.lookup_dim == as_int(i);
    good = step >= 1 && step < kMostStep && (step == 1 || !gathered);
  }
  if (good) return ok();
  return refuse(
      fmt::format("a tile of '{}' cannot take the steps {}", tensor.name, text_of(tile.step)),
      "steps of at least 1, one a dimension of a global tensor of whole bytes, and none where it "
      "is gathered");
}

Status StatementVerifier::check_lookup(const Tile& tile) const {
  const Tensor& lookup = program_.tensor(tile.lookup);
  const bool integers = lookup.dtype == Dtype::i32 || lookup.dtype == Dtype::i64;
  if (program_.tensor(tile.tensor).scope != Scope::global || tile.lookup_dim < 0 ||
      as_size(tile.lookup_dim) >= tile.offset.size())
    return refuse(fmt::format("a tile of '{}' cannot be gathered", name(tile.tensor)),
                  "a dimension of a global tensor");
  if (lookup.scope == Scope::global && lookup.shape.size() == 1 && integers && !lookup.writable)
    return ok();
  return refuse(fmt::format("'{}' holds no coordinates to gather by", lookup.name),
                "a global i32 or i64 tensor of one dimension, no output");
}

bool StatementVerifier::multiple(const Index& index, int64_t of) const {
  return index.is_multiple(of, [&](const std::string& name) {
    const auto loop = loops_.find(name);
    if (loop == loops_.end()) return false;
    return multiple(loop->second->begin, of) && multiple(loop->second->step, of);
  });
}

Status StatementVerifier::check(const Signal& signal) const {
  WARPLOOM_CHECK(check_flag(signal.flag, true));
  return check(signal.by);
}

Status StatementVerifier::check(const Wait& wait) const {
  WARPLOOM_CHECK(check_flag(wait.flag, false));
  if (!program_.cooperative)
    return refuse("a wait stands in a program whose blocks need not run at the same time",
                  "a cooperative program");
  return check(wait.least);
}

Status StatementVerifier::check(const Of<Reduce, Scan> auto& node) const {
  constexpr bool kKeeps = Of<decltype(node), Scan>;
  auto shape = program_.tensor(node.src).shape;
  if (node.axis < 0 || as_size(node.axis) >= shape.size())
    return refuse(fmt::format("'{}' has no axis {}", name(node.src), node.axis));
  if (!kKeeps) shape[node.axis] = 1;
  if (program_.tensor(node.dst).shape == shape) return ok();
  const char* const word = kKeeps ? "scan" : "reduce";
  const std::string message = fmt::format("the result of a {} has the wrong shape", word);
  return refuse(message, text_of(shape), text_of(program_.tensor(node.dst).shape));
}

// All blocks of the cluster meet, by all their threads or those of one role.
Status StatementVerifier::meets(std::string_view statement) const {
  if (cluster_size(program_) < 2)
    return refuse(fmt::format("a {} stands in a program without clusters", statement),
                  "a cluster of more than one block");
  if (in_role_ && (statement != "cluster_reduce" || meeting_roles_ > 1))
    return refuse(fmt::format("only some threads of a block reach this {}", statement),
                  "a place outside the roles; reductions over a cluster may all stand in one role");
  if (!divergent_) return ok();
  return refuse(fmt::format("not every block of a cluster may reach this {}", statement),
                "loops and conditions around it that all blocks of the cluster decide alike");
}

Status StatementVerifier::check(const For& loop) const {
  for (const Index* index : {&loop.begin, &loop.end, &loop.step})
    WARPLOOM_CHECK(check(*index));
  if (loop.step.constant().value_or(1) < 1)
    return refuse("a loop's step is below 1", "a positive step", loop.step.text());
  bool taken = is_grid_variable(loop.variable) || loops_.count(loop.variable) > 0;
  for (const Tensor& tensor : program_.tensors)
    taken |= tensor.name == loop.variable;
  for (const Pipeline& pipeline : program_.pipelines)
    taken |= pipeline.name == loop.variable;
  if (is_identifier(loop.variable) && !taken) return ok();
  return refuse(fmt::format("'{}' cannot name a loop's variable", loop.variable),
                "a C identifier that names nothing else here", loop.variable);
}

Status StatementVerifier::check(const If& branch) const {
  WARPLOOM_CHECK(check(branch.left));
  return check(branch.right);
}

Status StatementVerifier::opens(PipelineId id) const {
  if (id < 0 || as_size(id) >= program_.pipelines.size())
    return refuse(fmt::format("no pipeline has the number {}", id));
  if (contains(producing_, id) || contains(consuming_, id))
    return refuse(fmt::format("'{}' is produced or consumed inside itself", pipeline(id)));
  return ok();
}

Status StatementVerifier::check(const Consume& consume) const {
  WARPLOOM_CHECK(opens(consume.pipeline));
  const int stages = program_.pipeline(consume.pipeline).stages;
  if (consume.mma_in_flight >= 0 && consume.mma_in_flight < stages) return ok();
  return refuse("a consume's lag does not fit its pipeline", fmt::format("0 to {}", stages - 1),
                std::to_string(consume.mma_in_flight));
}

Status StatementVerifier::check(const Roles& roles) const {
  if (roles.roles.empty()) return refuse("roles without a role");
  int warps = 0;
  for (const Role& role : roles.roles) {
    if (role.warps < 1 || role.warps > 32 || role.registers < 0)
      return refuse(fmt::format("role '{}' has no legal number of warps or registers", role.name));
    if (role.registers > 0 && role.warps % 4 != 0)
      return refuse(fmt::format("role '{}' sets registers", role.name), "a multiple of 4 warps",
                    std::to_string(role.warps));
    warps += role.warps;
  }
  if (warps == program_.warps) return ok();
  return refuse("the roles' warps are not the program's", std::to_string(program_.warps),
                std::to_string(warps));
}

Status verify_statements(const Program& program) {
  return StatementVerifier(program).body(program.body, true);
}
}  // namespace warploom::tile
