#include "verify/channel.h"
#include <poll.h>
#include <sys/socket.h>
#include <cerrno>
namespace warploom::verify {
bool Channel::send(const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t put = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return closed_ = true, false;
    sent += static_cast<std::size_t>(put);
  }
  return true;
}

std::optional<nlohmann::json> Channel::receive(int ms) {
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
}  // namespace warploom::verify
