#include "codegen/launch_list.h"
#include "tile/program.h"
namespace warploom {
using nlohmann::json;

// Found by nlohmann::json through their arguments' namespace.
static void to_json(json& out, Dtype dtype) { out = name_of(dtype); }
static void from_json(const json& text, Dtype& dtype) {
  const auto named = dtype_named(text.get<std::string>());
  if (!named) throw json::other_error::create(501, "unknown element type " + text.get<std::string>(), nullptr);
  dtype = *named;
}
NLOHMANN_JSON_SERIALIZE_ENUM(Engine, {{Engine::cuda, "cuda"}, {Engine::cpu, "cpu"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorMapSpec, dtype, dims, strides_bytes, box, swizzle_bytes)
static void to_json(json& out, const Argument& arg) {
  out = {{"buffer", arg.buffer}};
  if (arg.tensor_map) out["tensor_map"] = arg.map;
  if (arg.zeroed) out["zeroed"] = true;
  if (arg.atomic) out["atomic"] = true;
}
static void from_json(const json& row, Argument& arg) {
  arg = {row.at("buffer"), row.contains("tensor_map"), {}, row.value("zeroed", false), row.value("atomic", false)};
  if (arg.tensor_map) arg.map = row["tensor_map"];
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Kernel, name, source, grid, cluster, threads, shared_bytes, args, overlaps, cooperative)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BufferSpec, name, dtype, shape)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchList, engine, arch, inputs, outputs, workspaces, kernels)

std::int64_t BufferSpec::elements() const { return tile::element_count(shape); }
std::int64_t BufferSpec::bytes() const { return bytes_of(dtype, elements()); }

json to_json(const LaunchList& list) { return list; }

Result<LaunchList> launch_list_from_json(const json& text) {
  const auto unfit = [](const char* message, const char* expected, const std::string& found) {
    return fail({ErrorCode::kPlanInvalid, message, "", expected, found, "make the plan again with `warploom optimize`"});
  };
  try {
    const auto list = text.get<LaunchList>();
    std::set<std::string> names;
    for (const auto* specs : {&list.inputs, &list.outputs, &list.workspaces})
      for (const BufferSpec& spec : *specs) names.insert(spec.name);
    for (const Kernel& kernel : list.kernels)
      for (const Argument& arg : kernel.args)
        if (!names.contains(arg.buffer))
          return unfit("a kernel's argument names no buffer of its launch list", "an input, output or workspace", arg.buffer);
    return list;
  } catch (const json::exception& error) {
    return unfit("a launch list cannot be read", "the form that to_json writes", error.what());
  }
}
}  // namespace warploom
