// Channel: lines of JSON over a socket, between the search and its evaluator. Within the room only.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include "base/error.h"
namespace warploom::verify {
inline constexpr const char* kEvaluateCommand = "__evaluate";
inline constexpr int kOutOfMemoryStatus = 77;  // the evaluator's exit status when memory ran out

// JSON has no infinity: such figures are written as null and read back as infinite.
inline void restore_infinities(nlohmann::json& json) {
  if (json.is_null()) json = HUGE_VAL;
  if (!json.is_structured()) return;
  for (auto& part : json) restore_infinities(part);
}

// A record is written by listing its fields once, with NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE, and read back by this:
// `json` as a T; internal when it is none.
template <class T>
Result<T> record_from(nlohmann::json json, const char* what) {
  try {
    restore_infinities(json);
    return json.get<T>();
  } catch (const nlohmann::json::exception& error) {
    return fail({ErrorCode::kInternal, std::string(what) + " cannot be read", "", "the form it is written in", error.what(), ""});
  }
}

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  bool send(const nlohmann::json& message);
  // The next message. Nothing when the other side is gone, when `ms` have passed (below 0: waits for ever), or at nonsense;
  // closed() tells the first case.
  std::optional<nlohmann::json> receive(int ms);
  bool closed() const { return closed_; }

 private:
  int fd_;
  std::string pending_;
  bool closed_ = false;
};
}  // namespace warploom::verify
