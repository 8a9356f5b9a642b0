// Error values: failures are returned, not thrown.
//
// Every function that can fail returns Result<T>. An Error says what happened in six parts: a
// stable code (one row of error_codes.def; tests and programs match on it, never on the words), a
// message, the place (file:line, flag, tensor, statement), what was expected, what was found, and a
// remedy. The library never exits, never prints and never throws across a room's boundary.
//
//   Result<Graph> graph = load_onnx(path);
//   if (!graph) return tl::unexpected(graph.error());
//
// or, in a function that returns a Result itself:  WARPLOOM_TRY(Graph graph, load_onnx(path));
#pragma once
#include <cstdint>
#include <new>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>

namespace warploom {
enum class ErrorCode : uint16_t {
#define WARPLOOM_ERROR(name, text, exit_status, meaning) name,
#include "base/error_codes.def"
};

struct Error {
  ErrorCode code;
  std::string message;
  // Where in the user's input: "model.onnx: node 'mm' (MatMul)", "--budget".
  std::string place = {};
  std::string expected = {};  // what would have been right
  std::string found = {};     // what was there instead
  std::string remedy = {};    // what the user can do
};

std::string_view code_text(ErrorCode code);     // "onnx-truncated"
std::string_view code_meaning(ErrorCode code);  // one sentence, the row of docs/errors.md
// 2: bad input, 3: the machine lacks something, 4: no correct candidate.
int exit_status(ErrorCode code);
std::string describe(const Error& error);  // several lines, for a person
// {"code", "message", "place", "expected", "found", "remedy"}
nlohmann::json to_json(const Error& error);
Error error_from_json(const nlohmann::json& json);  // the inverse; an unknown code becomes internal

template <class T> using Result = tl::expected<T, Error>;
using Status = Result<std::monostate>;

inline Status ok() {
  return std::monostate{};
}

inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// What `work` returns, or the error that it throws, where nothing may be thrown further.
auto guarded(const auto& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail({ErrorCode::kOutOfMemory, "there is not enough memory", "", "", "",
                 "use a machine with more memory"});
  } catch (const std::exception& error) {
    return fail({ErrorCode::kInternal, "something failed that never should", "", "", error.what(),
                 "please report it"});
  }
}
}  // namespace warploom

// Declares or assigns `target` from a Result, or returns its error from the enclosing function.
#define WARPLOOM_TRY(target, ...)                                                        \
  target = __extension__({                                                               \
    auto tried_result = (__VA_ARGS__);                                                   \
    if (!tried_result) return ::tl::unexpected<::warploom::Error>(tried_result.error()); \
    std::move(*tried_result);                                                            \
  })
// The same for a Status, whose value nobody wants.
#define WARPLOOM_CHECK(...)                                 \
  if (auto checked_status = (__VA_ARGS__); !checked_status) \
  return ::tl::unexpected<::warploom::Error>(checked_status.error())
