#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/cuda_analysis.h"
#include "codegen/cuda_emitter.h"
#include "codegen/launch_list.h"
#include "codegen/pipeline_stages.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using nlohmann::json;
using target::Capabilities;

// Not where blocks must all run together, or a buffer is cleared before the launch.
bool uses_pdl(const Program& program, const Capabilities& capabilities) {
  return capabilities.has_pdl && !program.cooperative &&
         std::ranges::none_of(program.tensors, &Tensor::zeroed);
}

int64_t blocks_of(const Program& program) {
  int64_t blocks = 1;
  for (const int64_t extent : program.grid)
    blocks *= extent;
  return blocks;
}

// Whether blocks are many and none stays: those of the next kernel that come early then find an
// even share of room everywhere.
bool blocks_pass(const Program& program, const Capabilities& capabilities) {
  return program.pipelines.empty() && blocks_of(program) >= 4 * capabilities.num_sms;
}

// The least that a multiprocessor must hold for all to run together, where they must.
int64_t resident_blocks(const Program& program, const Capabilities& capabilities) {
  return program.cooperative ? ceil_div(blocks_of(program), capabilities.num_sms) : 1;
}
}  // namespace

Result<Kernel> CudaEmitter::run() {
  shared_bytes_ = solution_.shared_bytes;
  for (PipelineId id = 0; id < static_cast<PipelineId>(program_.pipelines.size()); ++id)
    if (analysis_.has_barriers(id))
      barriers_[id] = allocate(2 * kBarrierBytes * program_.pipeline(id).stages);
  if (analysis_.cluster_reductions() > 0) meetings_ = allocate(2 * kBarrierBytes);
  role_threads_ = program_.warps * 32;
  out_.indent();

  const std::span<const Statement> all(program_.body);
  if (!roles_of(program_)) {
    section(all);
  } else {
    if (all.size() > 1) {  // done by all before the roles begin
      const auto scope = out_.block("{{");
      section(all.first(all.size() - 1));
      out_.line("wl::sync_threads();");
    }
    statement(all.back());
  }
  bool together = false;  // blocks of a cluster reach into each other up to their end
  for (const auto& [id, offset] : barriers_)
    together |= peers_of(id).blocks() > 1;
  for (const auto& site : analysis_.sites)
    if (const auto* copy = site.statement->as<Copy>()) together |= copy->peer.has_value();
  if (error_) return fail(*error_);
  Kernel kernel{.name = program_.name, .threads = program_.warps * 32};
  kernel.shared_bytes = shared_bytes_;
  kernel.args = args_;
  set_source(kernel, "kernel/cuda.cu", record(together));
  return kernel;
}

// Statements of one thread of control, behind the declarations that they turn out to need.
void CudaEmitter::section(std::span<const Statement> statements) {
  const Writer before = out_;
  const size_t mark = before.text().size();
  digits_.clear();
  pipeline_counters(statements);
  {
    const auto guard = out_.block_if(single_thread_ ? "t == 0" : "");
    body(statements);
  }
  write(sync_.at_end_of(role_));
  const std::string text = out_.text().substr(mark);
  out_ = before;
  const std::string behind_others = role_first_ > 0 ? fmt::format(" - {}", role_first_) : "";
  out_.line("const int t = wl::thread(){};", behind_others);
  for (const std::string& declaration : digits_)
    out_.line("{}", declaration);
  declare_registers();
  out_.raw(text);
}

// The arrays of the role's register tensors.
void CudaEmitter::declare_registers() {
  std::set<TensorId> used;
  for (const auto& site : analysis_.sites)
    for (const TensorUse& use : uses_of(*site.statement))
      if (site.role == role_ && tensor(use.tensor).scope == Scope::reg) used.insert(use.tensor);
  for (const TensorId id : used) {
    const Tensor& t = tensor(id);
    const int64_t length = array_length(id, registers(id).values());
    const std::string layout = layout::to_string(coalesce(registers(id)));
    out_.line("WL_REG({}, {}, {});  // [{}], {}", cuda_type(t.dtype), t.name, length,
              fmt::join(t.shape, ", "), layout);
  }
}

