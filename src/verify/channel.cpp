#include "verify/channel.h"
#include <cstddef>
#include <cstdint>
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
}  // namespace warploom::verify
