// Rules of the program as a whole: of declarations, and of what roles share. Those of its
// statements: verify_statements.cpp.
//
// Declarations: names, shapes, strides, grid, cluster, warps, pipelines.
#include "tile/verify.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::tile {
namespace {
constexpr int64_t kLargestTensor = int64_t{1} << 48;  // elements
constexpr int kMostWarps = 32;

// Words of C++ and CUDA, and those that the printed form of a value needs.
constexpr std::string_view kReserved =
    " alignas alignof asm auto bool break case catch char class const constexpr const_cast "
    "continue decltype default "
    "delete do double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable "
    "namespace new noexcept nullptr operator private protected public register reinterpret_cast "
    "requires return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw "
    "true try typedef typeid "
    "typename union unsigned using virtual void volatile while and or not xor threadIdx blockIdx "
    "blockDim gridDim warpSize "
    "inf nan wl main ";

// The rules of one declaration, which every error names.
struct Declaration {
  const Program& program;
  std::string what;

  tl::unexpected<Error> refuse(const std::string& message) const {
    const std::string place = place_of(program) + ": " + what;
    return fail({ErrorCode::kTileInvalid, message, place, "", "", "change the declaration"});
  }

  Status check_name(const std::string& name, std::set<std::string>& taken) const {
    if (!is_identifier(name)) return refuse("the name is no C identifier that is free to use");
    if (is_grid_variable(name)) return refuse("the name is that of a grid variable");
    if (!taken.insert(name).second) return refuse("the name is declared twice");
    return ok();
  }

  Status check_grid() const {
    const auto& grid = program.grid;
    const auto& cluster = program.cluster;
    if (grid.size() != 3 || cluster.size() != 3)
      return refuse("grid and cluster have three extents each");
    for (size_t i = 0; i < 3; ++i) {
      if (grid[i] < 1 || cluster[i] < 1) return refuse("an extent of grid or cluster is below 1");
      if (grid[i] % cluster[i] != 0) {
        const std::string blocks = fmt::format("{}", fmt::join(grid, ", "));
        const std::string together = fmt::format("{}", fmt::join(cluster, ", "));
        return refuse(fmt::format("grid [{}] is no multiple of cluster [{}]", blocks, together));
      }
    }
    if (element_count(grid) < 1) return refuse("the grid is too large");
    return ok();
  }

  Status check(const Tensor& tensor) const {
    const bool global = tensor.scope == Scope::global;
    if (tensor.shape.empty()) return refuse("the tensor has no dimension");
    const int64_t count = element_count(tensor.shape);
    if (count < 1 || count > kLargestTensor)
      return refuse("an extent is below 1, or the tensor is too large");
    if (tensor.writable && !global) return refuse("only a global tensor is an output");
    if (tensor.zeroed && !tensor.writable) return refuse("only an output is zeroed");
    if (tensor.prepacked &&
        (!global || tensor.writable || tensor.strides != dense_strides(tensor.shape)))
      return refuse(
          "only a global tensor that is no output and has no strides of its own is packed");
    const bool windows = tensor.as_strided >= 0;
    if (!global && !windows && !tensor.strides.empty())
      return refuse("only a global tensor and windows have strides");
    if ((global || windows) && tensor.strides.size() != tensor.shape.size())
      return refuse("a global tensor needs one stride a dimension, and so do windows");
    int64_t last = 0;
    for (size_t i = 0; i < tensor.strides.size(); ++i) {
      int64_t reach = 0;
      if (tensor.strides[i] < 0 ||
          __builtin_mul_overflow(tensor.strides[i], tensor.shape[i] - 1, &reach) ||
          __builtin_add_overflow(last, reach, &last) || last > kLargestTensor)
        return refuse("a stride is negative or reaches too far");
      if (tensor.writable && tensor.strides[i] == 0 && tensor.shape[i] > 1)
        return refuse("an output has a stride of 0, so that elements share their place");
    }
    return windows ? check_strided_view(tensor, last) : check_packing(tensor);
  }

  Status check_strided_view(const Tensor& tensor, int64_t last) const {
    const auto base = as_size(tensor.as_strided);
    if (tensor.scope != Scope::shared || base >= program.tensors.size() ||
        program.tensors[base].as_strided >= 0 || program.tensors[base].scope != Scope::shared ||
        program.tensors[base].dtype != tensor.dtype || per_byte(tensor.dtype) > 1)
      return refuse("windows are those of a shared tensor of whole bytes, in its type");
    if (tensor.from >= 0 && tensor.from + last < element_count(program.tensors[base].shape))
      return ok();
    return refuse("the windows reach outside their tensor");
  }

