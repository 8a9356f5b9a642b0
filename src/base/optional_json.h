// JSON serialisation of std::optional: null stands for no value, so that an unknown figure is never
// read as a number.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

template <class T> struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& out, const std::optional<T>& value) {
    if (value)
      out = *value;
    else
      out = nullptr;
  }

  static void from_json(const json& in, std::optional<T>& value) {
    if (in.is_null())
      value.reset();
    else
      value = in.get<T>();
  }
};
