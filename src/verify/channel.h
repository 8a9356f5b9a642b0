// Channel: lines of JSON over a socket, between the search and its evaluator. Within the room only.
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <cerrno>
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
  bool send(const nlohmann::json& message) {
    const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t put = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return closed_ = true, false;
      sent += static_cast<std::size_t>(put);
    }
    return true;
  }
  // The next message. Nothing when the other side is gone, when `ms` have passed (below 0: waits for ever), or at nonsense;
  // closed() tells the first case.
  std::optional<nlohmann::json> receive(int ms) {
    std::array<char, 65536> piece;
    while (true) {
      if (const auto end = pending_.find('\n'); end != std::string::npos) {
        auto message = nlohmann::json::parse(pending_.substr(0, end), nullptr, false);
        pending_.erase(0, end + 1);
        if (message.is_discarded()) return std::nullopt;
        return message;
      }
      pollfd polled{fd_, POLLIN, 0};
      const int ready = ::poll(&polled, 1, ms);
      if (ready <= 0) return std::nullopt;  // also when a signal came: the caller looks at its flag and waits again
      const ssize_t got = ::recv(fd_, piece.data(), piece.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return closed_ = true, std::nullopt;
      pending_.append(piece.data(), static_cast<std::size_t>(got));
    }
  }
  bool closed() const { return closed_; }

 private:
  int fd_;
  std::string pending_;
  bool closed_ = false;
};
}  // namespace warploom::verify
