// Channel: messages between processes (search and evaluator, evaluator and runner), CBOR over a
// socket, each with its length in front. Peer: this program, started again with a hidden
// subcommand, at a channel's other end. Within the room only.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include "base/file.h"
#include "base/process.h"

namespace warploom::verify {
inline constexpr const char* kEvaluateCommand = "__evaluate";
inline constexpr uint64_t kMostMessage = uint64_t{1} << 38;  // bytes: a model with its weights
inline constexpr uint64_t kMostAnswer = uint64_t{1} << 24;   // a verdict
inline constexpr int kOutOfMemoryStatus = 77;  // the evaluator's exit status when memory ran out

// What the other side sent, and it is not what it should be: the other process is not what it was.
inline tl::unexpected<Error> unreadable(const char* what, std::string found) {
  return fail({ErrorCode::kEvaluatorLost, std::string(what) + " cannot be read", "",
               "the form it is written in", std::move(found), "run again"});
}

// `json` as a T, a record whose fields NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE lists; evaluator-lost
// when it is none.
template <class T> Result<T> record_from(const nlohmann::json& json, const char* what) {
  try {
    return json.get<T>();
  } catch (const std::exception& error) {
    return unreadable(what, error.what());
  }
}

// An error as another process says it: with a code that there is. Nothing for any other JSON.
inline std::optional<Error> error_said(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  Error error = error_from_json(json);
  const auto code = json.find("code");
  if (code == json.end() || *code != code_text(error.code)) return std::nullopt;
  return error;
}

// Bytes as a message, an object; nothing where they are none, or nest deeper than any message does:
// whoever reads or prints brackets within brackets calls himself as often.
std::optional<nlohmann::json> message_of(std::span<const uint8_t> bytes);

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
  // for ever), at more bytes than `most`, or at nonsense; closed() is false in the second case.
  std::optional<nlohmann::json> receive(int ms, uint64_t most = kMostMessage) {
    pollfd polled{fd_, POLLIN, 0};
    if (::poll(&polled, 1, ms) <= 0)
      return std::nullopt;  // also when a signal came: the caller looks and waits again
    uint64_t size = 0;
    closed_ = !received(&size, sizeof size, ms);
    broken_ = size > most;
    closed_ |= broken_;
    std::vector<uint8_t> body;
    // Room is made as bytes come: a length alone takes none.
    for (uint64_t left = closed_ ? 0 : size; left > 0 && !closed_;) {
      const size_t part = std::min<uint64_t>(left, kPart);
      body.resize(body.size() + part);
      closed_ = !received(body.data() + body.size() - part, part, ms);
      left -= part;
    }
    if (closed_) return std::nullopt;
    auto message = message_of(body);
    broken_ = !message;
    closed_ = broken_;  // what follows nonsense is none either
    return message;
  }

  // An open file, behind a message that says what it is; -1 when none comes.
  void send_file(int file);
  int receive_file(int ms);

  bool closed() const { return closed_; }

  // What came was no message, or did not come to its end: the other side need not be gone.
  bool broken() const { return broken_; }

 private:
  static constexpr uint64_t kPart = uint64_t{1} << 20;

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

  // Likewise of what comes, where no piece of it may take long once it has begun (`ms` as of
  // receive(): below 0 it may).
  bool received(void* bytes, size_t size, int ms) {
    constexpr int kSilence = 10'000;
    const auto piece = [ms, this](int fd, void* at, size_t left, int flags) -> ssize_t {
      pollfd polled{fd, POLLIN, 0};
      const int ready = ::poll(&polled, 1, ms < 0 ? -1 : kSilence);
      broken_ |= ready == 0;
      return ready > 0 ? ::recv(fd, at, left, flags) : ready;
    };
    return passed(piece, bytes, size);
  }

  int fd_;
  bool closed_ = false;
  bool broken_ = false;
};

struct Peer {
  int process = 0;  // 0: none runs
  std::optional<Channel> channel;

  ~Peer() { end(true); }

  // `program command SOCKET CACHE SHARED`, without output; CACHE is the folder that this process
  // works with, no last word where no file is `shared`. `also` runs in it before the program does.
  Status start(const std::string& program, const char* command, int shared = -1,
               const std::function<void()>& also = {}) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail({ErrorCode::kInternal, "cannot make a socket pair", "", "", std::strerror(errno),
                   "raise ulimit -n"});
    channel.emplace(ends[0]);
    std::vector<std::string> words = {program, command, std::to_string(ends[1]),
                                      cache_folder().string()};
    if (shared >= 0) words.push_back(std::to_string(shared));
    const auto prepare = [&] {
      for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
        ::dup2(::open("/dev/null", O_WRONLY), fd);
      for (const int fd : {ends[1], shared})
        ::fcntl(fd, F_SETFD, 0);  // everything else closes on exec
      if (also) also();
    };
    const auto started = start_process(words, prepare);
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
