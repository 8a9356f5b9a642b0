// Rules between roles: roles meet only through pipelines, each with one producing role and consumers listed after it.
//
// A place is where a statement runs: -1 for the single thread of control (all warps), otherwise the number of a role.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tile/verify_rules.h"

namespace warploom::tile {
namespace {

constexpr int kEveryone = -1;

struct Uses {
  std::set<int> readers, writers;  // places
  const Location* last = nullptr;  // of a use, for the message
};

struct Sharing {
  explicit Sharing(const Program& p) : program(p), tensors(p.tensors.size()), pipelines(p.pipelines.size()) {}
  const Program& program;
  std::vector<Uses> tensors, pipelines;  // a pipeline's writers are its producers
  bool has_roles = false;
};

struct Collect {
  Sharing& sharing;
  int place;
  const Location* location;

  void read(TensorId id) const { note(sharing.tensors, id).readers.insert(place); }
  void write(TensorId id) const { note(sharing.tensors, id).writers.insert(place); }
  Uses& note(std::vector<Uses>& list, int id) const {
    Uses& uses = list[static_cast<std::size_t>(id)];
    uses.last = location;
    return uses;
  }
  void read(const Value& value) const {
    if (value.kind == Value::Kind::tensor) read(value.tensor);
    for (const Value& operand : value.operands) read(operand);
  }
  void body(const Body& statements) const {
    for (const Statement& s : statements) std::visit(Collect{sharing, place, &s.location}, s.node);
  }
  void operator()(const Copy& s) const { read(s.src.tensor), write(s.dst.tensor); }
  void operator()(const Fill& s) const { write(s.dst); }
  void operator()(const Map& s) const { read(s.value), write(s.dst); }
  void operator()(const Mma& s) const { read(s.a.tensor), read(s.b.tensor), write(s.acc); }
  void operator()(const Reduce& s) const { read(s.src), write(s.dst); }
  void operator()(const ClusterReduce& s) const { write(s.dst); }
  void operator()(const For& s) const { body(s.body); }
  void operator()(const If& s) const { body(s.body); }
  void operator()(const Produce& s) const {
    note(sharing.pipelines, s.pipeline).writers.insert(place);
    body(s.body);
  }
  void operator()(const Consume& s) const {
    note(sharing.pipelines, s.pipeline).readers.insert(place);
    body(s.body);
  }
  void operator()(const Roles& s) const {
    sharing.has_roles = true;
    for (std::size_t i = 0; i < s.roles.size(); ++i)
      Collect{sharing, static_cast<int>(i), location}.body(s.roles[i].body);
  }
};

// Roles, where there are any, are the last statement and the only ones of their kind.
Status check_last(const Program& program) {
  Context context{program};
  for (std::size_t i = 0; i + 1 < program.body.size(); ++i)
    if (std::holds_alternative<Roles>(program.body[i].node)) {
      context.location = &program.body[i + 1].location;
      return invalid(context, "a statement follows the roles", "roles as the program's last statement");
    }
  return ok();
}

Status check_pipeline(const Sharing& sharing, std::size_t id) {
  const Uses& uses = sharing.pipelines[id];
  const std::string& name = sharing.program.pipelines[id].name;
  const Context context{sharing.program, uses.last};
  if (uses.writers.empty()) return invalid(context, fmt::format("pipeline '{}' is never produced", name));
  if (uses.readers.empty()) return invalid(context, fmt::format("pipeline '{}' is never consumed", name));
  if (uses.writers.size() > 1)
    return invalid(context, fmt::format("pipeline '{}' has more than one producing role", name));
  if (sharing.has_roles && (uses.writers.count(kEveryone) || uses.readers.count(kEveryone)))
    return invalid(context, fmt::format("pipeline '{}' is used before the roles", name),
                   "produce and consume inside roles");
  if (*uses.readers.begin() < *uses.writers.begin())
    return invalid(context, fmt::format("a role consumes '{}' and is listed before the role that produces it", name));
  return ok();
}

Status check_register(const Sharing& sharing, const Tensor& tensor, const Uses& uses) {
  std::set<int> places = uses.readers;
  places.insert(uses.writers.begin(), uses.writers.end());
  if (places.size() > 1)
    return invalid({sharing.program, uses.last},
                   fmt::format("register tensor '{}' is used by more than one role", tensor.name),
                   "one role for a register tensor");
  return ok();
}

// What one role writes no other reads; what stands before the roles is done when they begin.
Status check_memory(const Sharing& sharing, const Tensor& tensor, const Uses& uses) {
  for (const int writer : uses.writers)
    for (const int reader : uses.readers)
      if (writer != reader && writer != kEveryone && reader != kEveryone)
        return invalid({sharing.program, uses.last},
                       fmt::format("one role writes '{}' and another reads it", tensor.name),
                       "a pipeline between them");
  const bool two_writers = std::count_if(uses.writers.begin(), uses.writers.end(), [](int w) { return w >= 0; }) > 1;
  if (tensor.scope == Scope::shared && two_writers)
    return invalid({sharing.program, uses.last}, fmt::format("two roles write shared tensor '{}'", tensor.name),
                   "one role that writes it");
  return ok();
}

}  // namespace

Status verify_sharing(const Program& program) {
  WARPLOOM_CHECK(check_last(program));
  Sharing sharing(program);
  Collect{sharing, kEveryone, nullptr}.body(program.body);
  for (std::size_t i = 0; i < program.pipelines.size(); ++i) WARPLOOM_CHECK(check_pipeline(sharing, i));
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    const Tensor& tensor = program.tensors[i];
    if (tensor.pipeline >= 0) continue;
    WARPLOOM_CHECK(tensor.scope == Scope::reg ? check_register(sharing, tensor, sharing.tensors[i])
                                              : check_memory(sharing, tensor, sharing.tensors[i]));
  }
  return ok();
}

}  // namespace warploom::tile
