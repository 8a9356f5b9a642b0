// Rules of the declarations: names, shapes, strides, grid, cluster, warps, pipelines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "tile/shape.h"
#include "tile/verify_rules.h"

namespace warploom::tile {
namespace {

constexpr std::int64_t kLargestTensor = std::int64_t{1} << 48;  // elements
constexpr int kMostWarps = 32;

constexpr std::array<std::string_view, 4> kGridVariables = {"block_x", "block_y", "block_z", "cluster_rank"};

// Words of C++ and CUDA, and those that the printed form of a value needs.
constexpr std::string_view kReserved =
    " alignas alignof asm auto bool break case catch char class const constexpr const_cast continue decltype default "
    "delete "
    "do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept nullptr operator private protected public register reinterpret_cast requires return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef "
    "typeid typename union unsigned using virtual void volatile while and or not xor "
    "threadIdx blockIdx blockDim gridDim warpSize inf nan wl main ";

Status check_name(const Program& program, std::set<std::string>& taken, std::string_view kind,
                  const std::string& name) {
  const std::string what = fmt::format("{} '{}'", kind, name);
  if (!is_identifier(name))
    return invalid_declaration(program, what, "the name is no C identifier that is free to use");
  if (is_grid_variable(name)) return invalid_declaration(program, what, "the name is that of a grid variable");
  if (!taken.insert(name).second) return invalid_declaration(program, what, "the name is declared twice");
  return ok();
}

Status check_names(const Program& program) {
  if (!is_identifier(program.name))
    return invalid_declaration(program, "its name", "the name is no C identifier that is free to use");
  std::set<std::string> taken;
  for (const Tensor& tensor : program.tensors) WARPLOOM_CHECK(check_name(program, taken, "tensor", tensor.name));
  for (const Pipeline& pipeline : program.pipelines)
    WARPLOOM_CHECK(check_name(program, taken, "pipeline", pipeline.name));
  for (const Statement& statement : program.body)
    if (const Roles* roles = std::get_if<Roles>(&statement.node))
      for (const Role& role : roles->roles) WARPLOOM_CHECK(check_name(program, taken, "role", role.name));
  return ok();
}

Status check_strides(const Program& program, const Tensor& tensor, const std::string& what) {
  if (tensor.scope != Scope::global)
    return tensor.strides.empty() ? ok()
                                  : Status(invalid_declaration(program, what, "only a global tensor has strides"));
  if (tensor.strides.size() != tensor.shape.size())
    return invalid_declaration(program, what, "a global tensor needs one stride a dimension");
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t reach = 0;
    if (tensor.strides[i] < 0 || __builtin_mul_overflow(tensor.strides[i], tensor.shape[i] - 1, &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > kLargestTensor)
      return invalid_declaration(program, what, "a stride is negative or reaches too far");
    if (tensor.writable && tensor.strides[i] == 0 && tensor.shape[i] > 1)
      return invalid_declaration(program, what, "an output has a stride of 0, so that elements share their place");
  }
  return ok();
}

Status check_tensor(const Program& program, const Tensor& tensor) {
  const std::string what = fmt::format("tensor '{}'", tensor.name);
  if (tensor.shape.empty()) return invalid_declaration(program, what, "the tensor has no dimension");
  const std::int64_t count = element_count(tensor.shape);
  if (count < 1 || count > kLargestTensor)
    return invalid_declaration(program, what, "an extent is below 1, or the tensor is too large");
  if (tensor.writable && tensor.scope != Scope::global)
    return invalid_declaration(program, what, "only a global tensor is an output");
  return check_strides(program, tensor, what);
}

Status check_grid(const Program& program) {
  if (program.grid.size() != 3 || program.cluster.size() != 3)
    return invalid_declaration(program, "grid", "grid and cluster have three extents each");
  for (std::size_t i = 0; i < 3; ++i) {
    if (program.grid[i] < 1 || program.cluster[i] < 1)
      return invalid_declaration(program, "grid", "an extent of grid or cluster is below 1");
    if (program.grid[i] % program.cluster[i] != 0)
      return invalid_declaration(program, "grid",
                                 fmt::format("grid [{}] is no multiple of cluster [{}]", fmt::join(program.grid, ", "),
                                             fmt::join(program.cluster, ", ")));
  }
  if (element_count(program.grid) < 1) return invalid_declaration(program, "grid", "the grid is too large");
  if (program.warps < 1 || program.warps > kMostWarps)
    return invalid_declaration(program, "warps",
                               fmt::format("{} warps a block; 1 to {} can be", program.warps, kMostWarps));
  return ok();
}

Status check_pipelines(const Program& program) {
  std::vector<PipelineId> owner(program.tensors.size(), -1);
  for (std::size_t id = 0; id < program.pipelines.size(); ++id) {
    const Pipeline& pipeline = program.pipelines[id];
    const std::string what = fmt::format("pipeline '{}'", pipeline.name);
    if (pipeline.stages < 1) return invalid_declaration(program, what, "a pipeline has at least one stage");
    if (pipeline.tensors.empty()) return invalid_declaration(program, what, "a pipeline has at least one tensor");
    for (const TensorId tensor : pipeline.tensors) {
      if (tensor < 0 || static_cast<std::size_t>(tensor) >= program.tensors.size() ||
          program.tensor(tensor).scope != Scope::shared)
        return invalid_declaration(program, what, "a pipeline holds shared tensors only");
      if (owner[static_cast<std::size_t>(tensor)] >= 0)
        return invalid_declaration(program, what,
                                   fmt::format("tensor '{}' is in a pipeline twice", program.tensor(tensor).name));
      owner[static_cast<std::size_t>(tensor)] = static_cast<PipelineId>(id);
    }
  }
  for (std::size_t i = 0; i < owner.size(); ++i)
    if (program.tensors[i].pipeline != owner[i])
      return invalid_declaration(program, fmt::format("tensor '{}'", program.tensors[i].name),
                                 "the tensor and the pipelines disagree on whose slot it is");
  return ok();
}

}  // namespace

tl::unexpected<Error> invalid_declaration(const Program& program, std::string_view what, std::string message) {
  const std::string place = fmt::format("program '{}': {}", program.name, what);
  return fail({ErrorCode::kTileInvalid, std::move(message), place, "", "", "change the declaration"});
}

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (!std::all_of(name.begin(), name.end(), fits)) return false;
  return kReserved.find(fmt::format(" {} ", name)) == std::string_view::npos;
}

bool is_grid_variable(std::string_view name) {
  return std::find(kGridVariables.begin(), kGridVariables.end(), name) != kGridVariables.end();
}

Status verify_declarations(const Program& program) {
  WARPLOOM_CHECK(check_names(program));
  WARPLOOM_CHECK(check_grid(program));
  for (const Tensor& tensor : program.tensors) WARPLOOM_CHECK(check_tensor(program, tensor));
  return check_pipelines(program);
}

}  // namespace warploom::tile
