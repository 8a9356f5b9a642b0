// Configs: typed structs seen by name, read from texts of today and of earlier versions.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include "base/error.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"

namespace warploom::kernels {
namespace {
TEST(Configs, AStructIsSeenByTheNamesOfItsTable) {
  KernelConfig config = MatmulWgmmaConfig{.block_m = 256, .scheduler = Scheduler::stream_k};
  EXPECT_EQ(config.family(), "matmul_wgmma");
  EXPECT_EQ(config.get("block_m"), 256);
  EXPECT_EQ(config.get("scheduler"), static_cast<int64_t>(Scheduler::stream_k));
  EXPECT_TRUE(config.set("swap_ab", 1));
  EXPECT_TRUE(config.as<MatmulWgmmaConfig>().swap_ab);
  EXPECT_FALSE(config.set("no_such_field", 1));
  EXPECT_EQ(config.get("no_such_field"), std::nullopt);
}

TEST(Configs, EqualOnesHaveEqualTextsAndHashes) {
  const KernelConfig one = MatmulMmaConfig{.block_m = 64, .stages = 4};
  KernelConfig other = MatmulMmaConfig{.block_m = 64};
  EXPECT_NE(one, other);
  EXPECT_NE(one.hash(), other.hash());
  EXPECT_TRUE(other.set("stages", 4));
  EXPECT_EQ(one, other);
  EXPECT_EQ(one.hash(), other.hash());
  EXPECT_NE(one, KernelConfig(MatmulSimtConfig{.block_m = 64, .stages = 4}));
}

TEST(Configs, EveryFamilysTextAndJsonAreReadBack) {
  for (const ConfigType* type : config_types()) {
    KernelConfig config(*type);
    for (size_t i = 0; i < config.size(); ++i)
      config.set(i, config.field(i).words.empty() ? 1 : std::ssize(config.field(i).words) - 1);
    const auto text = config_from_text(config.text());
    ASSERT_TRUE(text) << config.text() << describe(text.error());
    EXPECT_EQ(*text, config);
    const auto json = config_from_json(to_json(config));
    ASSERT_TRUE(json) << to_json(config) << describe(json.error());
    EXPECT_EQ(*json, config);
  }
}

TEST(Configs, NamesAndAliasesOfATableAreDifferent) {
  for (const ConfigType* type : config_types()) {
    std::set<std::string> names;
    for (const FieldInfo& field : type->fields) {
      std::istringstream aliases(std::string(field.aliases));
      EXPECT_TRUE(names.insert(std::string(field.name)).second) << field.name;
      for (std::string alias; aliases >> alias;)
        EXPECT_TRUE(names.insert(alias).second) << type->family << " " << alias;
      EXPECT_FALSE(field.meaning.empty()) << type->family << " " << field.name;
    }
  }
}

TEST(Configs, FieldsOfATextAreNumbersOrWordsGivenOnce) {
  for (const char* text :
       {"direct a", "direct a=", "direct =1", "direct a=1x", "direct a=1 a=2", "direct a=-"}) {
    const auto read = config_from_text(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kPlanInvalid) << text;
  }
}

TEST(Configs, AMissingFieldIsIllegal) {
  for (const ConfigType* type : config_types()) {
    const auto read = config_from_text(std::string(type->family));
    ASSERT_FALSE(read) << type->family;
    EXPECT_EQ(read.error().code, ErrorCode::kScheduleIllegal) << type->family;
  }
}

TEST(Configs, WhatATableLacksIsNamed) {
  const auto error_of = [](const std::string& text) {
    const auto read = config_from_text(text);
    return read ? Error{ErrorCode::kInternal, "it was read"} : read.error();
  };
  EXPECT_EQ(error_of("matmul_wgma block_m=1").code, ErrorCode::kNoSchedule);
  EXPECT_TRUE(error_of("matmul_wgma block_m=1").remedy.starts_with("did you mean matmul_wgmma?"));
  EXPECT_EQ(error_of("matmul_wgmma block_n=64").code, ErrorCode::kScheduleIllegal);
  const std::string whole =
      "matmul_wgmma block_m=64 block_n=64 block_k=64 stages=2 num_math_warpgroups=1";
  EXPECT_TRUE(config_from_text(whole));
  const Error misspelt = error_of(whole + " swap_ba=1");
  EXPECT_EQ(misspelt.code, ErrorCode::kScheduleIllegal);
  EXPECT_NE(misspelt.remedy.find("did you mean swap_ab?"), std::string::npos) << misspelt.remedy;
  const Error word = error_of(whole + " scheduler=splitk");
  EXPECT_EQ(word.code, ErrorCode::kPlanInvalid);
  EXPECT_EQ(word.expected, "scheduler: one of data_parallel, split_k, stream_k");
}

TEST(Configs, WhatEarlierVersionsWroteIsRead) {
  const auto read = [](const std::string& text) {
    const auto config = config_from_text(text);
    return config ? config->text() : describe(config.error());
  };
  const std::string common = " block_k=64 block_m=128 block_n=128 consumers=2 stages=4";
  const MatmulWgmmaConfig wgmma{.stages = 4};
  MatmulWgmmaConfig want = wgmma;
  want.scheduler = Scheduler::stream_k;
  want.cluster_m = 2;
  want.epilogue = Epilogue::smem;
  EXPECT_EQ(read("matmul_wgmma cluster=2 exchange=0 group=8 resident=1 split=1 stream=1 "
                 "through_shared=1" +
                 common),
            KernelConfig(want).text());
  want = wgmma;
  want.scheduler = Scheduler::split_k;
  want.split_k = 4;
  want.swap_ab = true;
  want.a_source = OperandSource::registers;
  want.promotion_interval = 8;
  EXPECT_EQ(read("matmul_wgmma split=4 stream=0 exchange=1 across=1 run=8" + common),
            KernelConfig(want).text());
  want = wgmma;
  want.fp32_emulation = Emulation::fp16x3;
  EXPECT_EQ(read("matmul_wgmma split=1 halves=1" + common), KernelConfig(want).text());
  want.fp32_emulation = Emulation::tf32x3;
  EXPECT_EQ(read("matmul_wgmma split=1 stream=0 halves=0" + common), KernelConfig(want).text());

  const ConvWgmmaConfig conv{.stages = 4, .ctas_per_sm = 2, .tile_p = 4};
  EXPECT_EQ(read("matmul_wgmma cluster=1 resident=2 split=1 stream=0 y=4" + common),
            KernelConfig(conv).text());
  const Im2winConfig im2win{.tile_q = 16,
                            .tile_p = 4,
                            .block_n = 96,
                            .block_c = 1,
                            .filter_rows_per_stage = 6,
                            .stages = 3,
                            .num_math_warpgroups = 2,
                            .weights_stationary = true,
                            .staggered_consumers = true};
  EXPECT_EQ(
      read("im2win apart=1 block_n=96 channels=1 cluster=1 consumers=2 stages=3 stay=1 taps=6 "
           "through_shared=0 x=16 y=4"),
      KernelConfig(im2win).text());
  const MatmulSimtConfig simt{.block_m = 64, .block_n = 64, .block_k = 16, .stages = 3, .warps = 4};
  EXPECT_EQ(read("matmul_simt block_k=16 block_m=64 block_n=64 group=8 solution=0 split=2 stages=3 "
                 "warps=4"),
            KernelConfig(simt).text());
}

TEST(Configs, OldJsonIsReadToo) {
  const nlohmann::json old = {{"family", "matmul_wgmma"},
                              {"fields",
                               {{"block_m", 128},
                                {"block_n", 128},
                                {"block_k", 64},
                                {"stages", 4},
                                {"consumers", 2},
                                {"split", 2},
                                {"stream", 0}}}};
  const auto read = config_from_json(old);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->as<MatmulWgmmaConfig>().scheduler, Scheduler::split_k);
  EXPECT_EQ(read->as<MatmulWgmmaConfig>().split_k, 2);
  for (const char* broken : {"{}", "[]", R"({"family": 1, "fields": {}})",
                             R"({"family": "direct", "fields": {"x": [1]}})",
                             R"({"family": "direct", "fields": {"x": 1.5}})"})
    EXPECT_FALSE(config_from_json(nlohmann::json::parse(broken))) << broken;
}
}  // namespace
}  // namespace warploom::kernels
