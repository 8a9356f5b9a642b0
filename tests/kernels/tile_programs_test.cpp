// Tile programs of tests/kernels/tile and of the examples: what they become does on the emulator
// what they mean, and no mutant of it goes unnoticed.

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "emulator.h"
#include "equivalent_mutants.h"
#include "kernels/lower.h"
#include "kernels/mutants.h"
#include "runtime/emulate.h"
#include "support/paths.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using test::Mutant;

struct Made {
  LaunchList list;
  // buffers before and after
  std::map<std::string, std::vector<std::byte>> given;
  std::map<std::string, std::vector<std::byte>> meant;

  static Result<Made> make(const fs::path& file) {
    Made made;
    WARPLOOM_TRY(const std::string text, read_file(file));
    WARPLOOM_TRY(const tile::Program program, tile::parse(text, file.string()));
    WARPLOOM_TRY(const target::Capabilities capabilities, target::capabilities_of("sm_90a"));
    WARPLOOM_TRY(kernels::Lowered lowered, kernels::lower(program, capabilities));
    made.list = std::move(lowered.list);
    for (const auto* specs : {&made.list.inputs, &made.list.outputs})
      for (const BufferSpec& spec : *specs) {
        auto& bytes = made.given[spec.name];
        bytes.assign(static_cast<size_t>(spec.bytes()), std::byte{0xff});
        Random random(1, spec.name);
        for (int64_t i = 0; specs == &made.list.inputs && i < spec.elements(); ++i)
          store_from_double(
              spec.dtype, bytes.data(), static_cast<size_t>(i),
              is_float(spec.dtype) ? random.normal() : static_cast<double>(random.below(16)) - 8);
      }
    made.meant = made.given;
    tile::Buffers buffers;
    for (auto& [name, bytes] : made.meant)
      buffers[name] = bytes;
    WARPLOOM_CHECK(tile::interpret(program, buffers));
    return made;
  }

  // What gave a mutant away, "" if nothing did.
  std::string noticed(int mutant, int timing) const {
    wl_mutant = mutant;
    auto bytes = given;
    runtime::EmulatedBuffers buffers;
    for (auto& [name, space] : bytes)
      buffers[name] = space;
    const auto ran = runtime::emulate(
        list, buffers,
        {.seed = static_cast<uint64_t>(mutant), .timing = static_cast<emulator::Timing>(timing)});
    wl_mutant = 0;
    if (!ran) return describe(ran.error());
    for (const BufferSpec& spec : list.outputs) {
      double difference = 0;
      double size = 0;
      for (int64_t i = 0; i < spec.elements(); ++i) {
        const double want =
            load_as_double(spec.dtype, meant.at(spec.name).data(), static_cast<size_t>(i));
        const double got =
            load_as_double(spec.dtype, bytes.at(spec.name).data(), static_cast<size_t>(i));
        if (std::isnan(want) && std::isnan(got)) continue;  // neither wrote it
        difference += (got - want) * (got - want);
        size += want * want;
      }
      const double bound = 1e-5 + (is_float(spec.dtype) ? 2 * unit_roundoff(spec.dtype) : 0);
      if (!(std::sqrt(difference) <= bound * std::sqrt(size))) return "numbers of " + spec.name;
    }
    return "";
  }
};

class TilePrograms : public testing::TestWithParam<fs::path> {};

TEST_P(TilePrograms, DoWhatTheyMeanAndNoMutantGoesUnnoticed) {
  auto made = Made::make(GetParam());
  ASSERT_TRUE(made.has_value()) << describe(made.error());
  const std::string text = made->list.kernels[0].source;
  const std::vector<Mutant> mutants = test::plant_mutants(made->list);
  for (int timing = 0; timing < 3; ++timing)
    ASSERT_EQ(made->noticed(0, timing), "");
  for (const Mutant& m : mutants)
    EXPECT_TRUE(!made->noticed(m.number, 2).empty() || !test::why_equivalent(text, m).empty())
        << m.line << ", " << m.call << " " << m.change << ": " << m.text;
}

