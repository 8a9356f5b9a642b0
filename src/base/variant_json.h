// JSON serialisation of std::variant: [index of the alternative, its value]. The index keeps a
// double 1.0 from being read back as an integer.
#pragma once
#include <nlohmann/json.hpp>
#include <variant>

template <class... T> struct nlohmann::adl_serializer<std::variant<T...>> {
  static void to_json(json& out, const std::variant<T...>& value) {
    out = {value.index(), std::visit([](const auto& one) { return json(one); }, value)};
  }

  static void from_json(const json& in, std::variant<T...>& value) {
    size_t index = in.at(0);
    ((index-- == 0 ? void(value = in.at(1).get<T>()) : void()), ...);
  }
};
