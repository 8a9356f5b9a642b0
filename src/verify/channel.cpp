#include "verify/channel.h"
#include <poll.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

namespace warploom::verify {
using nlohmann::json;

namespace {
constexpr int kDeepest = 64;  // brackets within brackets; messages have about ten

// Makes the value that is read, and stops the reader where it would call itself too often.
class Builder : public nlohmann::detail::json_sax_dom_parser<json> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<json>;

  explicit Builder(json& made) : Base(made, false) {}

  bool start_object(std::size_t size) { return ++depth_ <= kDeepest && Base::start_object(size); }

  bool start_array(std::size_t size) { return ++depth_ <= kDeepest && Base::start_array(size); }

  bool end_object() {
    --depth_;
    return Base::end_object();
  }

  bool end_array() {
    --depth_;
    return Base::end_array();
  }

 private:
  int depth_ = 0;
};
}  // namespace

std::optional<json> message_of(std::span<const uint8_t> bytes) {
  json made;
  Builder builder(made);
  try {  // it throws of sizes that no vector has, whatever it is asked
    if (!json::sax_parse(bytes, &builder, json::input_format_t::cbor)) return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  if (!made.is_object()) return std::nullopt;
  return made;
}

namespace {
// A message of one byte, with room for a file beside it.
struct FileMessage {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr header{};

  FileMessage() {
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = room.data();
    header.msg_controllen = room.size();
  }
};
}  // namespace

void Channel::send_file(int file) {
  FileMessage message;
  cmsghdr* const beside = CMSG_FIRSTHDR(&message.header);
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(beside), &file, sizeof file);
  ::sendmsg(fd_, &message.header, MSG_NOSIGNAL);
}

int Channel::receive_file(int ms) {
  pollfd polled{fd_, POLLIN, 0};
  FileMessage message;
  if (::poll(&polled, 1, ms) <= 0) return -1;
  if (::recvmsg(fd_, &message.header, MSG_CMSG_CLOEXEC) <= 0) return -1;
  const cmsghdr* const beside = CMSG_FIRSTHDR(&message.header);
  if (!beside || beside->cmsg_type != SCM_RIGHTS) return -1;
  int file = -1;
  std::memcpy(&file, CMSG_DATA(beside), sizeof file);
  return file;
}
}  // namespace warploom::verify
