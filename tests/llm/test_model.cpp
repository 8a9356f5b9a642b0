// A chat endpoint that answers, refuses, fails and misbehaves.
#include <gtest/gtest.h>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "llm/exchange.h"
#include "llm/key.h"
#include "llm/model.h"
#include "llm/spending.h"
#include "support/scripted_endpoint.h"

namespace warploom::llm {
namespace {
constexpr const char* kSecret = "sk-a-very-secret-key";

// An endpoint that is asked without patience.
Endpoint at(const std::string& url) {
  return {.url = url,
          .name = "scripted",
          .connect_seconds = 2,
          .idle_seconds = 5,
          .seconds = 5,
          .pause_seconds = 0.01,
          .most_pause_seconds = 0.05};
}

Exchange asked(Endpoint endpoint, const Allowance& allowance = {},
               const std::function<bool()>& is_ended = {}) {
  const auto model = ChatModel::open(std::move(endpoint), allowance);
  if (!model) return {.failure = model.error()};
  return (*model)->ask({.messages = {{"user", "a kernel, please"}}}, is_ended);
}

ErrorCode code_of(const Exchange& exchange) {
  return exchange.failure ? exchange.failure->code : ErrorCode::kInternal;
}

TEST(ChatModel, JoinsAStreamAndItsUsage) {
  const ScriptedEndpoint endpoint({streamed("int main() {}\nüber", 3)});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_FALSE(exchange.failure) << describe(*exchange.failure);
  EXPECT_EQ(exchange.answer, "int main() {}\nüber");
  EXPECT_EQ(exchange.usage.prompt, 100);
  EXPECT_EQ(exchange.usage.answer, 50);
  EXPECT_FALSE(exchange.usage.is_estimated);
}

TEST(ChatModel, ReadsAnAnswerThatIsNotStreamed) {
  const ScriptedEndpoint endpoint({whole("int main() {}")});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_FALSE(exchange.failure);
  EXPECT_EQ(exchange.answer, "int main() {}");
  EXPECT_EQ(exchange.usage.total(), 150);
}

TEST(ChatModel, AsksByTheEndpointsForm) {
  const ScriptedEndpoint endpoint({whole("x")});
  asked(at(endpoint.url()));
  const std::string request = endpoint.requests().at(0);
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n")) << request;
  EXPECT_EQ(request.find("Authorization"), request.npos);
  const auto body = nlohmann::json::parse(request.substr(request.find("\r\n\r\n") + 4));
  EXPECT_EQ(body["model"], "scripted");
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["messages"][0]["content"], "a kernel, please");
}

TEST(ChatModel, TriesAgainWhereTheEndpointIsBusy) {
  const ScriptedEndpoint endpoint({refusal(429), refusal(500), refusal(503), streamed("late")});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_FALSE(exchange.failure);
  EXPECT_EQ(exchange.answer, "late");
  EXPECT_EQ(exchange.tries, 4);
}

TEST(ChatModel, GivesUpOnAnEndpointThatStaysBusy) {
  const ScriptedEndpoint endpoint({refusal(429, "slow down")});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_EQ(code_of(exchange), ErrorCode::kModelBusy);
  EXPECT_NE(exchange.failure->found.find("slow down"), std::string::npos);
  EXPECT_EQ(exchange.tries, 5);
}

TEST(ChatModel, WaitsAsLongAsTheEndpointAsks) {
  Scripted busy = refusal(429);
  busy.headers = "Retry-After: 1\r\n";
  const ScriptedEndpoint endpoint({busy, streamed("x")});
  Endpoint patient = at(endpoint.url());
  patient.most_pause_seconds = 0.3;
  const Exchange exchange = asked(patient);
  EXPECT_FALSE(exchange.failure);
  EXPECT_GE(exchange.seconds, 0.3);
}

TEST(ChatModel, DoesNotAskAgainWhereItIsRefused) {
  const ScriptedEndpoint endpoint({refusal(401, "who are you?")});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_EQ(code_of(exchange), ErrorCode::kModelRefused);
  EXPECT_EQ(exchange.tries, 1);
}

TEST(ChatModel, SaysThatNobodyListens) {
  std::string url;
  {
    const ScriptedEndpoint gone({whole("x")});
    url = gone.url();
  }
  const Exchange exchange = asked(at(url));
  EXPECT_EQ(code_of(exchange), ErrorCode::kModelUnreachable);
  EXPECT_EQ(exchange.tries, 5);
}

TEST(ChatModel, SaysThatTheConnectionBroke) {
  const Scripted silent{.drops = true};
  const ScriptedEndpoint endpoint({silent});
  EXPECT_EQ(code_of(asked(at(endpoint.url()))), ErrorCode::kModelUnreachable);
}

TEST(ChatModel, DoesNotWaitForASlowOneForever) {
  Scripted slow = streamed("x");
  slow.wait_seconds = 30;
  const ScriptedEndpoint endpoint({slow});
  Endpoint hasty = at(endpoint.url());
  hasty.seconds = 0.2;
  hasty.most_tries = 1;
  EXPECT_EQ(code_of(asked(hasty)), ErrorCode::kModelTimeout);
}

TEST(ChatModel, EndsWhenItIsTold) {
  Scripted slow = streamed("x");
  slow.wait_seconds = 30;
  const ScriptedEndpoint endpoint({slow});
  Endpoint patient = at(endpoint.url());
  patient.seconds = 30;
  const Exchange exchange = asked(patient, {}, [] { return true; });
  EXPECT_EQ(code_of(exchange), ErrorCode::kInterrupted);
}

TEST(ChatModel, AnotherSchemaIsNoCompletion) {
  for (const char* body : {"{\"text\": \"x\"}", "{\"choices\": [{\"text\": \"x\"}]}", "hello",
                           "{\"choices\": [{\"message\": {\"content\": 7}}]}", "data: 7\n\n"}) {
    const Scripted other{.body = body};
    const ScriptedEndpoint endpoint({other});
    EXPECT_EQ(code_of(asked(at(endpoint.url()))), ErrorCode::kModelSchema) << body;
  }
}

TEST(ChatModel, BytesThatAreNoUtf8AreNoCompletion) {
  Scripted wrong = streamed("abc");
  const size_t at_letter = wrong.body.find("abc");
  wrong.body.replace(at_letter, 1, "\xff");
  const ScriptedEndpoint in_stream({wrong});
  EXPECT_EQ(code_of(asked(at(in_stream.url()))), ErrorCode::kModelSchema);
  const Scripted whole_one{.body = "{\"choices\": [{\"message\": {\"content\": \"\xff\"}}]}"};
  const ScriptedEndpoint at_once({whole_one});
  EXPECT_EQ(code_of(asked(at(at_once.url()))), ErrorCode::kModelSchema);
}

TEST(ChatModel, AStreamThatEndsEarlyIsTruncated) {
  Scripted cut = streamed("a long answer");
  cut.body = cut.body.substr(0, cut.body.find("answer"));
  const ScriptedEndpoint endpoint({cut});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_EQ(code_of(exchange), ErrorCode::kModelTruncated);
  EXPECT_TRUE(exchange.usage.is_estimated);
  EXPECT_GT(exchange.usage.total(), 0);
}

TEST(ChatModel, AnAnswerThatMetItsLimitOfTokensIsTruncated) {
  Scripted cut = whole("int main");
  cut.body.replace(cut.body.find("\"stop\""), 6, "\"length\"");
  const ScriptedEndpoint endpoint({cut});
  EXPECT_EQ(code_of(asked(at(endpoint.url()))), ErrorCode::kModelTruncated);
}

TEST(ChatModel, AnAnswerOfFiftyMegabytesIsCutOff) {
  Scripted flood = streamed("x");
  flood.body = "data: ";
  flood.filler = 50 << 20;
  const ScriptedEndpoint endpoint({flood});
  EXPECT_EQ(code_of(asked(at(endpoint.url()))), ErrorCode::kModelTooLarge);
}

TEST(ChatModel, AFailureInTheMiddleOfAStreamIsTriedAgain) {
  const Scripted failed{.body = "data: {\"error\": {\"message\": \"out of memory\"}}\n\n"};
  const ScriptedEndpoint endpoint({failed, streamed("x")});
  const Exchange exchange = asked(at(endpoint.url()));
  EXPECT_FALSE(exchange.failure);
  EXPECT_EQ(exchange.tries, 2);
}

TEST(ChatModel, TheKeyIsSentAndNeverKept) {
  const std::string secret = kSecret;
  Scripted tells = streamed("your key is " + secret, 1000);
  const ScriptedEndpoint endpoint({refusal(500, "bad key " + secret), tells, refusal(401, secret)});
  Endpoint keyed = at(endpoint.url());
  keyed.key = *Key::of(secret + "\n", "test");
  const Exchange answered = asked(keyed);
  const Exchange refused = asked(keyed);
  EXPECT_NE(endpoint.requests()[0].find("Authorization: Bearer " + secret), std::string::npos);
  EXPECT_EQ(answered.answer, "your key is [key]");
  EXPECT_EQ(code_of(refused), ErrorCode::kModelRefused);
  for (const Exchange& exchange : {answered, refused}) {
    EXPECT_EQ(to_json(exchange).dump().find(secret), std::string::npos);
    const std::string words = exchange.failure ? describe(*exchange.failure) : "";
    EXPECT_EQ(words.find(secret), std::string::npos);
  }
}

TEST(ChatModel, TheQueryOfAUrlIsSentAndNotKept) {
  const ScriptedEndpoint endpoint({whole("x")});
  const Exchange exchange = asked(at(endpoint.url() + "?api-version=7"));
  EXPECT_TRUE(endpoint.requests()[0].starts_with("POST /v1/chat/completions?api-version=7 "));
  EXPECT_EQ(exchange.endpoint, endpoint.url());
}

TEST(ChatModel, AUrlThatIsNoneIsRefused) {
  for (const char* url :
       {"127.0.0.1:8080", "file:///etc/passwd", "http://me:pw@host/v1", "http://host/v 1"}) {
    const Exchange exchange = asked(at(url));
    EXPECT_EQ(code_of(exchange), ErrorCode::kUsage) << url;
    EXPECT_EQ(describe(*exchange.failure).find("pw"), std::string::npos);
  }
}

TEST(ChatModel, TokensEndTheAsking) {
  const ScriptedEndpoint endpoint({whole("x")});
  const auto model = ChatModel::open(at(endpoint.url()), {.tokens = 500});
  ASSERT_TRUE(model);
  const Question question{.messages = {{"user", "x"}}};
  EXPECT_FALSE((*model)->ask(question, {}).failure);
  EXPECT_FALSE((*model)->ask(question, {}).failure);
  EXPECT_EQ(code_of((*model)->ask(question, {})), ErrorCode::kModelBudget);
  EXPECT_EQ(endpoint.requests().size(), 2u);
}

TEST(ChatModel, MoneyEndsTheAsking) {
  const ScriptedEndpoint endpoint({whole("x")});
  const Allowance allowance{.money = 0.001, .prices = {.prompt = 1, .answer = 3}};
  const auto model = ChatModel::open(at(endpoint.url()), allowance);
  ASSERT_TRUE(model);
  const Question question{.messages = {{"user", "x"}}};
  const Exchange first = (*model)->ask(question, {});
  EXPECT_DOUBLE_EQ(first.money, 250e-6);
  EXPECT_EQ(code_of((*model)->ask(question, {})), ErrorCode::kModelBudget);
}

TEST(ChatModel, RequestsKeepTheirRate) {
  const ScriptedEndpoint endpoint({whole("x")});
  const auto model = ChatModel::open(at(endpoint.url()), {.requests_per_minute = 300});
  ASSERT_TRUE(model);
  double seconds = 0;
  for (int i = 0; i < 3; ++i)
    seconds += (*model)->ask({.messages = {{"user", "x"}}}, {}).seconds;
  EXPECT_GE(seconds, 0.4);
}

TEST(ReplayedModel, GivesTheAnswersInTheirOrder) {
  Exchange first{.model = "m", .answer = "one"};
  Exchange second{.model = "m", .answer = "two"};
  ReplayedModel model({first, second});
  EXPECT_EQ(model.ask({}, {}).answer, "one");
  EXPECT_EQ(model.ask({}, {}).answer, "two");
  EXPECT_EQ(code_of(model.ask({}, {})), ErrorCode::kModelBudget);
}

TEST(Exchange, IsReadAsItWasWritten) {
  Exchange exchange{.model = "m", .endpoint = "http://h/v1", .answer = "one"};
  exchange.question = {.messages = {{"system", "s"}, {"user", "u"}}, .purpose = "mend"};
  exchange.failure = Error{ErrorCode::kModelBusy, "busy"};
  exchange.usage = {3, 4, true};
  exchange.tries = 2;
  exchange.made = "written text_hash=1";
  const auto read = exchange_from_json(to_json(exchange));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(exchange));
  EXPECT_EQ(exchange_from_json(nlohmann::json::object()).error().code, ErrorCode::kModelSchema);
}
}  // namespace
}  // namespace warploom::llm
