// The process that evaluates FP64 on a GPU (device_truth.h has the messages).
#include <unistd.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/device_sharing.h"
#include "runtime/executor.h"
#include "verify/channel.h"
#include "verify/device_truth.h"
#include "verify/inputs.h"
#include "verify/setup.h"
#include "verify/truth_engine.h"
#include "verify/truth_messages.h"  // IWYU pragma: keep (conversions of Seen and its like)

namespace warploom::verify {
namespace {
using nlohmann::json;

class TruthProcess {
 public:
  TruthProcess(Channel& channel, char* memory) : channel_(channel), memory_(memory) {}

  Status open(Engine engine) {
    WARPLOOM_TRY(device_, runtime::Executor::open(engine));
    WARPLOOM_TRY(const Setup setup, setup_from_json(channel_.receive(-1).value_or(json())));
    WARPLOOM_TRY(engine_, TruthEngine::make(*device_, setup.graph, setup.track, setup.ranges,
                                            setup.operations));
    inputs_ = setup.graph.inputs.size();
    return ok();
  }

  // The answer to a message; what it lacks throws.
  Result<json> answer(const json& message) {
    if (message.contains("map")) return map(message);
    if (message.contains("put")) return carry(message, message.at("put"), true);
    if (message.contains("get")) return carry(message, message.at("get"), false);
    if (message.contains("draw")) return draw(message);
    if (message.contains("compare")) return compare(message);
    if (message.contains("changed")) return changed(message);
    if (message.contains("hash")) return hash(message);
    if (message.contains("prepare")) return prepare(message);
    if (message.contains("forget")) engine_->forget(message.at("forget"));
    return json{{"done", true}};
  }

 private:
  Result<json> map(const json& message) {
    const int64_t bytes = message.at("bytes");
    const int key = message.at("map");
    Result<runtime::Buffer> made = runtime::Buffer();
    if (message.at("shared").get<bool>()) {
      constexpr int kPatience = 10'000;
      const int file = channel_.receive_file(kPatience);
      made = runtime::map_memory(file, bytes);
      ::close(file);
    } else {
      made = device_->allocate(bytes);
    }
    WARPLOOM_TRY(buffers_[key], std::move(made));
    return json{{"done", true}};
  }

  Result<json> carry(const json& message, int key, bool here) {
    const runtime::Buffer& buffer = buffers_.at(key);
    const int64_t at = message.at("at");
    const int64_t bytes = message.at("bytes");
    const Status done = here ? device_->upload(buffer, memory_, bytes, at)
                             : device_->download(buffer, memory_, bytes, at);
    WARPLOOM_CHECK(done);
    return json{{"done", true}};
  }

  runtime::Buffer place_of(const json& place) const {
    const runtime::Buffer& whole = buffers_.at(place.at(0));
    return whole.slice(place.at(1), place.at(2));
  }

  std::vector<runtime::Buffer> places_of(const json& places) const {
    std::vector<runtime::Buffer> all;
    for (const json& place : places)
      all.push_back(place_of(place));
    return all;
  }

  Result<json> draw(const json& message) {
    const std::string name = message.at("family");
    InputFamily family = InputFamily::normal;
    for (const InputFamily one : input_families())
      if (name_of(one) == name) family = one;
    const int set = message.at("draw");
    WARPLOOM_CHECK(engine_->draw(set, family, message.at("seed")));
    const std::vector<runtime::Buffer> own = engine_->tensors(set);
    const std::vector<runtime::Buffer> theirs = places_of(message.at("to"));
    for (size_t i = 0; i < inputs_ && i < theirs.size(); ++i)
      WARPLOOM_CHECK(engine_->move(own[i], theirs[i]));
    WARPLOOM_CHECK(device_->synchronize());
    return json{{"done", true}};
  }

  Result<json> prepare(const json& message) {
    const json& seconds = message.at("seconds");  // null: as long as it takes
    const double limit = seconds.is_null() ? HUGE_VAL : seconds.get<double>();
    WARPLOOM_TRY(const int64_t known, engine_->prepare(message.at("prepare"), limit));
    return json{{"known", known}};
  }

  Result<json> compare(const json& message) {
    const CompareScope scope{message.at("whole"), message.at("elements"), message.at("seed")};
    const auto places = places_of(message.at("outputs"));
    WARPLOOM_TRY(const auto seen, engine_->compare(message.at("compare"), places, scope));
    return json{{"seen", seen}};
  }

  Result<json> changed(const json& message) {
    const std::vector<runtime::Buffer> own = engine_->tensors(message.at("changed"));
    const std::vector<runtime::Buffer> theirs = places_of(message.at("tensors"));
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (!own.at(i)) continue;
      WARPLOOM_TRY(const bool same, engine_->same(own[i], theirs[i]));
      if (!same) return json{{"input", i}};
    }
    return json{{"input", -1}};
  }

  Result<json> hash(const json& message) {
    uint64_t all = 0;
    for (const runtime::Buffer& buffer : places_of(message.at("hash"))) {
      WARPLOOM_TRY(const uint64_t one, engine_->hash(buffer));
      all = 3 * all + one;
    }
    return json{{"hash", all}};
  }

  Channel& channel_;
  char* memory_;
  std::unique_ptr<runtime::Executor> device_;
  std::unique_ptr<TruthEngine> engine_;
  std::map<int, runtime::Buffer> buffers_;
  size_t inputs_ = 0;
};
}  // namespace

int truth_for(Channel& channel, char* memory, Engine engine) {
  runtime::set_helper_program("/proc/self/exe");  // which NVRTC runs in, several at once
  TruthProcess process(channel, memory);
  const auto refuse = [&](const Error& error) { channel.send({{"error", to_json(error)}}); };
  if (const Status opened = process.open(engine); !opened) {
    refuse(opened.error());
    return 1;
  }
  channel.send({{"ready", true}});
  while (const std::optional<json> message = channel.receive(-1)) {
    try {
      const Result<json> answer = process.answer(*message);
      if (answer)
        channel.send(*answer);
      else
        refuse(answer.error());
    } catch (const std::exception& error) {
      refuse({ErrorCode::kInternal, "an exception in the GPU's oracle", "", "", error.what()});
    }
  }
  return 0;
}
}  // namespace warploom::verify
