#include "cli/model_flags.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include "base/error.h"
#include "cli/command.h"
#include "llm/key.h"
#include "llm/model.h"
#include "llm/spending.h"
#include "search/options.h"

namespace warploom::cli {
namespace {
constexpr const char* kLlm = "llm";

Error contradiction(std::string message, std::string place, std::string expected) {
  Error error{ErrorCode::kFlagsContradict, std::move(message), std::move(place)};
  error.expected = std::move(expected);
  return error;
}

// A number of at least 0 that is all of the text.
std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = fault == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

Error no_number(const char* flag, const char* expected, const std::string& found) {
  Error error{ErrorCode::kUsage, "a flag has a value of the wrong kind", flag};
  error.expected = expected;
  error.found = found;
  return error;
}

Result<double> money_of(const ModelFlags& flags) {
  if (flags.money.empty()) return 0.0;
  if (const auto money = number_of(flags.money)) return *money;
  return fail(no_number("--llm-money", "a number, as 2.50", flags.money));
}

// "3,15": of a million tokens of questions and of answers.
Result<llm::Prices> prices_of(const ModelFlags& flags) {
  if (flags.price.empty()) return llm::Prices{};
  const size_t comma = std::min(flags.price.find(','), flags.price.size());
  const std::string_view text = flags.price;
  const auto prompt = number_of(text.substr(0, comma));
  const auto answer = number_of(text.substr(std::min(comma + 1, text.size())));
  if (prompt && answer) return llm::Prices{*prompt, *answer};
  return fail(no_number("--llm-price", "two numbers, as 3,15", flags.price));
}

Result<llm::Allowance> allowance_of(const ModelFlags& flags) {
  llm::Allowance out;
  WARPLOOM_TRY(out.money, money_of(flags));
  WARPLOOM_TRY(out.prices, prices_of(flags));
  if (out.money > 0 && flags.price.empty())
    return fail(contradiction("money cannot be counted without prices", "--llm-money",
                              "--llm-price IN,OUT beside it"));
  out.tokens = flags.budget.value_or(0);
  out.requests_per_minute = flags.rate.value_or(0);
  return out;
}

// Whether any flag beside --coder speaks of a model.
bool names_model(const ModelFlags& flags) {
  const bool has_text =
      !(flags.url + flags.name + flags.key_file + flags.money + flags.price).empty();
  return has_text || flags.budget || flags.answer || flags.rate || flags.replay;
}
}  // namespace

void add_model_flags(std::vector<Flag>& flags, ModelFlags& into) {
  const std::vector<Flag> more = {
      {"--coder",
       &into.coder,
       "who writes kernels: rule, or llm for a language model beside it",
       {"rule", kLlm}},
      {"--llm-url", &into.url, "an OpenAI-compatible endpoint, as http://127.0.0.1:8080/v1"},
      {"--llm-model", &into.name, "the model's name there"},
      {"--llm-key-file", &into.key_file,
       "a file with the endpoint's key; default: the variable WARPLOOM_LLM_KEY, or none"},
      {"--llm-budget", &into.budget, "tokens that the model may use; default: no limit", {}, 1},
      {"--llm-answer", &into.answer, "tokens that an answer may have; default: 8192", {}, 256},
      {"--llm-rate", &into.rate, "requests a minute at most", {}, 1},
      {"--llm-money", &into.money, "money that the model may use, by --llm-price"},
      {"--llm-price", &into.price, "IN,OUT: of a million tokens of questions and answers"},
      {"--llm-timeout", &into.seconds, "how long an answer may take: 90s, 10m"},
      {"--llm-replay", &into.replay,
       "take the answers that the archive has of an earlier search instead of asking"}};
  flags.insert(flags.end(), more.begin(), more.end());
}

Status use_model(const ModelFlags& flags, search::Options& options) {
  if (flags.coder != kLlm) {
    if (!names_model(flags)) return ok();
    return fail(contradiction("a model is named and not used", "--llm-…", "--coder llm beside it"));
  }
  options.replay_model = flags.replay;
  options.answer_tokens = flags.answer.value_or(options.answer_tokens);
  if (flags.replay) return ok();
  if (flags.url.empty() || flags.name.empty())
    return fail(contradiction("no model is named to write kernels", "--coder llm",
                              "--llm-url and --llm-model"));
  llm::Endpoint endpoint{.url = flags.url, .name = flags.name};
  if (flags.key_file.empty())
    WARPLOOM_TRY(endpoint.key, llm::key_from_environment());
  else
    WARPLOOM_TRY(endpoint.key, llm::key_from_file(flags.key_file));
  endpoint.seconds = flags.seconds;
  endpoint.idle_seconds = std::min(endpoint.idle_seconds, flags.seconds);
  endpoint.connect_seconds = std::min(endpoint.connect_seconds, flags.seconds);
  WARPLOOM_TRY(const llm::Allowance allowance, allowance_of(flags));
  WARPLOOM_TRY(options.model, llm::ChatModel::open(std::move(endpoint), allowance));
  return ok();
}
}  // namespace warploom::cli
