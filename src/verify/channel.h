// Channel: messages between processes (search and evaluator, evaluator and runner), CBOR over a
// socket, each with its length in front. Peer: this program, started again with a hidden
// subcommand, at a channel's other end. Within the room only.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include "base/file.h"
#include "base/process.h"

namespace warploom::verify {
inline constexpr const char* kEvaluateCommand = "__evaluate";
inline constexpr int kOutOfMemoryStatus = 77;  // the evaluator's exit status when memory ran out

// `json` as a T, a record whose fields NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE lists; internal when it
// is none.
template <class T> Result<T> record_from(const nlohmann::json& json, const char* what) {
  try {
    return json.get<T>();
  } catch (const std::exception& error) {
    return fail({ErrorCode::kInternal, std::string(what) + " cannot be read", "",
                 "the form it is written in", error.what()});
  }
}

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}

  ~Channel() { ::close(fd_); }

  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Of no effect when the other side is gone, which shows when an answer is waited for.
  void send(const nlohmann::json& message) {
    std::vector<uint8_t> body = nlohmann::json::to_cbor(message);
    uint64_t size = body.size();
    if (passed(::send, &size, sizeof size)) passed(::send, body.data(), size);
  }

  // The next message. Nothing when the other side is gone, when none began in `ms` (below 0: waits
  // for ever), or at nonsense; closed() tells the first case.
  std::optional<nlohmann::json> receive(int ms) {
    pollfd polled{fd_, POLLIN, 0};
    if (::poll(&polled, 1, ms) <= 0)
      return std::nullopt;  // also when a signal came: the caller looks and waits again
    uint64_t size = 0;
    std::vector<uint8_t> body;
    closed_ = !passed(::recv, &size, sizeof size) || size > kMost ||
              (body.resize(size), !passed(::recv, body.data(), size));
    auto message = nlohmann::json::from_cbor(body, true, false);
    return message.is_object() ? std::optional(std::move(message)) : std::nullopt;
  }

  bool closed() const { return closed_; }

 private:
  static constexpr uint64_t kMost = uint64_t{1} << 40;

  // Whether all bytes went through.
  bool passed(auto transfer, void* bytes, size_t size) {
    for (auto* at = static_cast<char*>(bytes); size > 0;) {
      const ssize_t done = transfer(fd_, at, size, MSG_NOSIGNAL);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      at += done;
      size -= static_cast<size_t>(done);
    }
    return true;
  }

  int fd_;
  bool closed_ = false;
};

struct Peer {
  int process = 0;  // 0: none runs
  std::optional<Channel> channel;

  ~Peer() { end(true); }

  // `program command SOCKET CACHE SHARED`, without output; CACHE is the folder that this process
  // works with, no last word where no file is `shared`; `apart` as of start_process().
  Status start(const std::string& program, const char* command, int shared = -1,
               bool apart = false) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail({ErrorCode::kInternal, "cannot make a socket pair", "", "", std::strerror(errno),
                   "raise ulimit -n"});
    channel.emplace(ends[0]);
    std::vector<std::string> words = {program, command, std::to_string(ends[1]),
                                      cache_folder().string()};
    if (shared >= 0) words.push_back(std::to_string(shared));
    const auto prepare = [&] {
      for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(::open("/dev/null", O_WRONLY), fd);
      for (const int fd : {ends[1], shared})
        ::fcntl(fd, F_SETFD, 0);  // everything else closes on exec
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
