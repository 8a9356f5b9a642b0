#include "llm/model.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include "base/error.h"
#include "base/rows.h"
#include "llm/completion.h"
#include "llm/exchange.h"
#include "llm/post.h"
#include "llm/spending.h"

namespace warploom::llm {
namespace {
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// HTTP: https://httpwg.org/specs/rfc9110.html, section 15.
constexpr int kOk = 200;
constexpr int kRequestTimeout = 408;
constexpr int kTooManyRequests = 429;
constexpr int kServerErrors = 500;

constexpr size_t kShown = 300;

// May be another the next time.
bool is_passing(ErrorCode code) {
  constexpr std::array kPassing = {ErrorCode::kModelUnreachable, ErrorCode::kModelTimeout,
                                   ErrorCode::kModelBusy, ErrorCode::kModelTruncated};
  return contains(kPassing, code);
}

// False where it was ended before the time was over.
bool slept(Seconds pause, const std::function<bool()>& is_ended) {
  constexpr Seconds kStep(0.05);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause);
  while (Clock::now() < until) {
    if (is_ended && is_ended()) return false;
    std::this_thread::sleep_for(std::min<Seconds>(kStep, until - Clock::now()));
  }
  return true;
}

std::string words_of(std::string_view body) {
  std::string shown(body.substr(0, kShown));
  const auto hidden = [](char c) { return c < ' ' || c > '~'; };
  std::ranges::replace_if(shown, hidden, ' ');
  return shown;
}

Error refusal_of(int status, std::string_view body, const std::string& place) {
  const bool passes =
      status >= kServerErrors || status == kTooManyRequests || status == kRequestTimeout;
  Error error{passes ? ErrorCode::kModelBusy : ErrorCode::kModelRefused};
  error.message =
      passes ? "the model's endpoint is overloaded or failed" : "the endpoint refused the request";
  error.place = place;
  error.expected = "HTTP status 200";
  error.found = fmt::format("{}: {}", status, words_of(body));
  error.remedy = passes ? "try later, or fewer requests a minute with --llm-rate"
                        : "see --llm-url, --llm-model and the key";
  return error;
}

Error bad_url(const std::string& url, const char* found) {
  Error error{ErrorCode::kUsage, "the endpoint's URL cannot be used", "--llm-url"};
  error.expected = "http://HOST:PORT/v1 or https://HOST/v1, without a name or password";
  error.found = found;
  if (url.find('@') == url.npos) error.found += ": " + place_of(url);
  error.remedy = "give the key in WARPLOOM_LLM_KEY or by --llm-key-file";
  return error;
}

// The body that asks an OpenAI-compatible endpoint.
std::string body_of(const Question& question, const std::string& model, int64_t most_tokens) {
  json messages = json::array();
  for (const Message& message : question.messages)
    messages.push_back({{"role", message.role}, {"content", message.text}});
  const json body = {{"model", model},
                     {"messages", messages},
                     {"max_tokens", most_tokens},
                     {"stream", true},
                     {"stream_options", {{"include_usage", true}}}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string chat_url(const std::string& url) {
  const size_t query = std::min(url.find('?'), url.size());
  std::string path = url.substr(0, query);
  while (path.ends_with('/'))
    path.pop_back();
  return path + "/chat/completions" + url.substr(query);
}
}  // namespace

bool is_hopeless(ErrorCode code) {
  constexpr std::array kHopeless = {ErrorCode::kModelRefused, ErrorCode::kModelBudget,
                                    ErrorCode::kNoCurl, ErrorCode::kInterrupted};
  return contains(kHopeless, code);
}

Result<std::shared_ptr<ChatModel>> ChatModel::open(Endpoint endpoint, const Allowance& allowance) {
  const std::string& url = endpoint.url;
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return fail(bad_url(url, "another scheme"));
  if (url.find('@') != url.npos) return fail(bad_url(url, "a name or password"));
  const auto hidden = [](char c) { return c <= ' ' || c > '~'; };
  if (std::ranges::any_of(url, hidden)) return fail(bad_url(url, "spaces or other characters"));
  WARPLOOM_CHECK(check_curl());
  return std::shared_ptr<ChatModel>(new ChatModel(std::move(endpoint), allowance));
}

ChatModel::Tried ChatModel::ask_once(const Question& question,
                                     const std::function<bool()>& is_ended) {
  Tried out;
  const int64_t prompt = estimated_tokens(question.bytes());
  const int64_t most = spending_.most_answer(prompt, question.most_tokens);
  Post request{.url = chat_url(endpoint_.url)};
  request.headers = {"Content-Type: application/json", "Accept: text/event-stream",
                     "Expect:", "User-Agent: warploom"};
  if (endpoint_.key.is_set()) request.headers.push_back(endpoint_.key.header());
  request.body = body_of(question, endpoint_.name, most);
  request.connect_seconds = endpoint_.connect_seconds;
  request.idle_seconds = endpoint_.idle_seconds;
  request.seconds = endpoint_.seconds;
  request.most_bytes = endpoint_.most_bytes;
  request.is_ended = is_ended;
  Completion completion;
  std::string head;  // for the words of a refusal
  request.on_bytes = [&](std::string_view bytes) {
    if (head.size() < kShown) head += bytes.substr(0, kShown);
    completion.put(bytes);
  };
  const Result<Posted> posted = post(request);
  const Usage estimate{prompt, estimated_tokens(completion.bytes()), true};
  if (!posted) {
    out.failure = posted.error();
    const bool was_read = completion.bytes() > 0;
    if (was_read) out.usage = estimate;
    return out;
  }
  if (posted->status != kOk) {
    out.failure = refusal_of(posted->status, head, place_of(endpoint_.url));
    out.retry_after = posted->retry_after;
    return out;
  }
  out.usage = estimate;
  Result<Reply> reply = completion.finish();
  if (!reply) {
    out.failure = reply.error();
    out.met_limit = completion.met_limit();
    if (out.failure->place.empty()) out.failure->place = place_of(endpoint_.url);
    return out;
  }
  out.usage = reply->usage.value_or(estimate);
  out.reply = *std::move(reply);
  return out;
}

Exchange ChatModel::ask(const Question& question, const std::function<bool()>& is_ended) {
  Exchange out{endpoint_.name, place_of(endpoint_.url), question};
  const auto began = Clock::now();
  const Key& key = endpoint_.key;
  double pause = endpoint_.pause_seconds;
  while (true) {
    const Status allowed = spending_.may_ask(estimated_tokens(question.bytes()));
    if (!allowed) {
      if (!out.failure) out.failure = allowed.error();
      break;
    }
    if (!slept(spending_.next_turn(Clock::now()), is_ended)) {
      out.failure = Error{ErrorCode::kInterrupted, "interrupted before a model was asked"};
      break;
    }
    Tried tried = ask_once(question, is_ended);
    ++out.tries;
    spending_.add(tried.usage);
    out.usage.prompt += tried.usage.prompt;
    out.usage.answer += tried.usage.answer;
    out.usage.is_estimated = out.usage.is_estimated || tried.usage.is_estimated;
    out.failure = std::move(tried.failure);
    out.answer = key.scrubbed(std::move(tried.reply.text));
    const bool again = out.failure && is_passing(out.failure->code) && !tried.met_limit;
    if (!again || out.tries >= endpoint_.most_tries) break;
    const double wait = std::max(pause, tried.retry_after);
    pause *= 2;
    if (!slept(Seconds(std::min(wait, endpoint_.most_pause_seconds)), is_ended)) break;
  }
  if (out.failure) {
    out.failure->found = key.scrubbed(out.failure->found);
    out.failure->message = key.scrubbed(out.failure->message);
  }
  out.money = spending_.money_of(out.usage);
  out.seconds = Seconds(Clock::now() - began).count();
  return out;
}

Exchange ReplayedModel::ask(const Question& question, const std::function<bool()>&) {
  const size_t at = next_++;
  if (at >= exchanges_.size()) {
    Exchange out{name(), "", question};
    out.failure = Error{ErrorCode::kModelBudget, "the transcript has no further answers"};
    out.failure->found = fmt::format("{} were replayed", exchanges_.size());
    return out;
  }
  Exchange out = exchanges_[at];
  out.question = question;
  // What was wrong with its text is found again.
  if (out.failure && out.failure->code == ErrorCode::kModelNoSource) out.failure.reset();
  return out;
}
}  // namespace warploom::llm
