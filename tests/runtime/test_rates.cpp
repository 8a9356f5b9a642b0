#include <gtest/gtest.h>
#include <filesystem>
#include <memory>
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "fixtures.h"
#include "runtime/executor.h"
#include "runtime/rates.h"
#include "target/capabilities.h"

namespace warploom::runtime {
namespace {
DeviceInfo some_card() {
  DeviceInfo device;
  device.name = "NVIDIA H100 80GB HBM3";
  device.arch = "sm_90a";
  device.num_sms = 132;
  device.ghz = 1.98;
  device.driver = "CUDA 13.0";
  return device;
}

TEST(Rates, OfACpuAreMeasured) {
  const OwnCache cache;
  const auto device = *Executor::open(Engine::cpu);
  const auto rates = measure_rates(*device, {.seconds = 0.01});
  ASSERT_TRUE(rates.has_value()) << describe(rates.error());
  EXPECT_GT(rates->copy_gbs, 0);
  EXPECT_GT(rates->fp32_tflops, 0);
  // Of bf16, where anything multiplies that faster than fp32.
  EXPECT_EQ(rates->half_tflops > 0, target::capabilities_of("cpu")->has_bf16_dot);
}

TEST(Rates, OfAGpuAreBelowItsPeaks) {
  const OwnCache cache;
  const auto device = Executor::open(Engine::cuda);
  if (!device) GTEST_SKIP() << device.error().message;
  const auto card = *capabilities_here(Engine::cuda);
  const auto rates = measure_rates(**device, {.seconds = 0.2});
  ASSERT_TRUE(rates.has_value()) << describe(rates.error());
  EXPECT_GT(rates->copy_gbs, 0);
  // Of a card that is not listed, or an unknown architecture, peaks may be 0.
  const auto or_any = [](double peak) { return peak > 0 ? peak : 1e9; };
  EXPECT_LT(rates->copy_gbs, or_any(card.dram_gbs));
  EXPECT_LT(rates->fp32_tflops, 1.02 * or_any(card.fp32_tflops));
  EXPECT_LT(rates->half_tflops, 1.1 * or_any(card.half_tflops));
}

TEST(Rates, AreKeptByCardDriverAndClocks) {
  const OwnCache cache;
  ASSERT_TRUE(store_rates(some_card(), {3000, 60, 700}));
  EXPECT_EQ(stored_rates(some_card()).copy_gbs, 3000);
  DeviceInfo other = some_card();
  other.driver = "CUDA 13.1";
  EXPECT_EQ(stored_rates(other).copy_gbs, 0);
  other = some_card();
  other.ghz = 1.5;
  EXPECT_EQ(stored_rates(other).copy_gbs, 0);
}

TEST(Rates, OfADamagedFileAreUnknown) {
  const OwnCache cache;
  ASSERT_TRUE(store_rates(some_card(), {3000, 60, 700}));
  for (const auto& file : std::filesystem::directory_iterator(cache_folder() / "rates"))
    ASSERT_TRUE(write_file(file.path(), "{\"of\": 1"));
  EXPECT_EQ(stored_rates(some_card()).copy_gbs, 0);
}

TEST(Rates, WhatIsHereIsPlannedForByThem) {
  const OwnCache cache;
  const DeviceInfo here = *Executor::describe(Engine::cpu);
  ASSERT_TRUE(store_rates(here, {12, 1, 0}));
  EXPECT_EQ(capabilities_here(Engine::cpu)->measured.copy_gbs, 12);
}

TEST(Rates, FactsAreThoseThatTheDriverStates) {
  DeviceInfo device = some_card();
  device.memory_ghz = 2.619;
  device.bus_bits = 5120;
  EXPECT_NEAR(facts_of(device).gbs(), 3352, 1);
  EXPECT_EQ(target::capabilities_of_device(facts_of(device))->card, "H100 SXM");
}
}  // namespace
}  // namespace warploom::runtime