// What has been written, in resources/kernel/cuda.cu.
json CudaEmitter::record(bool together) const {
  const auto joined = [](const auto& list, const char* by) {
    return fmt::format("{}", fmt::join(list, by));
  };
  json record;
  record["grid"] = joined(program_.grid, " x ");
  record["threads"] = program_.warps * 32;
  record["arch"] = capabilities_.arch;
  record["params"] = joined(params_, ", ");
  record["body"] = out_.text();
  record["shared_bytes"] = shared_bytes_;
  if (const auto blocks = cluster_size(program_); blocks > 1)
    record["cluster"] = {{"blocks", blocks}, {"extents", joined(program_.cluster, ", ")}};
  for (TensorId id = 0; id < static_cast<TensorId>(program_.tensors.size()); ++id) {
    if (solution_.prepacked.contains(id)) record["packed"].push_back(packed_record(id));
    if (tensor(id).scope == Scope::shared) record["tensors"].push_back(shared_record(id));
  }
  for (const auto& [id, full] : barriers_)
    record["pipelines"].push_back(pipeline_record(id, full));
  if (meetings_) record["meetings"] = {{"first", *meetings_}, {"second", kBarrierBytes}};
  record["barriers"] = meetings_ || !barriers_.empty();
  record["apart"] = cluster_size(program_) == 1 && !barriers_.empty();
  record["early"] = uses_pdl(program_, capabilities_);
  record["together"] = together;
  record["passing"] = blocks_pass(program_, capabilities_);
  record["resident"] = resident_blocks(program_, capabilities_);
  for (const std::string_view place : kGridVariables)
    if (out_.text().find(place) != std::string::npos) record["places"].push_back({{"name", place}});
  return record;
}

json CudaEmitter::packed_record(TensorId id) const {
  const Tensor& t = tensor(id);
  json row;
  row["name"] = t.name;
  row["type"] = name_of(t.dtype);
  row["shape"] = text_of(t.shape);
  row["layout"] = to_string(solution_.prepacked.at(id));
  return row;
}

json CudaEmitter::shared_record(TensorId id) const {
  const Tensor& t = tensor(id);
  json row;
  row["name"] = t.name;
  row["offset"] = solution_.shared_offset.at(id);
  row["type"] = name_of(t.dtype);
  row["shape"] = text_of(t.shape);
  row["layout"] = to_string(solution_.shared.at(id));
  if (!is_stage(id)) return row;
  const int stages = program_.pipeline(t.pipeline).stages;
  row["stages"] = {{"count", stages}, {"bytes", solution_.stage_bytes.at(id)}};
  return row;
}

// `full`: where the full barriers lie; the empty ones follow.
json CudaEmitter::pipeline_record(PipelineId id, int64_t full) const {
  const Pipeline& p = program_.pipeline(id);
  json row;
  row["name"] = p.name;
  row["stages"] = p.stages;
  row["full"] = full;
  row["empty"] = full + kBarrierBytes * p.stages;
  std::map<int, int> warps;  // that consume it, by role
  for (const auto& site : analysis_.sites) {
    const auto* node = site.statement->as<Consume>();
    if (node && node->pipeline == id) warps[site.role] = site.threads / 32;
  }
  int arrivals = 0;
  for (const auto& [role, count] : warps)
    arrivals += count * peers_of(id).blocks();
  if (fills_again(program_, id)) row["handed_back"] = {{"arrivals", arrivals}};
  return row;
}

void CudaEmitter::body(std::span<const Statement> statements) {
  for (const Statement& one : statements) {
    if (analysis_.skipped_fills.fills.contains(one.id))
      out_.line("// {}: its first product begins anew", print(program_, one));
    else
      statement(one);
  }
  finish_meeting();
}

void CudaEmitter::statement(const Statement& one) {
  ++statements_written_;
  bool simple = true;
  for_bodies(one, [&](const Body&) { simple = false; });
  at_ = &one;
  synchronize(SyncPart::before);
  if (simple) out_.line("// {}", print(program_, one));
  one.visit([this](const auto& node) { emit(node); });
}

namespace {
// Sums and products of constants and variables.
bool is_simple(const Index& index) {
  if (index.op() == IndexOp::constant || index.op() == IndexOp::variable) return true;
  const bool combines = index.op() == IndexOp::add || index.op() == IndexOp::mul;
  return combines && is_simple(index.left()) && is_simple(index.right());
}
}  // namespace

// Names for the offsets of global tiles that take more than a product and a sum, computed once a
// turn of the loop.
void CudaEmitter::name_offsets(const For& node) {
  std::vector<std::string> inner;
  std::vector<Index> used;
  const auto use = [&](const Tile& tile) {
    if (tensor(tile.tensor).scope == Scope::global)
      used.insert(used.end(), tile.offset.begin(), tile.offset.end());
  };
  for (const Statement& statement : node.body)
    for_statements(statement, [&](const Statement& one) {
      if (const auto* copy = one.as<Copy>()) {
        use(copy->src);
        use(copy->dst);
      }
      if (const auto* branch = one.as<If>()) used.insert(used.end(), {branch->left, branch->right});
      if (const auto* loop = one.as<For>()) {
        inner.push_back(loop->variable);
        used.insert(used.end(), {loop->begin, loop->end});
      }
    });
  int count = 0;
  for (const Index& index : used) {
    const bool ready =
        std::ranges::none_of(inner, [&](const auto& v) { return index.depends_on(v); });
    const bool turns_with_loop = ready && index.depends_on(node.variable);
    const bool named_already = offsets_.contains(index.text());
    if (!turns_with_loop || is_simple(index) || named_already) continue;
    const std::string name = fmt::format("{}_at{}", node.variable, count++);
    out_.line("const int {} = {};", name, index.text());
    offsets_[index.text()] = name;
  }
}

