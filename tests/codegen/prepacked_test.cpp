// Packed buffers in a launch list: what the record says of them, and how their owner lays the
// elements.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/launch_list.h"
#include "layout/memory_layout.h"

namespace warploom {
namespace {
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> list) {
  Bytes out;
  for (const int value : list)
    out.push_back(static_cast<std::byte>(value));
  return out;
}

LaunchList list_with(Dtype dtype, std::vector<int64_t> shape,
                     std::vector<std::vector<layout::MemoryMode>> order) {
  LaunchList list{Engine::cuda, "sm_80", {{"W", dtype, std::move(shape)}}, {}, {}, {}};
  list.kernels.push_back({.name = "k", .args = {{.buffer = "W", .prepacked = std::move(order)}}});
  return list;
}

Bytes packed(const LaunchList& list, Bytes rows) {
  std::map<std::string, Bytes> buffers = {{"W", std::move(rows)}};
  pack_inputs(list, buffers);
  return buffers["W"];
}

TEST(Packed, TilesOfTwoByTwoLieOneBehindAnother) {
  const auto list = list_with(Dtype::u8, {16}, {{{2, 1}, {2, 8}}, {{2, 2}, {2, 4}}});
  EXPECT_EQ(packed(list, bytes_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})),
            bytes_of({0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15}));
}

TEST(Packed, ElementsOfHalfAByteChangePlacesWithinBytes) {
  const auto list = list_with(Dtype::u4, {4}, {{{2, 1}}, {{2, 2}}});  // [[1, 2], [3, 4]] by columns
  EXPECT_EQ(packed(list, bytes_of({0x21, 0x43})), bytes_of({0x31, 0x42}));
}

TEST(Packed, ElementsOfTwoBytesStayWhole) {
  const auto list = list_with(Dtype::f16, {4}, {{{2, 1}}, {{2, 2}}});
  EXPECT_EQ(packed(list, bytes_of({1, 2, 3, 4, 5, 6, 7, 8})), bytes_of({1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(Packed, OtherInputsStayAsTheyAre) {
  EXPECT_EQ(packed(list_with(Dtype::u8, {3}, {}), bytes_of({3, 1, 2})), bytes_of({3, 1, 2}));
}

TEST(Packed, TheRecordOfALaunchListKeepsTheOrder) {
  auto list = list_with(Dtype::u8, {16}, {{{2, 1}, {2, 8}}, {{2, 2}, {2, 4}}});
  list.outputs = {{"y", Dtype::f32, {1}}};  // a list without outputs is none
  const nlohmann::json json = to_json(list);
  EXPECT_EQ(json["kernels"][0]["args"][0]["packed"],
            nlohmann::json::parse("[[[2,1],[2,8]],[[2,2],[2,4]]]"));
  const auto again = launch_list_from_json(json);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->kernels[0].args[0].prepacked, list.kernels[0].args[0].prepacked);
}
}  // namespace
}  // namespace warploom
