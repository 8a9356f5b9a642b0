// Key: the secret that an endpoint knows its users by.
//
// It comes from an environment variable or a file, never from the command line, which other users
// of the machine can read. Nobody prints it: it has no text of its own, transcripts and errors are
// scrubbed of it, and it leaves the process in one header of one request alone.
//
//   WARPLOOM_TRY(const Key key, key_from_file("~/.keys/model"));
//   post.headers.push_back(key.header());     // "Authorization: Bearer …"
//   key.scrubbed(words)                       // what an endpoint said, with "[key]" in its place
//
// Errors: model-key, where there is none, or what there is cannot stand in a header.
#pragma once
#include <filesystem>
#include <string>
#include "base/error.h"

namespace warploom::llm {
// Where a key is looked for when no file is named.
inline constexpr const char* kKeyVariable = "WARPLOOM_LLM_KEY";

class Key {
 public:
  Key() = default;  // none: what runs on this machine seldom asks for one

  bool is_set() const { return !text_.empty(); }

  // The header that carries it, for the transport alone.
  std::string header() const { return "Authorization: Bearer " + text_; }

  // `words` with "[key]" wherever the key stood in them.
  std::string scrubbed(std::string words) const;

  // `text` less the white space round it; model-key with `place` where it is empty or holds what is
  // no printable ASCII.
  static Result<Key> of(const std::string& text, const std::string& place);

 private:
  std::string text_;
};

Result<Key> key_from_file(const std::filesystem::path& file);
// That of kKeyVariable; none where it is not set.
Result<Key> key_from_environment();
}  // namespace warploom::llm
