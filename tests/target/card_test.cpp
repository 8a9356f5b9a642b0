#include "target/card.h"
#include <gtest/gtest.h>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include "base/error.h"
#include "target/capabilities.h"
#include "target/instruction.h"

namespace warploom::target {
namespace {
// What a driver of CUDA 12 says of an H100 SXM.
DeviceFacts h100() {
  DeviceFacts facts;
  facts.name = "NVIDIA H100 80GB HBM3";
  facts.arch = "sm_90a";
  facts.num_sms = 132;
  facts.l2_bytes = int64_t{50} << 20;
  facts.shared_bytes = 227 << 10;
  facts.threads_per_sm = 2048;
  facts.ghz = 1.98;
  facts.memory_ghz = 2.619;
  facts.bus_bits = 5120;
  return facts;
}

TEST(Cards, AreFoundByTheirNamesHoweverTheyAreWritten) {
  for (const char* name : {"H100 SXM", "h100-sxm", "h100_sxm", "H100SXM"}) {
    const Card* const card = card_named(name);
    ASSERT_TRUE(card) << name;
    EXPECT_EQ(card->name, "H100 SXM");
  }
  EXPECT_FALSE(card_named("H100"));
}

TEST(Cards, AreFoundByTheWholeNameThatADriverGives) {
  EXPECT_EQ(card_of_device("NVIDIA H200")->name, "H200");
  EXPECT_EQ(card_of_device("NVIDIA H200 NVL")->name, "H200 NVL");
  EXPECT_FALSE(card_of_device("NVIDIA H100 80GB HBM3 MIG 1g.10gb"));
}

TEST(Cards, HaveNamesOfTheirOwnAndAnArchitectureThatIsKnown) {
  std::set<std::string_view> names;
  std::set<std::string_view> devices;
  for (const Card& card : cards()) {
    EXPECT_TRUE(names.insert(card.name).second) << card.name;
    EXPECT_TRUE(devices.insert(card.device).second) << card.device;
    EXPECT_FALSE(instructions_of(std::string(card.units->arch)).empty()) << card.name;
  }
}

// Data sheets round: 312 for 311.9.
void expect_near(double found, double stated) {
  EXPECT_NEAR(found, stated, 0.01 * stated);
}

TEST(Cards, PeaksAreThoseOfTheDataSheets) {
  struct Stated {
    const char* card;
    double fp32;
    double tf32;
    double half;
    double fp8;
  };

  for (const Stated& stated :
       {Stated{"A100 80GB SXM", 19.5, 156, 312, 0}, Stated{"A10", 31.2, 62.5, 125, 0},
        Stated{"RTX 3090", 35.6, 35.6, 71, 0}, Stated{"L4", 30.3, 60, 121, 242},
        Stated{"L40S", 91.6, 183, 366, 733}, Stated{"RTX 4090", 82.6, 82.6, 165.2, 330.3},
        Stated{"H100 PCIe", 51.2, 378, 756, 1513}, Stated{"H100 SXM", 67, 494.7, 989.4, 1979},
        Stated{"H100 NVL", 60, 418, 836, 1671}}) {
    SCOPED_TRACE(stated.card);
    const auto card = capabilities_of(stated.card);
    ASSERT_TRUE(card.has_value());
    expect_near(card->fp32_tflops, stated.fp32);
    expect_near(card->tf32_tflops, stated.tf32);
    expect_near(card->half_tflops, stated.half);
    expect_near(card->fp8_tflops, stated.fp8);
  }
}

TEST(Cards, AnArchitectureIsPlannedForAsItsFirstCard) {
  EXPECT_EQ(capabilities_of("sm_90a")->card, "H200");
  EXPECT_EQ(capabilities_of("sm_90a")->dram_gbs, 4800);
  EXPECT_EQ(capabilities_of("sm_80")->card, "A100 80GB SXM");
  EXPECT_EQ(capabilities_of("sm_86")->card, "A10");
}

TEST(Cards, AnH100IsNotGivenTheMemoryOfAnH200) {
  const auto card = capabilities_of_device(h100());
  ASSERT_TRUE(card.has_value());
  EXPECT_EQ(card->card, "H100 SXM");
  EXPECT_EQ(card->dram_gbs, 3350);
  EXPECT_FALSE(card->estimated);
}

TEST(Cards, TheTableCountsWhereTheDriverSaysNothingOfItsMemory) {
  DeviceFacts facts = h100();
  facts.memory_ghz = 0;
  EXPECT_EQ(capabilities_of_device(facts)->dram_gbs, 3350);
}

TEST(Cards, TheDriverCountsMultiprocessorsOfAListedCard) {
  DeviceFacts facts = h100();
  facts.num_sms = 66;
  const auto half = capabilities_of_device(facts);
  EXPECT_EQ(half->num_sms, 66);
  expect_near(half->half_tflops, 494.7);
}

TEST(Cards, ClocksAboveTheTablesRaiseTheFloor) {
  DeviceFacts facts = h100();
  facts.ghz = 2.2;
  expect_near(capabilities_of_device(facts)->half_tflops, 989.4 * 2.2 / 1.98);
}

TEST(Cards, OneThatIsNotListedIsEstimatedFromItsDriver) {
  DeviceFacts facts;
  facts.name = "NVIDIA RTX A6000";
  facts.arch = "sm_86";
  facts.num_sms = 84;
  facts.ghz = 1.8;
  facts.memory_ghz = 8.001;
  facts.bus_bits = 384;
  const auto card = capabilities_of_device(facts);
  ASSERT_TRUE(card.has_value());
  EXPECT_TRUE(card->estimated);
  EXPECT_EQ(card->card, "NVIDIA RTX A6000");
  expect_near(card->dram_gbs, 768);
  expect_near(card->fp32_tflops, 38.7);
}

TEST(Cards, MemoryThatNobodyStatesIsUnknown) {
  DeviceFacts facts;
  facts.name = "NVIDIA Unheard Of";
  facts.arch = "sm_90a";
  const auto card = capabilities_of_device(facts);
  EXPECT_EQ(card->dram_gbs, 0);
  EXPECT_GT(card->copy_gbs(), 0);  // what is predicted is no fact
}

TEST(Cards, AnArchitectureThatIsNotKnownHasNoPeaks) {
  DeviceFacts facts = h100();
  facts.name = "NVIDIA Newer";
  facts.arch = "sm_100a";
  const auto card = capabilities_of_device(facts);
  ASSERT_TRUE(card.has_value());
  EXPECT_EQ(card->arch, "sm_100a");
  EXPECT_FALSE(card->has_wgmma);
  EXPECT_EQ(card->half_tflops, 0);
}

TEST(Cards, BinariesOfTheVersionBeforeServeAnArchitectureBetween) {
  DeviceFacts facts = h100();
  facts.name = "NVIDIA Between";
  facts.arch = "sm_87";
  facts.shared_bytes = 0;
  EXPECT_EQ(capabilities_of_device(facts)->arch, "sm_86");
}

TEST(Cards, ARecordGivesACardBack) {
  const auto card = with_measured(*capabilities_of("H100 PCIe"), {1800, 48, 600});
  const auto again = with_card(*capabilities_of("sm_90a"), card_to_json(card));
  EXPECT_EQ(again.card, "H100 PCIe");
  EXPECT_EQ(again.num_sms, 114);
  EXPECT_EQ(again.dram_gbs, card.dram_gbs);
  EXPECT_EQ(again.half_tflops, card.half_tflops);
  EXPECT_EQ(again.measured.copy_gbs, 1800);
}

TEST(Cards, WhatIsNotMeasuredIsNullInARecord) {
  const nlohmann::json card = card_to_json(*capabilities_of("A10"));
  EXPECT_TRUE(card["measured"]["copy_gbs"].is_null());
  EXPECT_TRUE(card["fp8_tflops"].is_null());
}

TEST(Cards, PredictionsGoByTheCopyRateThatWasMeasured) {
  const auto stated = *capabilities_of("H100 SXM");
  EXPECT_EQ(stated.copy_gbs(), 3350 * stated.rates.dram_fraction);
  EXPECT_EQ(with_measured(stated, {3100, 0, 0}).copy_gbs(), 3100);
}
}  // namespace
}  // namespace warploom::target
