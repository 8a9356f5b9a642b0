// Channel: lines of JSON over a socket, between the search and its evaluator. Within the room only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace warploom::verify {

inline constexpr const char* kEvaluateCommand = "__evaluate";
inline constexpr int kOutOfMemoryStatus = 77;  // the evaluator's exit status when memory ran out

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
