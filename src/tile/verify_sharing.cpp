// Rules between roles: roles meet only through pipelines, each with one producing role and consumers listed after it.
//
// A place is where a statement runs: -1 for the single thread of control (all warps), otherwise the number of a role.
#include "tile/verify.h"
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

  Uses& note(std::vector<Uses>& list, int id) const {
    Uses& uses = list[static_cast<std::size_t>(id)];
    uses.last = location;
    return uses;
  }
  void read(TensorId id) const { note(sharing.tensors, id).readers.insert(place); }
  void write(TensorId id) const { note(sharing.tensors, id).writers.insert(place); }
  void read(const Value& value) const {
    if (value.kind == Value::Kind::tensor) read(value.tensor);
    for (const Value& operand : value.operands) read(operand);
  }
  void body(const Body& statements) const {
    for (const Statement& s : statements)
      std::visit([at = Collect{sharing, place, &s.location}](const auto& node) { at.statement(node); }, s.node);
  }
  template <class Node>
  void statement(const Node& s) const {
    if constexpr (std::is_same_v<Node, Copy>) {
      for (const Tile* tile : {&s.src, &s.dst})
        if (tile->lookup >= 0) read(tile->lookup);
      read(s.src.tensor), write(s.dst.tensor);
    }
    if constexpr (std::is_same_v<Node, Fill> || std::is_same_v<Node, ClusterReduce>) write(s.dst);
    if constexpr (std::is_same_v<Node, Map>) read(s.value), write(s.dst);
    if constexpr (std::is_same_v<Node, Mma>) read(s.a.tensor), read(s.b.tensor), write(s.acc);
    if constexpr (requires { this->read(s.src); }) read(s.src), write(s.dst);
    if constexpr (std::is_same_v<Node, Produce>) note(sharing.pipelines, s.pipeline).writers.insert(place);
    if constexpr (std::is_same_v<Node, Consume>) note(sharing.pipelines, s.pipeline).readers.insert(place);
    if constexpr (requires { s.body; }) body(s.body);
    if constexpr (requires { s.roles; }) {
      sharing.has_roles = true;
      for (std::size_t i = 0; i < s.roles.size(); ++i) Collect{sharing, static_cast<int>(i), location}.body(s.roles[i].body);
    }
  }
};

// Roles, where there are any, are the last statement and the only ones of their kind.
Status check_last(const Program& program) {
  for (std::size_t i = 0; i + 1 < program.body.size(); ++i)
    if (std::holds_alternative<Roles>(program.body[i].node))
      return invalid(program, &program.body[i + 1].location, "a statement follows the roles",
                     "roles as the program's last statement");
  return ok();
}

Status check_pipeline(const Sharing& sharing, const std::string& name, const Uses& uses) {
  const auto refuse = [&](std::string_view before, std::string_view after, std::string expected = {}) {
    return invalid(sharing.program, uses.last, fmt::format("{}'{}'{}", before, name, after), std::move(expected));
  };
  if (uses.writers.empty()) return refuse("pipeline ", " is never produced");
  if (uses.readers.empty()) return refuse("pipeline ", " is never consumed");
  if (uses.writers.size() > 1) return refuse("pipeline ", " has more than one producing role");
  if (sharing.has_roles && (uses.writers.count(kEveryone) || uses.readers.count(kEveryone)))
    return refuse("pipeline ", " is used before the roles", "produce and consume inside roles");
  if (*uses.readers.begin() < *uses.writers.begin())
    return refuse("a role consumes ", " and is listed before the role that produces it");
  return ok();
}

// A register tensor is one role's. In memory, what one role writes no other reads; what stands before the roles is done when they
// begin.
Status check_tensor(const Sharing& sharing, const Tensor& tensor, const Uses& uses) {
  const auto refuse = [&](std::string_view before, std::string_view after, std::string expected) {
    return invalid(sharing.program, uses.last, fmt::format("{}'{}'{}", before, tensor.name, after), std::move(expected));
  };
  std::set<int> places = uses.readers;
  places.insert(uses.writers.begin(), uses.writers.end());
  if (tensor.scope == Scope::reg && places.size() > 1)
    return refuse("register tensor ", " is used by more than one role", "one role for a register tensor");
  places.erase(kEveryone);
  const auto writers = uses.writers.size() - uses.writers.count(kEveryone);
  const bool read = uses.readers.size() > uses.readers.count(kEveryone);
  if (writers > 0 && read && places.size() > 1)
    return refuse("one role writes ", " and another reads it", "a pipeline between them");
  if (tensor.scope == Scope::shared && writers > 1)
    return refuse("two roles write shared tensor ", "", "one role that writes it");
  return ok();
}
}  // namespace
Status verify_sharing(const Program& program) {
  WARPLOOM_CHECK(check_last(program));
  Sharing sharing(program);
  Collect{sharing, kEveryone, nullptr}.body(program.body);
  for (std::size_t i = 0; i < program.pipelines.size(); ++i)
    WARPLOOM_CHECK(check_pipeline(sharing, program.pipelines[i].name, sharing.pipelines[i]));
  for (std::size_t i = 0; i < program.tensors.size(); ++i)
    if (program.tensors[i].pipeline < 0) WARPLOOM_CHECK(check_tensor(sharing, program.tensors[i], sharing.tensors[i]));
  return ok();
}

tl::unexpected<Error> invalid(const Program& program, const Location* location, std::string message, std::string expected,
                              std::string found) {
  const std::string place =
      location ? fmt::format("{}:{}", location->file, location->line) : fmt::format("program '{}'", program.name);
  return fail({ErrorCode::kTileInvalid, std::move(message), place, std::move(expected), std::move(found),
               "change the statement, or the declarations that it uses"});
}

Status verify(const Program& program) {
  WARPLOOM_CHECK(verify_declarations(program));
  WARPLOOM_CHECK(verify_statements(program));
  return verify_sharing(program);
}
}  // namespace warploom::tile
