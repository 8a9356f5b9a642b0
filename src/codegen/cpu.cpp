#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <string>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/cpu_emitter.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "codegen/terms.h"
#include "synth/sites.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using nlohmann::json;

constexpr int64_t kMaxRegisterBytes = 400 << 10;
}  // namespace

bool is_narrow(Dtype dtype) {
  return dtype == Dtype::tf32 || (is_float(dtype) && bits_of(dtype) <= 16);
}

void CpuEmitter::unsupported(const std::string& message, const std::string& expected,
                             const std::string& found) {
  refuse(message, expected, found,
         "build the program for the CPU: tiles of f32, bf16 or f16, one thread of control a block");
}

template <class Other> void CpuEmitter::visit(const Other&) {
  unsupported("a statement has no counterpart on a CPU",
              "copies, maps, matrix products, reductions, loops and branches",
              print(program_, *at_));
}

void CpuEmitter::visit(const For& loop) {
  if (loop.unroll) out_.line("#pragma GCC unroll 16");
  const std::string begin = loop.begin.text();
  const std::string end = loop.end.text();
  const auto block = out_.block("for (long {0} = {1}; {0} < {2}; {0} += {3}) {{", loop.variable,
                                begin, end, loop.step.text());
  ranges_.enter(loop);
  loops_.push_back({loop.variable, loop.begin, loop.step.constant().value_or(1)});
  body(loop.body);
  loops_.pop_back();
}

void CpuEmitter::visit(const If& branch) {
  const auto block = out_.block("if ({} < {}) {{", branch.left.text(), branch.right.text());
  body(branch.body);
}

void CpuEmitter::statement(const Statement& statement) {
  at_ = &statement;
  if (!statement.is<For, If>()) out_.line("// {}", print(program_, statement));
  statement.visit([this](const auto& node) { visit(node); });
}

void CpuEmitter::body(const Body& statements) {
  const auto outside = std::exchange(aliases_, {});
  const auto runs = runs_of(statements);
  for (size_t i = 0; i < runs.size(); ++i) {
    const size_t first = runs[i].begin;
    const bool are_two = i + 1 < runs.size() && runs[i + 1].end - first == 2;
    if (const auto when = begins_product(statements, first))
      begins_ = *when;
    else if (are_two && copied_transposed(statements[first], statements[first + 1]))
      ++i;
    else if (!runs[i].shape.empty())
      fused(statements, runs[i], std::span(runs).subspan(i + 1));
    else
      statement(statements[first]);
  }
  aliases_ = outside;
}

// What is written, in resources/kernel/cpu.cpp.
Result<Kernel> CpuEmitter::emit() {
  const auto& grid = program_.grid;
  Kernel kernel{.name = program_.name, .threads = 1, .shared_bytes = layouts_.shared_floats * 4};
  std::ranges::copy(grid, kernel.grid.begin());
  json record;
  record["vector_bytes"] = capabilities_.vector_bytes;
  record["x"] = grid[0];
  record["y"] = grid[1];
  record["z"] = grid[2];
  record["plane"] = grid[0] * grid[1];
  if (const int64_t cluster = cluster_size(program_); cluster != 1)
    unsupported("a CPU has no clusters of blocks", "a cluster of 1 block", std::to_string(cluster));
  for (TensorId id = 0; id < static_cast<TensorId>(program_.tensors.size()); ++id) {
    const Tensor& tensor = program_.tensor(id);
    const Dtype dtype = tensor.dtype;
    const bool computes = dtype == Dtype::f32 || is_narrow(dtype) || is_integer(dtype);
    const bool stores_tf32 = tensor.writable && dtype == Dtype::tf32;
    if (!computes || stores_tf32)
      refuse_type(id);
    else if (tensor.scope == Scope::global)
      note_buffer(id, kernel, record);
  }
  out_.indent();
  if (!error_) body(program_.body);
  if (error_) return fail(*error_);
  for (size_t i = 0; i < program_.tensors.size(); ++i) {  // the body tells which need memory
    const Tensor& tensor = program_.tensors[i];
    if (!named_[i] || tensor.scope == Scope::global || tensor.as_strided >= 0) continue;
    json& row = record["arrays"].emplace_back();
    row["name"] = tensor.name;
    row["type"] = is_wide_integer(tensor.dtype) ? "long long" : "float";
    if (tensor.scope == Scope::reg)
      row["floats"] = layouts_.of[i].floats;
    else
      row["offset"] = layouts_.of[i].offset;
  }
  record["body"] = out_.text();
  record["streams"] = streams_;
  set_source(kernel, "kernel/cpu.cpp", std::move(record));
  return kernel;
}

void CpuEmitter::note_buffer(TensorId id, Kernel& kernel, json& record) const {
  const Tensor& buffer = tensor(id);
  const char* qualifier = buffer.writable ? "" : "const ";
  const std::string type = fmt::format("{}{}", qualifier, cpu_type(buffer.dtype));
  const size_t number = kernel.args.size();
  record["buffers"].push_back({{"type", type}, {"name", buffer.name}, {"number", number}});
  Argument& arg = kernel.args.emplace_back();
  arg.buffer = given_.tensor(id).name;
  arg.zeroed = buffer.zeroed;
  arg.written = buffer.writable;
}

void CpuEmitter::refuse_type(TensorId id) {
  const Tensor& refused = tensor(id);
  at_ = synth::first_use(synth::sites_of(program_), id);
  const std::string use = at_ ? ": " + print(program_, *at_) : "";
  const auto found = fmt::format("'{}' {}{}", refused.name, name_of(refused.dtype), use);
  unsupported("a tensor has a type that CPU kernels do not compute with",
              "f32, bf16, f16, e4m3, e5m2, i8, u8, i32, i64 or booleans", found);
}

Result<Kernel> emit_cpu(const Program& program, const target::Capabilities& capabilities) {
  // What the text names for itself: its parameters, and whatever ends in a number behind an
  // underscore.
  static const std::regex own_names("buffers|task|scratch|.*_[0-9]+(_box)?");
  const Program own = in_source_terms(program, own_names);
  WARPLOOM_TRY(CpuLayouts layouts, choose_cpu_layouts(own, capabilities));
  std::map<Scope, std::map<TensorId, int64_t>> bytes;
  for (TensorId id = 0; id < static_cast<TensorId>(layouts.of.size()); ++id)
    bytes[own.tensor(id).scope][id] = layouts.of[id].floats * 4;
  if (const auto all = layouts.shared_floats * 4; all > capabilities.shared_bytes)
    return synth::too_much(program, bytes[Scope::shared],
                           "the shared tensors do not fit in a core's L2 cache",
                           capabilities.shared_bytes, all, "take smaller tiles");
  if (const auto all = layouts.register_floats * 4; all > kMaxRegisterBytes)
    return synth::too_much(program, bytes[Scope::reg],
                           "the register tensors are larger than a thread's stack should hold",
                           kMaxRegisterBytes, all, "take smaller tiles");
  return CpuEmitter(own, program, capabilities, std::move(layouts)).emit();
}
}  // namespace warploom::codegen
