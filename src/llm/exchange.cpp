#include "llm/exchange.h"
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include "base/error.h"

namespace warploom::llm {
using nlohmann::json;

size_t Question::bytes() const {
  size_t sum = 0;
  for (const Message& message : messages)
    sum += message.text.size();
  return sum;
}

json to_json(const Exchange& exchange) {
  json messages = json::array();
  for (const Message& message : exchange.question.messages)
    messages.push_back({{"role", message.role}, {"content", message.text}});
  json failure;
  if (exchange.failure) failure = warploom::to_json(*exchange.failure);
  return {{"model", exchange.model},
          {"endpoint", exchange.endpoint},
          {"messages", messages},
          {"purpose", exchange.question.purpose},
          {"most_tokens", exchange.question.most_tokens},
          {"answer", exchange.answer},
          {"failure", failure},
          {"prompt_tokens", exchange.usage.prompt},
          {"answer_tokens", exchange.usage.answer},
          {"tokens_estimated", exchange.usage.is_estimated},
          {"money", exchange.money},
          {"seconds", exchange.seconds},
          {"tries", exchange.tries},
          {"made", exchange.made}};
}

Result<Exchange> exchange_from_json(const json& record) {
  try {
    Exchange out;
    out.model = record.at("model");
    out.endpoint = record.at("endpoint");
    for (const json& message : record.at("messages"))
      out.question.messages.push_back({message.at("role"), message.at("content")});
    out.question.purpose = record.at("purpose");
    out.question.most_tokens = record.at("most_tokens");
    out.answer = record.at("answer");
    if (!record.at("failure").is_null()) out.failure = error_from_json(record["failure"]);
    out.usage = {record.at("prompt_tokens"), record.at("answer_tokens"),
                 record.at("tokens_estimated")};
    out.money = record.at("money");
    out.seconds = record.at("seconds");
    out.tries = record.at("tries");
    out.made = record.at("made");
    return out;
  } catch (const json::exception& error) {
    return fail({ErrorCode::kModelSchema, "a transcript holds no exchange", "",
                 "what a search with a model kept", error.what(), "search anew"});
  }
}
}  // namespace warploom::llm
