// Exchange: a question to a model and what came of it, as it is kept and read again.
//
// Every exchange is kept, failed ones too, so that what a search did with a model can be looked
// at, and done again without the endpoint:
//
//   ReplayedModel model(exchanges);                   // of the archive
//   model.ask(question)                               // the first answer, whatever is asked
//
// Neither the key nor a URL's query is in it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "llm/completion.h"

namespace warploom::llm {
// One part of a question: who speaks, "system" or "user", and what is said.
struct Message {
  std::string role;
  std::string text;
  friend bool operator==(const Message&, const Message&) = default;
};

struct Question {
  std::vector<Message> messages;
  std::string purpose = {};     // in words, for who reads the transcript
  int64_t most_tokens = 8'192;  // of the answer
  size_t bytes() const;
};

struct Exchange {
  std::string model;
  std::string endpoint;  // scheme, host and path
  Question question;
  std::string answer;  // what came of it before it failed, too
  std::optional<Error> failure = {};
  Usage usage = {};
  double money = 0;
  double seconds = 0;
  int tries = 0;          // requests that were sent
  std::string made = {};  // the candidate that came of it: its config's text; "": none
};

nlohmann::json to_json(const Exchange& exchange);
// model-schema where it is none.
Result<Exchange> exchange_from_json(const nlohmann::json& json);
}  // namespace warploom::llm