std::vector<fs::path> programs() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(test::source_path("tests/kernels/tile")))
    files.push_back(entry);
  files.push_back(test::source_path("examples/tile/gemm_fix_up.tile"));
  std::sort(files.begin(), files.end());
  return files;
}

// What begins while the kernel before it on the stream still runs.
Result<LaunchList> lowered(std::string_view text, const char* target) {
  WARPLOOM_TRY(const target::Capabilities capabilities, target::capabilities_of(target));
  WARPLOOM_TRY(const tile::Program program, tile::parse(text));
  WARPLOOM_TRY(kernels::Lowered made, kernels::lower(program, capabilities));
  return made.list;
}

constexpr std::string_view kMoves =
    "program moves grid(2)\nglobal X f32 [2, 128]\noutput Y f32 [2, 128]\nregister r f32 [1, 128]\n"
    "copy X[block_x +1, 0 +128] -> r\ncopy r -> Y[block_x +1, 0 +128]\n";

TEST(KernelsThatBeginEarly, TouchNothingUntilTheyHaveWaited) {
  auto list = *lowered(kMoves, "sm_90a");
  EXPECT_TRUE(list.kernels[0].programmatic_launch);
  std::vector<std::byte> x(1024);
  std::vector<std::byte> y(1024);
  const runtime::EmulatedBuffers buffers{{"X", x}, {"Y", y}};
  for (const Mutant& m : test::plant_mutants(list))
    if (m.call == "griddepcontrol_wait") wl_mutant = m.number;
  ASSERT_NE(wl_mutant, 0);
  const auto mutant = runtime::emulate(list, buffers);
  wl_mutant = 0;
  ASSERT_FALSE(mutant);
  EXPECT_EQ(mutant.error().code, ErrorCode::kEmulatorHazard);
  EXPECT_NE(mutant.error().found.find("grid-dependency"), std::string::npos);
  const auto whole = runtime::emulate(list, buffers);
  EXPECT_TRUE(whole) << describe(whole.error());
}

TEST(KernelsThatBeginEarly, ComeBesideManyBlocksThatPass) {
  std::string many(kMoves);
  for (size_t at; (at = many.find("(2)")) != std::string::npos;)
    many.replace(at, 3, "(528)");
  for (size_t at; (at = many.find("[2, ")) != std::string::npos;)
    many.replace(at, 4, "[528, ");
  const auto calls = [](const std::string& text) {
    const auto list = lowered(text, "sm_90a");
    EXPECT_TRUE(list) << describe(list.error());
    return list &&
           list->kernels[0].source.find("griddepcontrol_launch_dependents") != std::string::npos;
  };
  EXPECT_TRUE(calls(many));
  EXPECT_FALSE(calls(std::string(kMoves)));
}

TEST(KernelsThatBeginEarly, AreThoseOfGpusThatHoldThemBack) {
  const auto list = *lowered(kMoves, "sm_80");
  EXPECT_FALSE(list.kernels[0].programmatic_launch);
  EXPECT_EQ(list.kernels[0].source.find("griddepcontrol"), std::string::npos);
}

TEST(KernelsThatBeginEarly, AreNotThoseWhoseBlocksRunTogetherOrWhoseBuffersAreCleared) {
  const std::string text(kMoves);
  const auto with = [&](const std::string& what, const std::string& other) {
    return lowered(std::string(text).replace(text.find(what), what.size(), other), "sm_90a")
        ->kernels[0]
        .programmatic_launch;
  };
  EXPECT_FALSE(with("grid(2)", "grid(2) cooperative"));
  EXPECT_FALSE(with("Y f32 [2, 128]", "Y f32 [2, 128] zeroed"));
}

INSTANTIATE_TEST_SUITE_P(Emulated, TilePrograms, testing::ValuesIn(programs()),
                         [](const auto& one) { return one.param.stem().string(); });
}  // namespace
}  // namespace warploom
