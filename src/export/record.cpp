#include "export/record.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "codegen/memory_plan.h"
#include "codegen/prepare.h"
#include "export/bundle.h"
#include "export/names.h"
#include "graph/graph.h"
#include "runtime/compilers.h"
#include "runtime/type_codes.h"

namespace warploom::export_ {
namespace {
using nlohmann::json;

// 16- and 8-bit floats by CUDA's own names on the GPU, by their bits on the CPU.
std::string parameter_type(Dtype dtype, bool gpu) {
  const int bits = bits_of(dtype);
  if (!is_float(dtype) || bits > 16) return std::string(cpu_type(dtype));
  if (!gpu) return fmt::format("std::uint{}_t", bits);
  if (bits == 8) return fmt::format("__nv_fp8_{}", name_of(dtype));
  return dtype == Dtype::bf16 ? "__nv_bfloat16" : "__half";
}

// Those the kernels were judged with, less what makes them a shared library.
std::string cpu_flags(const LaunchList& list) {
  std::vector<std::string> flags = runtime::cpu_compile_flags(list.arch);
  std::erase_if(flags, [](const std::string& flag) {
    return flag == "-shared" || flag == "-fPIC" || flag.starts_with("-std=");
  });
  return listed(flags, {}, " ");
}

// With which the PyTorch module compiles the sources: those of the Makefile.
std::string module_flags(const LaunchList& list) {
  if (list.engine == Engine::cpu) return "-std=c++20 -pthread " + cpu_flags(list);
  return fmt::format("-std=c++17 -O3 -gencode arch=compute_{0},code=sm_{0}", list.arch.substr(3));
}

// What a call starts, one thing after another: kernels, and the buffers that it fills with zeros.
size_t starts_of_call(const LaunchList& list) {
  size_t starts = 0;
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    if (prepares(list, k)) continue;
    const auto& args = list.kernels[k].args;
    starts += 1 + as_size(std::ranges::count_if(args, &Argument::zeroed));
  }
  return starts;
}

// Of so many starts a CUDA graph takes the host less time than they do one by one: to replay one
// takes as long as to start two kernels.
constexpr size_t kRecordedFrom = 3;

// How the launcher spells a buffer's address, and how many bytes lie there.
struct Place {
  std::string address;
  int64_t bytes;
};

class Recorder {
 public:
  Recorder(const BundleInfo& info, const LaunchList& list)
      : info_(info), list_(list), gpu_(list.engine == Engine::cuda) {}

  json record() {
    describe_whole();
    describe_tensors("inputs", list_.inputs);
    describe_tensors("outputs", list_.outputs);
    record_["types"] = types_;
    place_workspaces();
    record_["kernels"] = to_json(list_)["kernels"];
    std::string sources;
    for (size_t k = 0; k < list_.kernels.size(); ++k) {
      sources += list_.kernels[k].source;
      describe_kernel(k);
    }
    record_["hash"] = hash_hex(sources).substr(0, 8);
    describe_prepare();
    describe_starts();
    return std::move(record_);
  }

 private:
  void describe_whole() {
    std::vector<std::string> taken;
    const std::string name = identifier(info_.name, taken, Named::bundle);
    const std::string& arch = list_.arch;
    const std::string engine = gpu_ ? "bundle/cuda/engine.cpp" : "bundle/cpu/engine.cpp";
    record_["bundle"] = name;
    record_["summary_markdown"] = markdown_text(info_.summary);
    record_["headline_markdown"] = markdown_text(info_.headline);
    record_["comment"] = comment(info_.summary);
    record_["gpu"] = gpu_;
    record_["engine"] = gpu_ ? "ptx" : "cpu";
    record_["engine_text"] = resource(engine);
    record_["gpu_arch"] = gpu_ ? arch : "";
    record_["arch_number"] = arch.starts_with("sm_") ? arch.substr(3) : arch;
    record_["cpu_flags"] = gpu_ ? "" : cpu_flags(list_);
    record_["compiler"] = gpu_ ? "nvcc" : "g++ or what CXX names";
    record_["device"] = gpu_ ? "an " + arch + " GPU" : "the CPU";
    record_["module_flags"] = module_flags(list_);
    record_["kernel_file"] = name + (gpu_ ? ".cu" : "_kernels.cpp");
    record_["result"] = list_.outputs.size() == 1 ? "y" : "outputs";
  }