  // Elements of less than a byte: rows in memory begin and end with a byte.
  Status check_packing(const Tensor& tensor) const {
    const int64_t per = per_byte(tensor.dtype);
    if (tensor.prepacked) return ok();  // its tiles are whole bytes
    bool whole = tensor.scope == Scope::shared && tensor.shape.back() % per == 0;
    if (tensor.scope == Scope::reg) whole = element_count(tensor.shape) % per == 0;
    for (size_t i = 0; i < tensor.strides.size() && per > 1; ++i)
      if (tensor.strides[i] == 1 && tensor.shape[i] > 1) whole = tensor.shape[i] % per == 0;
    for (size_t i = 0; i < tensor.strides.size(); ++i)
      if (tensor.strides[i] != 1 && tensor.shape[i] > 1) whole &= tensor.strides[i] % per == 0;
    if (whole || per == 1) return ok();
    return refuse(fmt::format("rows of {} are no whole bytes: {} elements make one",
                              name_of(tensor.dtype), per));
  }

  // `owner`: the pipeline of each tensor, -1 where it has none yet.
  Status check(const Pipeline& pipeline, PipelineId id, std::vector<PipelineId>& owner) const {
    if (pipeline.stages < 1) return refuse("a pipeline has at least one stage");
    if (pipeline.tensors.empty()) return refuse("a pipeline has at least one tensor");
    for (const TensorId tensor : pipeline.tensors) {
      const auto at = as_size(tensor);
      if (tensor < 0 || at >= owner.size() || program.tensor(tensor).scope != Scope::shared)
        return refuse("a pipeline holds shared tensors only");
      if (owner[at] >= 0)
        return refuse(
            fmt::format("tensor '{}' is in a pipeline twice", program.tensor(tensor).name));
      owner[at] = id;
    }
    return ok();
  }
};

Status verify_declarations(const Program& program) {
  const auto declared = [&](std::string_view kind, const std::string& name) {
    return Declaration{program, fmt::format("{} '{}'", kind, name)};
  };
  std::set<std::string> program_name;
  std::set<std::string> taken;
  WARPLOOM_CHECK(Declaration{program, "its name"}.check_name(program.name, program_name));
  for (const Tensor& t : program.tensors)
    WARPLOOM_CHECK(declared("tensor", t.name).check_name(t.name, taken));
  for (const Pipeline& p : program.pipelines)
    WARPLOOM_CHECK(declared("pipeline", p.name).check_name(p.name, taken));
  if (const Roles* roles = roles_of(program))
    for (const Role& r : roles->roles)
      WARPLOOM_CHECK(declared("role", r.name).check_name(r.name, taken));
  WARPLOOM_CHECK(Declaration{program, "grid"}.check_grid());
  if (program.warps < 1 || program.warps > kMostWarps)
    return Declaration{program, "warps"}.refuse(
        fmt::format("{} warps a block; 1 to {} can be", program.warps, kMostWarps));
  for (const Tensor& t : program.tensors)
    WARPLOOM_CHECK(declared("tensor", t.name).check(t));
  std::vector<PipelineId> owner(program.tensors.size(), -1);
  for (size_t i = 0; i < program.pipelines.size(); ++i) {
    const Pipeline& p = program.pipelines[i];
    const auto id = static_cast<PipelineId>(i);
    WARPLOOM_CHECK(declared("pipeline", p.name).check(p, id, owner));
  }
  for (size_t i = 0; i < owner.size(); ++i)
    if (const TensorId base = program.tensors[i].as_strided; base >= 0) owner[i] = owner[base];
  for (size_t i = 0; i < owner.size(); ++i)
    if (program.tensors[i].pipeline != owner[i])
      return declared("tensor", program.tensors[i].name)
          .refuse("the tensor and the pipelines disagree on whose stage it is");
  return ok();
}

// Rules between roles: roles meet only through pipelines, each with one producing role and
// consumers listed after it.
//
// A place is where a statement runs: -1 for the single thread of control (all warps), otherwise the
// number of a role.
constexpr int kEveryone = -1;

struct Uses {
  // places
  std::set<int> readers;
  std::set<int> writers;
  const Location* last = nullptr;  // of a use, for the message
};

struct Sharing {
  const Program& program;
  std::vector<Uses> tensors = std::vector<Uses>(program.tensors.size());
  std::vector<Uses> pipelines =
      std::vector<Uses>(program.pipelines.size());  // whose writers produce it
  bool has_roles = false;

  tl::unexpected<Error> refuse(const Uses& uses, const std::string& message,
                               const std::string& expected = {}) const {
    return invalid(program, uses.last, message, expected);
  }

