#include "codegen/launch_list.h"
namespace warploom {
namespace {
using nlohmann::json;

json to_json(const TensorMapSpec& map) {
  return {{"dtype", name_of(map.dtype)},
          {"dims", map.dims},
          {"strides_bytes", map.strides_bytes},
          {"box", map.box},
          {"swizzle_bytes", map.swizzle_bytes}};
}
json to_json(const Argument& arg) {
  json out = {{"buffer", arg.buffer}};
  if (arg.tensor_map) out["tensor_map"] = to_json(arg.map);
  if (arg.zeroed) out["zeroed"] = true;
  return out;
}
json to_json(const Kernel& kernel) {
  json args = json::array();
  for (const auto& arg : kernel.args) args.push_back(to_json(arg));
  return {{"name", kernel.name},
          {"source", kernel.source},
          {"grid", kernel.grid},
          {"cluster", kernel.cluster},
          {"threads", kernel.threads},
          {"shared_bytes", kernel.shared_bytes},
          {"args", args},
          {"overlaps", kernel.overlaps},
          {"cooperative", kernel.cooperative}};
}
json to_json(const BufferSpec& buffer) {
  return {{"name", buffer.name}, {"dtype", name_of(buffer.dtype)}, {"shape", buffer.shape}};
}
json to_json(const std::vector<BufferSpec>& buffers) {
  json out = json::array();
  for (const auto& buffer : buffers) out.push_back(to_json(buffer));
  return out;
}

Dtype dtype_from(const json& text) {
  const auto dtype = dtype_named(text.get<std::string>());
  if (!dtype) throw json::other_error::create(501, "unknown element type " + text.get<std::string>(), nullptr);
  return *dtype;
}
std::vector<BufferSpec> buffers_from(const json& list) {
  std::vector<BufferSpec> out;
  for (const auto& row : list)
    out.push_back({row.at("name"), dtype_from(row.at("dtype")), row.at("shape").get<std::vector<std::int64_t>>()});
  return out;
}
Argument argument_from(const json& row) {
  Argument arg{row.at("buffer"), row.contains("tensor_map"), {}, row.value("zeroed", false)};
  if (!arg.tensor_map) return arg;
  const json& map = row["tensor_map"];
  arg.map = {dtype_from(map.at("dtype")), map.at("dims"), map.at("strides_bytes"), map.at("box"), map.at("swizzle_bytes")};
  return arg;
}
}  // namespace
std::int64_t BufferSpec::elements() const {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}
std::int64_t BufferSpec::bytes() const { return bytes_of(dtype, elements()); }

std::int64_t LaunchList::workspace_bytes() const {
  std::int64_t total = 0;
  for (const auto& workspace : workspaces) total += workspace.bytes();
  return total;
}

json to_json(const LaunchList& list) {
  json kernels = json::array();
  for (const auto& kernel : list.kernels) kernels.push_back(to_json(kernel));
  return {{"engine", list.engine == Engine::cuda ? "cuda" : "cpu"},
          {"arch", list.arch},
          {"inputs", to_json(list.inputs)},
          {"outputs", to_json(list.outputs)},
          {"workspaces", to_json(list.workspaces)},
          {"kernels", kernels}};
}

Result<LaunchList> launch_list_from_json(const json& text) {
  try {
    LaunchList list;
    list.engine = text.at("engine") == "cuda" ? Engine::cuda : Engine::cpu;
    list.arch = text.at("arch");
    list.inputs = buffers_from(text.at("inputs"));
    list.outputs = buffers_from(text.at("outputs"));
    list.workspaces = buffers_from(text.at("workspaces"));
    for (const auto& row : text.at("kernels")) {
      Kernel kernel{row.at("name"),
                    row.at("source"),
                    row.at("grid"),
                    row.at("cluster"),
                    row.at("threads"),
                    row.at("shared_bytes"),
                    {},
                    row.value("overlaps", false),
                    row.value("cooperative", false)};
      for (const auto& arg : row.at("args")) kernel.args.push_back(argument_from(arg));
      list.kernels.push_back(std::move(kernel));
    }
    return list;
  } catch (const json::exception& error) {
    return fail({ErrorCode::kPlanInvalid, "a launch list cannot be read", "", "the form that to_json writes", error.what(),
                 "make the plan again with `warploom optimize`"});
  }
}
}  // namespace warploom
