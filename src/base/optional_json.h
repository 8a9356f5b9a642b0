// std::optional as JSON: null where there is no value, so that what is unknown is never a number.
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
