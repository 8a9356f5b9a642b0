#include "vendor/dnnl.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "runtime/executor.h"
#include "runtime/type_codes.h"
#include "vendor/places.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
using runtime::Bindings, runtime::Buffer;

namespace {
constexpr int kAnyTag = 1;
constexpr int kQueryName = 8;
constexpr int kQuerySrc = 129;
constexpr int kQueryWeights = 131;
constexpr int kQueryDst = 133;

// By Combine.
constexpr std::array kBinaryCodes = {0x1fff0, 0x1fff5, 0x1fff1, 0x1fff4, 0x1fff2, 0x1fff3};

// Which of a primitive's descriptors an argument's layout stands in, and its number there.
std::pair<int, int> query_of(int number) {
  if (number == kArgDst) return {kQueryDst, 0};
  if (number == kArgWeights) return {kQueryWeights, 0};
  return {kQuerySrc, number == kArgSecond ? 1 : 0};
}
}  // namespace

int binary_code(Combine combine) {
  return kBinaryCodes[as_size(combine)];
}

const Dnnl& Dnnl::get() {
  static const Dnnl dnnl;
  return dnnl;
}

std::string Dnnl::name() const {
  return fmt::format("oneDNN {}.{}.{}", version()->major, version()->minor, version()->patch);
}

std::unique_ptr<Library> dnnl_library(Layouts layouts, const VendorProblem& problem) {
  if (!Dnnl::get().ready) return nullptr;
  return std::make_unique<DnnlLibrary>(layouts, problem);
}

DnnlLibrary::DnnlLibrary(Layouts layouts, const VendorProblem& problem) : layouts_(layouts) {
  for (const Step& step : problem.steps)
    if (const Place* to = destination(step.operation)) passed_on_.insert(to->buffer);
  for (const graph::TensorId id : problem.graph.outputs)
    passed_on_.erase(problem.graph.tensor(id).name);
}

Result<MemoryDesc> DnnlLibrary::described(const Place& place) const {
  MemoryDesc out;
  Dnnl::Dims dims{};
  Dnnl::Dims strides{};
  const size_t rank = std::max<size_t>(place.shape.size(), 1);
  if (rank > dims.size()) return refused("so many axes");
  dims[0] = strides[0] = 1;
  std::ranges::copy(place.shape, dims.begin());
  std::ranges::copy(place.strides, strides.begin());
  // Axes of size 1 may have any stride; oneDNN wants one that no other axis would contradict.
  int64_t packed = 1;
  for (size_t d = rank; d-- > 0;) {
    if (dims[d] == 1) strides[d] = packed;
    const int64_t extent = strides[d] * dims[d];
    packed = std::max(packed, extent);
  }
  const int type = runtime::codes_of(place.dtype).dnnl;
  const auto axes = as_int(rank);
  if (type == 0 || d_.by_strides(&out, axes, dims.data(), type, strides.data()) != 0)
    return refused("an element type or layout");
  return out;
}

Result<MemoryDesc> DnnlLibrary::any_layout(const Place& place) const {
  MemoryDesc out;
  Dnnl::Dims dims{};
  std::ranges::copy(place.shape, dims.begin());
  const int type = runtime::codes_of(place.dtype).dnnl;
  const int rank = as_int(place.shape.size());
  if (type == 0 || d_.by_tag(&out, rank, dims.data(), type, kAnyTag) != 0)
    return refused("an element type");
  return out;
}

// Where a tensor lies that is read now.
Result<DnnlLibrary::Held> DnnlLibrary::where(const Place& place, Program& program) {
  WARPLOOM_TRY(const MemoryDesc desc, described(place));
  const auto kept = kept_.find(place.buffer);
  if (kept != kept_.end()) {
    const Place& written = kept->second.place;
    const bool packed = place.offset == 0 && is_packed(place);
    const bool whole = own_now_ && packed && written.shape == place.shape;
    if (whole) return kept->second.held;
    WARPLOOM_CHECK(release(place.buffer, program));
  }
  const int64_t offset = bytes_of(place.dtype, place.offset);
  return Held{desc, place.buffer, offset, reach_of(place)};
}

