// An OpenAI-compatible endpoint on 127.0.0.1 that says what a test wrote, one answer a request; the
// last again and again.
//
//   ScriptedEndpoint endpoint({refusal(429), streamed("CHANGE: …\n```cpp\n…```\n")});
//   ask(endpoint.url());
//   endpoint.requests()[0]            // head and body, as they came
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace warploom {
// One answer.
struct Scripted {
  int status = 200;
  std::string headers = "";  // more of them, each with its line end
  std::string body = "";
  double wait_seconds = 0;  // before it says anything
  size_t filler = 0;        // bytes sent behind the body
  bool drops = false;       // closes the connection without a word
};

// An event stream of the text, in pieces of `piece` bytes, with the usage at its end.
inline Scripted streamed(const std::string& text, size_t piece = 7) {
  using nlohmann::json;
  Scripted out{.headers = "Content-Type: text/event-stream\r\n"};
  const auto event = [&](const json& data) { out.body += "data: " + data.dump() + "\n\n"; };
  event({{"choices", {{{"index", 0}, {"delta", {{"role", "assistant"}, {"content", ""}}}}}}});
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + piece, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
      ++end;  // characters are not cut
    event({{"choices", {{{"index", 0}, {"delta", {{"content", text.substr(at, end - at)}}}}}}});
    at = end;
  }
  event({{"choices", {{{"index", 0}, {"delta", json::object()}, {"finish_reason", "stop"}}}}});
  event(
      {{"choices", json::array()}, {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 50}}}});
  out.body += "data: [DONE]\n\n";
  return out;
}

// The same at once, as endpoints answer that do not stream.
inline Scripted whole(const std::string& text) {
  const nlohmann::json body = {
      {"choices", {{{"message", {{"content", text}}}, {"finish_reason", "stop"}}}},
      {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 50}}}};
  return {.headers = "Content-Type: application/json\r\n", .body = body.dump()};
}

inline Scripted refusal(int status, const std::string& words = "no") {
  return {.status = status, .body = nlohmann::json{{"error", {{"message", words}}}}.dump()};
}

// An answer that holds a kernel file.
inline Scripted kernel_answer(const std::string& source, const std::string& change = "a kernel") {
  return streamed("CHANGE: " + change + "\n```cpp\n" + source + "\n```\n", 64);
}

class ScriptedEndpoint {
 public:
  explicit ScriptedEndpoint(std::vector<Scripted> script) : script_(std::move(script)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const bool listens = ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                         ::listen(socket_, 16) == 0 &&
                         ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (!listens) std::abort();
    port_ = ::ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }

  ~ScriptedEndpoint() {
    stopped_ = true;
    thread_.join();
    ::close(socket_);
  }

  ScriptedEndpoint(const ScriptedEndpoint&) = delete;
  ScriptedEndpoint& operator=(const ScriptedEndpoint&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  // The messages of a request as one text.
  std::string question(size_t number) const {
    const std::string text = requests().at(number);
    const auto body = nlohmann::json::parse(text.substr(text.find("\r\n\r\n") + 4));
    std::string out;
    for (const auto& message : body["messages"])
      out += message["content"].get<std::string>() + "\n";
    return out;
  }

 private:
  void serve() {
    while (!stopped_) {
      pollfd waits{socket_, POLLIN, 0};
      if (::poll(&waits, 1, 20) <= 0) continue;
      const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      answer(client);
      // Closing is not enough: a process that was forked meanwhile has the connection, too.
      ::shutdown(client, SHUT_RDWR);
      ::close(client);
    }
  }

  void answer(int client) {
    const std::string request = received(client);
    size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = requests_.size();
      requests_.push_back(request);
    }
    const Scripted& says = script_[std::min(number, script_.size() - 1)];
    for (double waited = 0; waited < says.wait_seconds && !stopped_; waited += 0.01)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (says.drops) return;
    const bool sent = send(client, "HTTP/1.1 " + std::to_string(says.status) + " Said\r\n" +
                                       says.headers + "Connection: close\r\n\r\n" + says.body);
    const std::string filler(1 << 16, 'x');
    for (size_t left = says.filler; sent && left > 0 && !stopped_;) {
      const size_t part = std::min(left, filler.size());
      if (!send(client, filler.substr(0, part))) break;
      left -= part;
    }
  }

  // Head and body of a request.
  static std::string received(int client) {
    std::string text;
    char bytes[4096];
    while (true) {
      const ssize_t got = ::recv(client, bytes, sizeof(bytes), 0);
      if (got <= 0) return text;
      text.append(bytes, static_cast<size_t>(got));
      const size_t end = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      if (end == text.npos) continue;
      const size_t body =
          length == text.npos ? 0 : std::strtoul(text.c_str() + length + 16, nullptr, 10);
      if (text.size() >= end + 4 + body) return text;
    }
  }

  static bool send(int client, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(client, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<size_t>(sent);
    }
    return true;
  }

  std::vector<Scripted> script_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};
}  // namespace warploom
