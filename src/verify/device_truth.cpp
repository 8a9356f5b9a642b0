#include "verify/device_truth.h"
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/device_sharing.h"
#include "runtime/executor.h"
#include "verify/channel.h"
#include "verify/inputs.h"
#include "verify/setup.h"
#include "verify/shared_memory.h"
#include "verify/tolerance.h"
#include "verify/truth_engine.h"
#include "verify/truth_messages.h"  // IWYU pragma: keep (conversions of Seen and its like)

namespace warploom::verify {
using nlohmann::json;

namespace {
tl::unexpected<Error> lost(const char* found) {
  return fail({ErrorCode::kEvaluatorLost, "the process that evaluates FP64 on the GPU was lost", "",
               "an answer", found, "see whether memory is short; run again"});
}

int64_t offset_of(const Looked& buffer) {
  return static_cast<const char*>(buffer.data.address()) -
         static_cast<const char*>(buffer.whole.address());
}
}  // namespace

Result<std::unique_ptr<DeviceTruth>> DeviceTruth::launch(const DeviceTruthOptions& options) {
  auto made = std::unique_ptr<DeviceTruth>(new DeviceTruth(options));
  made->memory_ = SharedMemory::make(options.transfer_bytes);
  if (!made->memory_)
    return fail({ErrorCode::kOutOfMemory, "no memory to share with a process of its own"});
  WARPLOOM_CHECK(made->process_.start(options.program, kTruthCommand, made->memory_->file()));
  return made;
}

void DeviceTruth::give(const Setup& setup, runtime::Executor& device) {
  device_ = &device;
  Setup lean = setup;
  lean.reference.reset();
  process_.channel->send(to_json(lean));
}

Result<std::unique_ptr<DeviceTruth>> DeviceTruth::start(const Setup& setup,
                                                        runtime::Executor& device,
                                                        const DeviceTruthOptions& options) {
  WARPLOOM_TRY(auto made, launch(options));
  made->give(setup, device);
  return made;
}

Status DeviceTruth::await() {
  WARPLOOM_CHECK(answer());
  return ok();
}

Result<json> DeviceTruth::ask(const json& message, int file) {
  if (!process_.channel) return lost("it ended before");
  process_.channel->send(message);
  if (file >= 0) process_.channel->send_file(file);
  return answer();
}

Result<json> DeviceTruth::answer() {
  std::optional<json> answer = process_.channel->receive(options_.limit_ms, kMostAnswer);
  if (!answer) {
    const bool ended = process_.channel->closed();
    process_.end(true);
    return lost(ended ? "it ended" : "none in time");
  }
  const auto error = answer->find("error");
  if (error == answer->end()) return std::move(*answer);
  const std::optional<Error> said = error_said(*error);
  return said ? fail(*said) : unreadable("an error of the GPU's oracle", error->dump());
}

Result<const DeviceTruth::Known*> DeviceTruth::known(const Looked& buffer) {
  const auto found = known_.find(buffer.whole.address());
  if (found != known_.end()) return &found->second;
  Known made{.key = static_cast<int>(known_.size()), .whole = buffer.whole};
  json message = {{"map", made.key}, {"bytes", buffer.whole.bytes()}, {"shared", false}};
  const bool gpu = device_->engine() == Engine::cuda;
  const Result<int> file = gpu ? runtime::share_memory(buffer.whole) : Result<int>(-1);
  if (file && *file >= 0) {
    message["shared"] = true;
    const Result<json> answer = ask(message, *file);
    ::close(*file);
    made.shared = answer.has_value();
    message["shared"] = false;
  }
  if (!made.shared) WARPLOOM_CHECK(ask(message));
  return &(known_[buffer.whole.address()] = made);
}

// A copy's bytes, in as many parts as the memory that both map makes of them.
Status DeviceTruth::transfer(const Known& to, const Looked& buffer, bool to_process) {
  const int64_t first = offset_of(buffer);
  const int64_t bytes = buffer.data.bytes();
  for (int64_t at = 0; at < bytes; at += options_.transfer_bytes) {
    const int64_t some = std::min(options_.transfer_bytes, bytes - at);
    char* const here = memory_->base();
    if (to_process) WARPLOOM_CHECK(device_->download(buffer.data, here, some, at));
    WARPLOOM_CHECK(
        ask({{to_process ? "put" : "get", to.key}, {"at", first + at}, {"bytes", some}}));
    if (!to_process) WARPLOOM_CHECK(device_->upload(buffer.data, here, some, at));
  }
  return ok();
}

Result<json> DeviceTruth::places(std::span<const Looked> buffers, bool fresh) {
  WARPLOOM_CHECK(device_->synchronize());
  json all = json::array();
  for (const Looked& buffer : buffers) {
    WARPLOOM_TRY(const Known* const place, known(buffer));
    if (fresh && !place->shared) WARPLOOM_CHECK(transfer(*place, buffer, true));
    all.push_back({place->key, offset_of(buffer), buffer.data.bytes()});
  }
  return all;
}

Status DeviceTruth::draw(int set, InputFamily family, uint64_t seed,
                         std::span<const Looked> tensors) {
  WARPLOOM_TRY(const json to, places(tensors, false));
  WARPLOOM_CHECK(ask({{"draw", set}, {"family", name_of(family)}, {"seed", seed}, {"to", to}}));
  for (const Looked& tensor : tensors) {
    WARPLOOM_TRY(const Known* const place, known(tensor));
    if (!place->shared) WARPLOOM_CHECK(transfer(*place, tensor, false));
  }
  return ok();
}

Result<int64_t> DeviceTruth::prepare(int set, double seconds) {
  const json limit = std::isfinite(seconds) ? json(seconds) : json();
  WARPLOOM_TRY(const json answer, ask({{"prepare", set}, {"seconds", limit}}));
  return record_from<int64_t>(answer.value("known", json()), "rows that are known");
}

Result<std::vector<Comparison>> DeviceTruth::compare(int set, std::span<const Looked> outputs,
                                                     const CompareScope& scope) {
  WARPLOOM_TRY(const json found, places(outputs, true));
  WARPLOOM_TRY(const json answer, ask({{"compare", set},
                                       {"outputs", found},
                                       {"whole", scope.whole},
                                       {"elements", scope.elements},
                                       {"seed", scope.seed}}));
  return record_from<std::vector<Comparison>>(answer.value("seen", json()), "a comparison");
}

Result<std::optional<size_t>> DeviceTruth::changed(int set, std::span<const Looked> tensors) {
  WARPLOOM_TRY(const json found, places(tensors, true));
  WARPLOOM_TRY(const json answer, ask({{"changed", set}, {"tensors", found}}));
  const int64_t input = answer.value("input", int64_t{-1});
  if (input < 0) return std::nullopt;
  return static_cast<size_t>(input);
}

Result<uint64_t> DeviceTruth::hash(std::span<const Looked> outputs) {
  WARPLOOM_TRY(const json found, places(outputs, true));
  WARPLOOM_TRY(const json answer, ask({{"hash", found}}));
  return record_from<uint64_t>(answer.value("hash", json()), "a hash");
}

Status DeviceTruth::forget(int set) {
  WARPLOOM_CHECK(ask({{"forget", set}}));
  return ok();
}
}  // namespace warploom::verify
