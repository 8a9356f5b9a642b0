#include "target/card.h"
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace warploom::target {
namespace {
namespace units {
#define WARPLOOM_UNITS(name, arch, fp32, tf32, half, fp8, int8, narrow) \
  constexpr Units name = {#name, arch, fp32, tf32, half, fp8, int8, narrow};
#include "target/cards.def"
}  // namespace units

// Letters and digits alone, in lower case: "h100sxm".
std::string key_of(std::string_view name) {
  std::string key;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) key += static_cast<char>(std::tolower(byte));
  }
  return key;
}

template <class Holds> const Card* first_card(const Holds& holds) {
  const auto found = std::ranges::find_if(cards(), holds);
  return found == cards().end() ? nullptr : &*found;
}
}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> all = {
#define WARPLOOM_CARD(name, units_name, device, sms, ghz, tensor_ghz, gbs, l2_mib) \
  {name, &units::units_name, "NVIDIA " device, sms, ghz, tensor_ghz, gbs, l2_mib},
#include "target/cards.def"
  };
  return all;
}

const std::vector<Units>& all_units() {
  static const std::vector<Units> all = {
#define WARPLOOM_UNITS(name, ...) units::name,
#include "target/cards.def"
  };
  return all;
}

const Card* card_named(std::string_view name) {
  const std::string key = key_of(name);
  return first_card([&](const Card& card) { return key_of(card.name) == key; });
}

const Card* card_of_device(std::string_view device) {
  return first_card([&](const Card& card) { return card.device == device; });
}

const Card* default_card(std::string_view arch) {
  return first_card([&](const Card& card) { return card.units->arch == arch; });
}
}  // namespace warploom::target