void CudaEmitter::emit(const For& node) {
  if (analysis_.never_runs(node)) return;  // what it would read need not have been written
  const StatementId id = at_->id;
  if (node.unroll) out_.line("WL_UNROLL");
  {
    const std::string begin = named(node.begin).text();
    const std::string end = named(node.end).text();
    const auto block = out_.block("for (int {0} = {1}; {0} < {2}; {0} += {3}) {{", node.variable,
                                  begin, end, node.step.text());
    const auto outer = offsets_;
    name_offsets(node);
    body(node.body);
    offsets_ = outer;
  }
  drain(id, node.body);
}

void CudaEmitter::emit(const If& node) {
  synchronize(SyncPart::inside);
  const Index left = named(node.left);
  const Index right = named(node.right);
  out_.open("if ({} < {}) {{", left.text(), right.text());
  body(node.body);
  out_.close();
  for (const Statement& inner : node.body) {
    const auto* made = inner.as<Produce>();
    if (made && !analysis_.has_barriers(made->pipeline))
      out_.line("else wl::cp_async_commit();  // an empty group: waits count them");
  }
}

void CudaEmitter::emit(const Roles& node) {
  int first = 0;
  for (size_t i = 0; i < node.roles.size(); ++i) {
    const Role& role = node.roles[i];
    role_ = as_int(i);
    role_threads_ = role.warps * 32;
    role_first_ = first;
    const bool last = i + 1 == node.roles.size();
    first += role_threads_;
    single_thread_ = analysis_.is_single_thread(role_);
    const char* otherwise = i > 0 ? "else " : "";
    const std::string condition =
        last && i > 0 ? "" : fmt::format("if (wl::thread() < {}) ", first);
    out_.open("{}{}{{  // {}: {} warps", otherwise, condition, role.name, role.warps);
    // setmaxnreg: below the kernel's default a role gives registers back, above it asks for more.
    if (role.registers > 0) {
      const int fair = capabilities_.registers / (program_.warps * 32) / 8 * 8;
      const char* change = role.registers < fair ? "dealloc" : "alloc";
      out_.line("wl::reg_{}<{}>();", change, role.registers);
    }
    section(role.body);
    single_thread_ = false;
    out_.close();
  }
}

void CudaEmitter::note_pointer(TensorId id) {
  const Tensor& t = tensor(id);
  const char* qualifier = t.writable ? "" : "const ";
  const std::string param = fmt::format("{}{}* {}", qualifier, cuda_type(t.dtype), t.name);
  if (std::ranges::find(params_, param) != params_.end()) return;
  params_.push_back(param);
  note_argument(id, false);
}

void CudaEmitter::note_argument(TensorId id, bool tensor_map, const TensorMapSpec& spec) {
  const std::string& buffer = given_.tensor(id).name;
  const bool first = std::ranges::find(args_, buffer, &Argument::buffer) == args_.end();
  Argument& arg = args_.emplace_back();
  arg.buffer = buffer;
  arg.tensor_map = tensor_map;
  arg.map = spec;
  arg.zeroed = tensor(id).zeroed && first;
  arg.written = tensor(id).writable;
  const auto packed = solution_.prepacked.find(id);
  if (packed != solution_.prepacked.end()) arg.prepacked = packed->second.dims;
}

std::string CudaEmitter::note_map(TensorId global, const TensorMapSpec& spec) {
  const std::string& buffer = given_.tensor(global).name;
  int number = 1;  // among the tensor's maps
  bool known = false;
  for (const Argument& arg : args_) {
    if (!arg.tensor_map || arg.buffer != buffer) continue;
    known = arg.map == spec;
    if (known) break;
    ++number;
  }
  const std::string suffix = number > 1 ? fmt::format("_map{}", number) : "_map";
  const std::string map_name = name(global) + suffix;
  if (known) return map_name;
  params_.push_back("WL_TENSOR_MAP " + map_name);
  note_argument(global, true, spec);
  return map_name;
}

int64_t CudaEmitter::allocate(int64_t bytes) {
  const int64_t offset = round_up(shared_bytes_, 16);
  shared_bytes_ = offset + bytes;
  return offset;
}

