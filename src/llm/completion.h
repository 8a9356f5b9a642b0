// Completion: what a chat endpoint sends, piece by piece, becomes a reply.
//
// Endpoints that stream send server-sent events, a line "data: {…}" each, whose deltas are joined;
// the last is "data: [DONE]". Those that do not stream send one JSON object. Both are read, by what
// comes. Source: OpenAI's chat completions; llama.cpp's server and vLLM send the same.
//
//   Completion completion;
//   completion.put("data: {\"choices\":[{\"delta\":{\"content\":\"int\"}}]}\n\n");
//   completion.put("data: [DONE]\n\n");
//   completion.finish()->text                                     // "int"
//
// Errors of finish(): model-schema (no JSON, no UTF-8, no such object), model-truncated (the stream
// ended before it said so, or the answer met its limit of tokens), model-busy (the endpoint says in
// the middle that it failed).
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include "base/error.h"

namespace warploom::llm {
// Tokens of a question and its answer.
struct Usage {
  int64_t prompt = 0;
  int64_t answer = 0;
  bool is_estimated = false;  // the endpoint did not say: four bytes of text are taken for a token

  int64_t total() const { return prompt + answer; }
};

struct Reply {
  std::string text;
  std::optional<Usage> usage;  // as the endpoint says it
};

class Completion {
 public:
  void put(std::string_view bytes);
  Result<Reply> finish();

  // Whether it has as many tokens as an answer may have, which truncates it.
  bool met_limit() const { return finish_reason_ == "length"; }

  // What has come of the answer so far, for estimates; thoughts that are not part of it too.
  size_t bytes() const { return reply_.text.size() + thought_bytes_; }

 private:
  void take_line(std::string_view line);
  void take_event(const std::string& data);
  void take_object(const nlohmann::json& object);
  void take_choice(const nlohmann::json& choice);

  Reply reply_;
  std::string line_;   // one that has not ended yet
  std::string event_;  // its data so far
  bool has_data_ = false;
  std::string whole_;  // all of what is no stream of events
  bool is_stream_ = false;
  bool is_done_ = false;
  size_t thought_bytes_ = 0;
  std::string finish_reason_;
  std::optional<Error> failed_;  // the first thing that was wrong
};

// A guess, of a text of so many bytes: four make a token.
int64_t estimated_tokens(size_t bytes);
}  // namespace warploom::llm