Status DnnlLibrary::take(Making& making, int number, const Place& place, bool open,
                         Program& program) {
  Operand operand{number, place, {}, open && own_now_};
  if (number == kArgDst) {
    WARPLOOM_TRY(operand.held.desc, described(place));
    operand.held.buffer = place.buffer;
    operand.held.offset = bytes_of(place.dtype, place.offset);
    operand.held.end = reach_of(place);
  } else {
    WARPLOOM_TRY(operand.held, where(place, program));
  }
  making.operands.push_back(std::move(operand));
  return ok();
}

Piece DnnlLibrary::piece_of(const Object& primitive, const Arguments& arguments) const {
  const std::string library = name();
  const auto run = [library, primitive](const std::vector<Dnnl::Argument>& given) {
    const Dnnl& d = Dnnl::get();
    const auto count = as_int(given.size());
    const void* const call = primitive.get();
    const int code = d.execute(call, d.stream, count, given.data());
    if (code == 0 && d.stream_wait(d.stream) == 0) return ok();
    const std::string found = fmt::format("status {}", code);
    const std::string message = "dnnl_primitive_execute failed";
    return Status(fail({ErrorCode::kInternal, message, library, "status 0", found}));
  };
  return [run, arguments, library](const Bindings& buffers) -> Result<runtime::Call> {
    const Dnnl& d = Dnnl::get();
    std::vector<std::pair<Buffer, Object>> kept;
    std::vector<Dnnl::Argument> given;
    for (const auto& [number, held] : arguments) {
      const auto found = buffers.find(held.buffer);
      if (found == buffers.end() || found->second.bytes() < held.end) {
        const std::string message = "a reference's buffer is missing or too small";
        const std::string expected = fmt::format("{} bytes", held.end);
        return fail({ErrorCode::kPlanInvalid, message, held.buffer, expected, "less"});
      }
      auto* const begin = static_cast<char*>(found->second.address());
      char* const data = begin + held.offset;
      const Object memory = d.memory(&held.desc, d.engine, data);
      if (!memory) return not_served(library, "a memory object it refused");
      kept.emplace_back(found->second, memory);
      given.push_back({number, memory.get()});
    }
    return [run, kept, given]() -> Status { return run(given); };
  };
}

Status DnnlLibrary::reorder(const Held& from, const Held& to, Program& program) {
  const Handle engine = d_.engine;
  const Object desc = d_.reorder(&from.desc, engine, &to.desc, engine, nullptr);
  const Object primitive = desc ? d_.primitive(desc.get()) : nullptr;
  if (!primitive) return refused("a reorder");
  const Arguments arguments = {{kArgSrc, from}, {kArgDst, to}};
  program.pieces.push_back(piece_of(primitive, arguments));
  return ok();
}

Status DnnlLibrary::release(const std::string& buffer, Program& program) {
  const auto kept = kept_.find(buffer);
  if (kept == kept_.end()) return ok();
  const Place& place = kept->second.place;
  WARPLOOM_TRY(const MemoryDesc desc, described(place));
  const Held in_rows{desc, buffer, 0, reach_of(place)};
  WARPLOOM_CHECK(reorder(kept->second.held, in_rows, program));
  kept_.erase(kept);
  return ok();
}

Status DnnlLibrary::add_post_ops(const Making& making, const Object& post_ops,
                                 std::vector<Operand>& operands, Program& program) {
  for (size_t i = 0; i < making.after.size(); ++i) {
    const After& after = making.after[i];
    if (!after.other) {
      const int code = row_of(after.function).dnnl;
      const auto alpha = as_float(after.alpha);
      const auto beta = as_float(after.beta);
      if (d_.append_eltwise(post_ops.get(), 1, code, alpha, beta) != 0)
        return refused("a post-operation");
      continue;
    }
    const int number = kArgPostOp * as_int(i + 1) | kArgSecond;
    Operand other{number, *after.other, {}, false};
    WARPLOOM_TRY(other.held, where(*after.other, program));
    if (d_.append_binary(post_ops.get(), binary_code(after.combine), &other.held.desc) != 0)
      return refused("a post-operation");
    operands.push_back(std::move(other));
  }
  return ok();
}