void CudaEmitter::meet() {
  if (role_ < 0)
    out_.line("wl::sync_threads();");
  else
    out_.line("wl::sync_named({}, {});", role_ + 1, role_threads_);
}

// wgmma in flight writes the accumulator's registers: the compiler must neither move uses of them
// across this place nor copy them.
void CudaEmitter::fence_registers(TensorId id) {
  out_.line("wl::wgmma_fence_regs<{}>(wl::at({}, 0));", registers(id).values(), name(id));
}

void CudaEmitter::write(const std::vector<SyncAction>& actions) {
  for (const SyncAction& action : actions) {
    switch (action.kind) {
      case SyncKind::meet: meet(); break;
      case SyncKind::meet_warp: out_.line("wl::sync_warp();"); break;
      case SyncKind::fence_async:
        out_.line(
            "wl::fence_async_shared();  // what the threads wrote, for asynchronous readers "
            "to see");
        break;
      case SyncKind::wait_tma_reads:
        out_.line(
            "if (t == 0) wl::bulk_wait_read<0>();  // the engine has read what is about to "
            "be overwritten");
        break;
      case SyncKind::wait_tma_stores:
        out_.line("if (t == 0) wl::bulk_wait<0>();  // the stores must land before the block ends");
        break;
      case SyncKind::open_wgmma:
        for (const TensorId id : action.tensors)
          fence_registers(id);
        out_.line("wl::wgmma_fence();");
        break;
      case SyncKind::commit_wgmma: out_.line("wl::wgmma_commit();"); break;
      case SyncKind::wait_wgmma:
        out_.line("wl::wgmma_wait<{}>();", action.groups);
        for (const TensorId id : action.tensors)
          fence_registers(id);
        break;
      case SyncKind::finish_cluster_reduce: finish_meeting(); break;
    }
  }
}

namespace {
// That can run at the same time. An upper bound; registers may allow fewer, which the driver knows.
int64_t most_resident_blocks(const Kernel& kernel, const target::Capabilities& capabilities) {
  const int64_t by_threads = capabilities.threads_per_sm / kernel.threads;
  const int64_t bytes = std::max<int64_t>(kernel.shared_bytes, 1);
  return capabilities.num_sms * std::min(by_threads, capabilities.shared_bytes / bytes);
}

Error too_many_blocks(const Program& program, int64_t most) {
  return {ErrorCode::kResourceLimit,
          "the blocks of a cooperative program cannot all run at the same time",
          program.name,
          fmt::format("at most {} blocks", most),
          fmt::format("{}", element_count(program.grid)),
          "use fewer blocks, each with more of the work"};
}
}  // namespace

Result<Kernel> emit_cuda(const Program& program, const synth::Solution& solution,
                         const Capabilities& capabilities) {
  // What the text names for itself, beside digits of the thread's number and loops over its values.
  static const std::regex own_names(
      "t(_div[0-9]+)?(_mod[0-9]+)?|i[0-9]*|u[0-9]+|[jemnw]|kk|smem|panel|peer|stage|done|moved|"
      "wide|"
      "other|run|total|block|"
      "before|lower|next|from|pick|met|meeting|part|half|[ab]_desc|"
      ".*_(full|empty|stage|phase|peers|pending|write|read|map[0-9]*|at[0-9]*)");
  const Program own = in_source_terms(program, own_names);
  WARPLOOM_TRY(Kernel kernel, CudaEmitter(own, program, capabilities, solution).run());
  for (size_t d = 0; d < 3; ++d) {
    kernel.grid[d] = program.grid[d];
    kernel.cluster[d] = program.cluster[d];
  }
  kernel.cooperative = program.cooperative;
  kernel.programmatic_launch = uses_pdl(program, capabilities);
  if (program.cooperative) {
    const int64_t most = most_resident_blocks(kernel, capabilities);
    if (element_count(program.grid) > most) return fail(too_many_blocks(program, most));
  }
  if (kernel.shared_bytes <= capabilities.shared_bytes) return kernel;
  std::map<TensorId, int64_t> bytes;
  for (const auto& [id, stage_bytes] : solution.stage_bytes) {
    const Tensor& t = program.tensor(id);
    if (t.as_strided >= 0) continue;
    const int stages = t.pipeline < 0 ? 1 : program.pipeline(t.pipeline).stages;
    bytes[id] = stage_bytes * stages;
  }
  return synth::too_much(program, bytes, "a block needs more shared memory than the target has",
                         capabilities.shared_bytes, kernel.shared_bytes,
                         "use fewer stages or a smaller tile");
}
}  // namespace warploom::codegen
