// Channel: messages between processes (search and evaluator, evaluator and runner), CBOR over a socket, which tells its end by itself.
// Peer: this program, started again with a hidden subcommand, at a channel's other end. Within the room only.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include "base/process.h"
namespace warploom::verify {
inline constexpr const char* kEvaluateCommand = "__evaluate";
inline constexpr int kOutOfMemoryStatus = 77;  // the evaluator's exit status when memory ran out

// A record is written by listing its fields once, with NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE, and read back by this:
// `json` as a T; internal when it is none.
template <class T>
Result<T> record_from(const nlohmann::json& json, const char* what) {
  try {
    return json.get<T>();
  } catch (const std::exception& error) {
    return fail({ErrorCode::kInternal, std::string(what) + " cannot be read", "", "the form it is written in", error.what()});
  }
}

class Channel : std::streambuf {  // of what has come and was not read yet
 public:
  explicit Channel(int fd) : fd_(fd) {}
  ~Channel() override { ::close(fd_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Of no effect when the other side is gone, which shows when an answer is waited for.
  void send(const nlohmann::json& message) { send(nlohmann::json::to_cbor(message)); }
  void send(const std::vector<std::uint8_t>& body) {
    for (std::size_t sent = 0; sent < body.size();) {
      const ssize_t done = ::send(fd_, body.data() + sent, body.size() - sent, MSG_NOSIGNAL);
      if (done < 0 && errno != EINTR) return;
      sent += static_cast<std::size_t>(std::max<ssize_t>(done, 0));
    }
  }
  // The next message, waited for to its end once it has begun. Nothing when the other side is gone or talks nonsense, which closed()
  // tells, or when `ms` have passed (below 0: waits for ever) or a signal came.
  std::optional<nlohmann::json> receive(int ms) {
    pollfd polled{fd_, POLLIN, 0};
    if (in_avail() == 0 && ::poll(&polled, 1, ms) <= 0) return std::nullopt;
    std::istream stream(this);
    auto message = nlohmann::json::from_cbor(stream, false, false);
    closed_ = message.is_discarded();
    return closed_ ? std::nullopt : std::optional(std::move(message));
  }
  bool closed() const { return closed_; }

 private:
  int_type underflow() override {
    ssize_t got = 0;
    do got = ::recv(fd_, piece_.data(), piece_.size(), 0);
    while (got < 0 && errno == EINTR);
    if (got > 0) setg(piece_.data(), piece_.data(), piece_.data() + got);
    return got > 0 ? traits_type::to_int_type(piece_[0]) : traits_type::eof();
  }

  int fd_;
  std::array<char, 65536> piece_;
  bool closed_ = false;
};

struct Peer {
  int process = 0;  // 0: none runs
  std::optional<Channel> channel;

  ~Peer() { end(true); }
  // `program command SOCKET`, without output, and behind that the number of the open file `shared`, if there is one; start_process()
  // says what `apart` is.
  Status start(const std::string& program, const char* command, int shared = -1, bool apart = false) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail({ErrorCode::kInternal, "cannot make a socket pair", "", "", std::strerror(errno), "raise ulimit -n"});
    channel.emplace(ends[0]);
    std::vector<std::string> words = {program, command, std::to_string(ends[1])};
    if (shared >= 0) words.push_back(std::to_string(shared));
    const auto prepare = [&] {
      for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(::open("/dev/null", O_WRONLY), fd);
      for (const int fd : {ends[1], shared}) ::fcntl(fd, F_SETFD, 0);  // everything else closes on exec
    };
    const auto started = start_process(words, prepare, apart);
    ::close(ends[1]);
    WARPLOOM_TRY(process, started);
    return ok();
  }
  // Of the process, if there is one; its wait status.
  int end(bool kill) {
    channel.reset();
    return process > 0 ? end_process(std::exchange(process, 0), kill) : 0;
  }
};
}  // namespace warploom::verify
