// Messages between processes as somebody would send them who wants to harm the reader.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/error.h"
#include "verify/channel.h"
#include "verify/evaluator.h"

namespace warploom::verify {
namespace {
using nlohmann::json;

class Ends : public testing::Test {
 protected:
  Ends() { ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()); }

  ~Ends() override { ::close(ends[1]); }

  void put(const void* bytes, size_t size) const {
    EXPECT_EQ(::send(ends[1], bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }

  void put_length(uint64_t size) const { put(&size, sizeof size); }

  std::array<int, 2> ends{};
};

TEST_F(Ends, AMessageIsReadAsItWasSent) {
  Channel channel(ends[0]);
  const std::vector<uint8_t> body = json::to_cbor({{"phase", "own"}});
  put_length(body.size());
  put(body.data(), body.size());
  const auto message = channel.receive(1000, kMostAnswer);
  ASSERT_TRUE(message);
  EXPECT_EQ((*message)["phase"], "own");
  EXPECT_FALSE(channel.closed());
}

TEST_F(Ends, ALengthAloneTakesNoMemory) {
  Channel channel(ends[0]);
  put_length(kMostMessage);
  ::shutdown(ends[1], SHUT_WR);
  EXPECT_FALSE(channel.receive(1000));
  EXPECT_TRUE(channel.closed());
}

TEST_F(Ends, AnAnswerThatIsTooLongIsNone) {
  Channel channel(ends[0]);
  put_length(kMostAnswer + 1);
  EXPECT_FALSE(channel.receive(1000, kMostAnswer));
  EXPECT_TRUE(channel.closed());
  EXPECT_TRUE(channel.broken());
}

TEST_F(Ends, NonsenseEndsTheTalk) {
  Channel channel(ends[0]);
  put_length(3);
  put("\xff\xff\xff", 3);
  EXPECT_FALSE(channel.receive(1000, kMostAnswer));
  EXPECT_TRUE(channel.broken());
}

TEST(Message, ThatNestsTooDeepIsNone) {
  EXPECT_FALSE(message_of(std::vector<uint8_t>(1 << 20, 0x81))) << "arrays that hold arrays";
  std::vector<uint8_t> objects;
  for (int i = 0; i < 1 << 18; ++i)
    objects.insert(objects.end(), {0xa1, 0x61, 'a'});
  EXPECT_FALSE(message_of(objects));
}

TEST(Message, ThatClaimsMoreThanThereIsIsNone) {
  constexpr uint8_t kHeads[] = {0x9b, 0xbb, 0x7b, 0x5b};  // of arrays, objects, texts, bytes
  for (const uint8_t head : kHeads)
    for (const uint8_t first : {uint8_t{0xff}, uint8_t{0x7f}}) {
      std::vector<uint8_t> bytes(9, 0xff);
      bytes[0] = head;
      bytes[1] = first;
      EXPECT_FALSE(message_of(bytes)) << static_cast<int>(head);
    }
}

TEST(Message, ThatIsNoObjectIsNone) {
  EXPECT_FALSE(message_of({}));
  for (const json& value : {json(), json(1), json("x"), json::array()})
    EXPECT_FALSE(message_of(json::to_cbor(value))) << value;
}

json accepted() {
  Verdict verdict;
  verdict.accepted = true;
  verdict.median_us = 7;
  verdict.samples = 5;
  verdict.speedup = {1.5, 1.4, 1.6, 5};
  verdict.evidence = {{}};
  return to_json(verdict);
}

json refused() {
  json verdict = accepted();
  verdict["accepted"] = false;
  verdict["refused"] = to_json(Error{ErrorCode::kCandidateWrong, "m", "p", "e", "f", "r"});
  return verdict;
}

// How many of these values, at every place of an honest answer, were not taken.
int refusals_of(const json& honest) {
  const std::vector<json> values = {json(),
                                    json(true),
                                    json(-1),
                                    json(uint64_t{1} << 63),
                                    json(1e308),
                                    json(std::nan("")),
                                    json("x"),
                                    json::array(),
                                    json::object(),
                                    json::binary({1, 2}),
                                    json::array({json::array()}),
                                    json(std::string(2 << 20, 'x'))};
  int lost = 0;
  const json flat = honest.flatten();
  for (const auto& [place, old] : flat.items())
    for (const json& value : values) {
      json changed = honest;
      changed[json::json_pointer(place)] = value;
      const auto read = verdict_from_json(changed);
      lost += !read;
      if (read) {
        EXPECT_TRUE(verdict_from_json(to_json(*read))) << place << value.type_name();
      } else {
        EXPECT_EQ(read.error().code, ErrorCode::kEvaluatorLost) << place;
      }
    }
  return lost;
}

TEST(Answer, WithAnotherValueAnywhereIsReadOrTheOtherProcessesFault) {
  EXPECT_GT(refusals_of(accepted()), 100);
  EXPECT_GT(refusals_of(refused()), 100);
}

TEST(Answer, OfAnotherFormIsTheOtherProcessesFault) {
  json counts = accepted();
  counts["samples"] = 1e300;
  json code = refused();
  code["refused"]["code"] = "no-such-code";
  for (const json& answer : {json(), json(3), json("accepted"), json::array({1}), counts, code}) {
    const auto read = verdict_from_json(answer);
    ASSERT_FALSE(read) << answer;
    EXPECT_EQ(read.error().code, ErrorCode::kEvaluatorLost) << answer;
  }
}

TEST(Answer, AnErrorHasACodeThatThereIs) {
  EXPECT_FALSE(error_said(3));
  EXPECT_FALSE(error_said({{"code", 130}}));
  EXPECT_FALSE(error_said({{"code", "made-up"}, {"message", "m"}}));
  EXPECT_FALSE(error_said({{"message", "m"}}));
  const auto said = error_said(to_json(Error{ErrorCode::kNoCompiler, "\033[2J", "", "", "", ""}));
  ASSERT_TRUE(said);
  EXPECT_EQ(describe(*said).find('\033'), std::string::npos);
}
}  // namespace
}  // namespace warploom::verify
