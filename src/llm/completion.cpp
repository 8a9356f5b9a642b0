#include "llm/completion.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include "base/error.h"
#include "base/quoted.h"

namespace warploom::llm {
namespace {
using nlohmann::json;

constexpr size_t kShown = 200;  // bytes of what was no answer

// The beginning of what came, for an error: printable ASCII alone.
std::string beginning(std::string_view text) {
  std::string shown(text.substr(0, kShown));
  const auto hidden = [](char c) { return c < ' ' || c > '~'; };
  std::ranges::replace_if(shown, hidden, ' ');
  return shown;
}

Error no_completion(std::string found) {
  Error error{ErrorCode::kModelSchema, "the endpoint's answer is no chat completion"};
  error.expected = "choices[0].message.content, or a stream of choices[0].delta.content";
  error.found = std::move(found);
  error.remedy =
      "see whether --llm-url names an OpenAI-compatible endpoint, as http://host:8080/v1";
  return error;
}

Error truncated(std::string found) {
  Error error{ErrorCode::kModelTruncated, "the model's answer ended before it was complete"};
  error.expected = "an answer to its end";
  error.found = std::move(found);
  error.remedy = "give the model more tokens an answer with --llm-answer, or ask again";
  return error;
}

std::string words_of(const json& error) {
  if (error.is_string()) return error.get<std::string>();
  if (error.is_object() && error.contains("message") && error["message"].is_string())
    return error["message"].get<std::string>();
  return error.dump();
}

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int64_t> count_at(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<int64_t>();
}

std::optional<Usage> usage_of(const json& object) {
  const auto found = object.find("usage");
  if (found == object.end() || !found->is_object()) return std::nullopt;
  const auto prompt = count_at(*found, "prompt_tokens");
  const auto answer = count_at(*found, "completion_tokens");
  if (!prompt || !answer || *prompt < 0 || *answer < 0) return std::nullopt;
  return Usage{*prompt, *answer};
}
}  // namespace

int64_t estimated_tokens(size_t bytes) {
  return static_cast<int64_t>(bytes / 4 + 1);
}

void Completion::put(std::string_view bytes) {
  if (failed_) return;
  const bool is_first = whole_.empty() && line_.empty() && !is_stream_;
  if (is_first) bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  if (bytes.empty()) return;
  const bool is_object = is_first ? bytes.front() == '{' : !whole_.empty();
  if (is_object) {
    whole_ += bytes;
    return;
  }
  is_stream_ = true;
  for (const char c : bytes) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_);
    line_.clear();
  }
}

// An event ends with an empty line; comments and other fields than data are nothing to us.
void Completion::take_line(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (line.empty()) {
    if (has_data_) take_event(event_);
    event_.clear();
    has_data_ = false;
    return;
  }
  if (!line.starts_with(kData)) {
    const bool is_field = line.starts_with(':') || line.starts_with("event:") ||
                          line.starts_with("id:") || line.starts_with("retry:");
    if (!is_field && !failed_) failed_ = no_completion(beginning(line));
    return;
  }
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) event_ += '\n';
  event_ += line;
  has_data_ = true;
}

void Completion::take_event(const std::string& data) {
  if (failed_ || is_done_) return;
  is_done_ = data == "[DONE]";
  if (is_done_) return;
  const json object = json::parse(data, nullptr, false);
  if (object.is_discarded())
    failed_ = no_completion(is_utf8(data) ? beginning(data) : "bytes that are no UTF-8");
  else
    take_object(object);
}

void Completion::take_object(const json& object) {
  if (!object.is_object()) {
    failed_ = no_completion(beginning(object.dump()));
    return;
  }
  if (const auto error = object.find("error"); error != object.end() && !error->is_null()) {
    failed_ = Error{ErrorCode::kModelBusy, "the model's endpoint failed while it answered"};
    failed_->found = beginning(words_of(*error));
    return;
  }
  if (const auto usage = usage_of(object)) reply_.usage = usage;
  const auto choices = object.find("choices");
  if (choices == object.end() || !choices->is_array()) {
    failed_ = no_completion(beginning(object.dump()));
    return;
  }
  if (!choices->empty()) take_choice(choices->front());  // the last event may hold usage alone
}

void Completion::take_choice(const json& choice) {
  const char* const name = is_stream_ ? "delta" : "message";
  const bool has_message = choice.is_object() && choice.contains(name) && choice[name].is_object();
  if (!has_message) {
    failed_ = no_completion(beginning(choice.dump()));
    return;
  }
  const json& message = choice[name];
  const bool is_wrong = message.contains("content") && !message["content"].is_string() &&
                        !message["content"].is_null();
  if (is_wrong || (!is_stream_ && !message.contains("content"))) {
    failed_ = no_completion(beginning(choice.dump()));
    return;
  }
  reply_.text += text_at(message, "content");
  thought_bytes_ += text_at(message, "reasoning_content").size();
  if (const std::string why = text_at(choice, "finish_reason"); !why.empty()) finish_reason_ = why;
}

Result<Reply> Completion::finish() {
  if (!is_stream_ && !failed_) {
    if (whole_.empty()) return fail(truncated("nothing"));
    const json object = json::parse(whole_, nullptr, false);
    if (object.is_discarded() && !is_utf8(whole_))
      failed_ = no_completion("bytes that are no UTF-8");
    else if (object.is_discarded())
      failed_ = truncated(beginning(whole_));
    else
      take_object(object);
  }
  if (is_stream_ && !line_.empty()) take_line(std::exchange(line_, {}));
  if (failed_) return fail(*failed_);
  if (met_limit()) return fail(truncated("as many tokens as an answer may have"));
  const bool is_complete = !is_stream_ || is_done_ || !finish_reason_.empty();
  if (!is_complete) return fail(truncated("a stream without [DONE]"));
  return reply_;
}
}  // namespace warploom::llm