// The primitive of an operation, with what brings its operands into the layouts that it chose.
Status DnnlLibrary::finish(Making making, Program& program) {
  const Object attributes = d_.attributes();
  const Object post_ops = d_.post_ops();
  if (!attributes || !post_ops) return refused("attributes");
  std::vector<Operand> others;
  WARPLOOM_CHECK(add_post_ops(making, post_ops, others, program));
  if (d_.set_post_ops(attributes.get(), post_ops.get()) != 0) return refused("post-operations");
  const void* const operation = &making.operation;
  const Object desc = d_.primitive_desc(operation, attributes.get(), d_.engine, nullptr);
  if (!desc) return refused("the operation with these types, shapes or post-operations");
  const char* code = nullptr;
  const int status = d_.query(desc.get(), kQueryName, 0, &code);
  const bool named = status == 0 && code;
  if (making.heavy && named && std::string_view(code).starts_with("ref"))
    return refused("the operation but by unoptimized code");
  const Object primitive = d_.primitive(desc.get());
  if (!primitive) return refused("the operation");
  Arguments arguments;
  const Operand* to = nullptr;
  Held result;
  for (const Operand& operand : making.operands) {
    Held held = operand.held;
    const auto [what, index] = query_of(operand.number);
    const void* chosen = nullptr;
    if (operand.open) chosen = d_.query_md(desc.get(), what, index);
    MemoryDesc wanted = held.desc;
    if (chosen) std::memcpy(wanted.bytes.data(), chosen, kMemoryDescBytes);
    if (operand.number == kArgDst) {
      to = &operand;
      WARPLOOM_TRY(held, written(operand, wanted, program));
      result = held;
    } else if (chosen && !d_.equal(&held.desc, &wanted)) {
      const auto bytes = as_int64(d_.size_of(&wanted));
      const std::string scratch = program.add_scratch(held.buffer, bytes);
      const Held moved{wanted, scratch, 0, bytes};
      WARPLOOM_CHECK(reorder(held, moved, program));
      program.prepare_last(held.buffer);
      held = moved;
    }
    arguments.emplace_back(operand.number, held);
  }
  for (const Operand& other : others)
    arguments.emplace_back(other.number, other.held);
  program.pieces.push_back(piece_of(primitive, arguments));
  return to ? deliver(*to, result, program) : ok();
}

Result<DnnlLibrary::Held> DnnlLibrary::written(const Operand& to, const MemoryDesc& desc,
                                               Program& program) {
  if (d_.equal(&to.held.desc, &desc)) return to.held;
  const auto bytes = as_int64(d_.size_of(&desc));
  const std::string scratch = program.add_scratch(to.place.buffer, bytes);
  return Held{desc, scratch, 0, bytes};
}

// What was written in another layout stays so where only steps read it.
Status DnnlLibrary::deliver(const Operand& to, const Held& held, Program& program) {
  kept_.erase(to.place.buffer);
  if (held.buffer == to.place.buffer) return ok();
  const bool whole = to.place.offset == 0 && is_packed(to.place);
  if (!whole || !passed_on_.contains(to.place.buffer)) return reorder(held, to.held, program);
  kept_[to.place.buffer] = {held, to.place};
  return ok();
}

Status DnnlLibrary::add(const Step& step, Program& program) {
  const auto made = [&](bool own) -> Status {
    own_now_ = own;
    return std::visit([&](const auto& call) { return make(call, step, program); }, step.operation);
  };
  if (layouts_ == Layouts::own && made(true)) return ok();
  return made(false);
}
}  // namespace warploom::vendor