  void describe_tensors(const char* key, const std::vector<BufferSpec>& buffers) {
    for (const BufferSpec& buffer : buffers) {
      const size_t index = taken_.size();
      const std::string type = parameter_type(buffer.dtype, gpu_);
      const std::string variable = identifier(buffer.name, taken_);
      const std::string shape = graph::to_text(buffer.shape);
      json row;
      row["index"] = index;
      row["name"] = buffer.name;
      row["called"] = c_string(buffer.name);
      row["renamed"] = variable != buffer.name;
      row["variable"] = variable;
      row["type"] = type;
      row["dtype"] = name_of(buffer.dtype);
      row["shape"] = buffer.shape;
      row["elements"] = buffer.elements();
      row["constant"] = contains(list_.constants, buffer.name);
      row["text"] = fmt::format("{} {}", name_of(buffer.dtype), shape);
      record_[key].push_back(std::move(row));
      places_[buffer.name] = {fmt::format("wl_tensors[{}]", index), buffer.bytes()};
      if (type.starts_with("__")) types_.insert(type);
    }
  }

  // In the one workspace that the caller passes.
  void place_workspaces() {
    const MemoryPlan plan = memory_plan(list_);
    for (const PlacedBuffer& placed : plan.buffers) {
      const std::string address =
          fmt::format("static_cast<char*>(wl_workspace) + {}", placed.offset);
      places_[placed.name] = {address, placed.bytes};
    }
    record_["workspace_bytes"] = plan.arena_bytes;
  }

  void describe_kernel(size_t number) {
    const Kernel& kernel = list_.kernels[number];
    json& row = record_["kernels"][number];
    row.erase("source");
    row["index"] = number;
    row["grid"] = fmt::format("{}", fmt::join(kernel.grid, ", "));
    row["cluster"] = fmt::format("{}", fmt::join(kernel.cluster, ", "));
    row["blocks"] = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    row["cooperative"] = int{kernel.cooperative};
    row["overlaps"] = int{kernel.programmatic_launch};
    row["runs_when"] = prepares(list_, number) ? "wl_preparing" : "!wl_preparing";
    for (size_t i = 0; i < kernel.args.size(); ++i)
      describe_argument(row["args"][i], i, kernel.args[i]);
  }

  void describe_argument(json& row, size_t index, const Argument& argument) {
    const Place& place = places_.at(argument.buffer);
    row["index"] = index;
    row["address"] = place.address;
    if (argument.offset != 0)
      row["address"] = fmt::format("static_cast<char*>(static_cast<void*>({})) + {}", place.address,
                                   argument.offset);
    row["bytes"] = argument.bytes != 0 ? argument.bytes : place.bytes - argument.offset;
    if (!argument.tensor_map) return;
    record_["maps"] = true;
    const int64_t swizzle = argument.map.swizzle_bytes;
    json& map = row["tensor_map"];
    map["type"] = runtime::codes_of(argument.map.dtype).map_name;
    map["rank"] = argument.map.dims.size();
    map["swizzle"] = swizzle == 0 ? "NONE" : fmt::format("{}B", swizzle);
  }

  void describe_prepare() {
    record_["prepares"] = !list_.prepare.empty();
    std::vector<std::string> names;
    for (const json& input : record_["inputs"])
      if (input["constant"].get<bool>()) names.push_back(input["variable"]);
    record_["constant_names"] = listed(names);
    record_["prepared_bytes"] = prepared_bytes(list_);
    const bool is_object = info_.plan.is_object();
    const json took = is_object ? info_.plan.value("prepare_us", json()) : json();
    record_["prepare_text"] = took.is_number() ? time_text(took.get<double>()) : "";
  }

  void describe_starts() {
    const size_t starts = starts_of_call(list_);
    record_["starts"] = starts;
    record_["recorded"] = gpu_ && starts >= kRecordedFrom;
    record_["tensor_count"] = list_.inputs.size() + list_.outputs.size();
  }

  const BundleInfo& info_;
  const LaunchList& list_;
  bool gpu_;
  json record_;
  std::vector<std::string> taken_;  // names of parameters
  std::set<std::string> types_;     // of which pointers need only the names
  std::map<std::string, Place> places_;
};
}  // namespace

json record_of(const BundleInfo& info, const LaunchList& list) {
  return Recorder(info, list).record();
}
}  // namespace warploom::export_
