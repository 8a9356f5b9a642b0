// Records as JSON, between this program and itself: a record's fields are listed once, with NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE.
// Within the room only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace warploom::verify {

// `json` as a T; internal when it is none. JSON has no infinity: such figures are written as null and read back as infinite.
template <class T>
Result<T> record_from(nlohmann::json json, const char* what) {
  try {
    for (auto& [key, value] : json.items())
      if (value.is_null()) value = HUGE_VAL;
    return json.get<T>();
  } catch (const nlohmann::json::exception& error) {
    return fail({ErrorCode::kInternal, std::string(what) + " cannot be read", "", "the form it is written in",
                 error.what(), ""});
  }
}

}  // namespace warploom::verify