  void collect(const Body& body, int place) {
    for (const Statement& s : body) {
      const auto note = [&](Uses& uses, bool read, bool written) {
        uses.last = &s.location;
        if (read) uses.readers.insert(place);
        if (written) uses.writers.insert(place);
      };
      const bool flags = s.is<Signal, Wait>();  // made to be shared
      for (const TensorUse& use : uses_of(s))
        if (!flags) note(tensors[use.tensor], use.read, use.written);
      if (const auto* node = s.as<Produce>()) note(pipelines[node->pipeline], false, true);
      if (const auto* node = s.as<Consume>()) note(pipelines[node->pipeline], true, false);
      const bool roles = s.is<Roles>();
      has_roles |= roles;
      int at = place;
      for_bodies(s, [&](const Body& inner) { collect(inner, at += roles); });
    }
  }
};

Status check_pipeline(const Sharing& sharing, const std::string& name, const Uses& uses) {
  if (uses.writers.empty())
    return sharing.refuse(uses, fmt::format("pipeline '{}' is never produced", name));
  if (uses.readers.empty())
    return sharing.refuse(uses, fmt::format("pipeline '{}' is never consumed", name));
  if (uses.writers.size() > 1)
    return sharing.refuse(uses,
                          fmt::format("pipeline '{}' has more than one producing role", name));
  if (sharing.has_roles && (uses.writers.count(kEveryone) || uses.readers.count(kEveryone)))
    return sharing.refuse(uses, fmt::format("pipeline '{}' is used before the roles", name),
                          "produce and consume inside roles");
  if (*uses.readers.begin() < *uses.writers.begin())
    return sharing.refuse(
        uses,
        fmt::format("a role consumes '{}' and is listed before the role that produces it", name));
  return ok();
}

// A register tensor is one role's. In memory, what one role writes no other reads; what stands
// before the roles is done when they begin.
Status check_tensor(const Sharing& sharing, const Tensor& tensor, const Uses& uses) {
  auto places = uses.readers;
  places.insert(uses.writers.begin(), uses.writers.end());
  if (tensor.scope == Scope::reg && places.size() > 1)
    return sharing.refuse(
        uses, fmt::format("register tensor '{}' is used by more than one role", tensor.name),
        "one role for a register tensor");
  places.erase(kEveryone);
  const auto writers = uses.writers.size() - uses.writers.count(kEveryone);
  const bool read = uses.readers.size() > uses.readers.count(kEveryone);
  if (writers > 0 && read && places.size() > 1)
    return sharing.refuse(uses,
                          fmt::format("one role writes '{}' and another reads it", tensor.name),
                          "a pipeline between them");
  if (tensor.scope == Scope::shared && writers > 1)
    return sharing.refuse(uses, fmt::format("two roles write shared tensor '{}'", tensor.name),
                          "one role that writes it");
  return ok();
}

Status verify_sharing(const Program& program) {
  for (size_t i = 0; i + 1 < program.body.size(); ++i)  // roles are the only ones of their kind
    if (program.body[i].is<Roles>())
      return invalid(program, &program.body[i + 1].location, "a statement follows the roles",
                     "roles as the program's last statement");
  Sharing sharing{program};
  sharing.collect(program.body, kEveryone);
  for (size_t i = 0; i < program.pipelines.size(); ++i)
    WARPLOOM_CHECK(check_pipeline(sharing, program.pipelines[i].name, sharing.pipelines[i]));
  for (size_t i = 0; i < program.tensors.size(); ++i)
    if (program.tensors[i].pipeline < 0)
      WARPLOOM_CHECK(check_tensor(sharing, program.tensors[i], sharing.tensors[i]));
  return ok();
}

// Every statement has an id, and no other has it.
Status verify_identities(const Program& program) {
  std::set<StatementId> known;
  const Statement* offender = nullptr;
  for (const Statement& statement : program.body)
    for_statements(statement, [&](const Statement& one) {
      const bool own = one.id != kNoStatement && known.insert(one.id).second;
      if (!own && !offender) offender = &one;
    });
  if (!offender) return ok();
  std::string found = std::to_string(offender->id);
  if (offender->id == kNoStatement) found = "none";
  return invalid(program, &offender->location, "a statement has no id of its own",
                 "an id that no other statement has, from number_statements()", found);
}
}  // namespace

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (!std::ranges::all_of(name, fits)) return false;
  return kReserved.find(fmt::format(" {} ", name)) == std::string_view::npos;
}

bool is_grid_variable(std::string_view name) {
  return std::ranges::find(kGridVariables, name) != kGridVariables.end();
}

tl::unexpected<Error> invalid(const Program& program, const Location* location,
                              const std::string& message, const std::string& expected,
                              const std::string& found) {
  std::string place = place_of(program);
  if (location) place = fmt::format("{}:{}", location->file, location->line);
  return fail({ErrorCode::kTileInvalid, message, place, expected, found,
               "change the statement, or the declarations that it uses"});
}

Status verify(const Program& program) {
  WARPLOOM_CHECK(verify_identities(program));
  WARPLOOM_CHECK(verify_declarations(program));
  WARPLOOM_CHECK(verify_statements(program));
  return verify_sharing(program);
}
}  // namespace warploom::tile
