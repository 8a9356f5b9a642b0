// tests/ptxas.lock: what every golden kernel's text is, and what ptxas makes of it: one sorted line
// a kernel.
//
// A text that changed, or figures that did, are a difference to look at before they are a commit.
// Without a compiler the texts alone are held to the lock; registers only to that version of ptxas
// which it names. No schedule allows spills or serialised wgmma, so no line may count any.
// WARPLOOM_RENEW_LOCK=1 writes the file again. WARPLOOM_TEXTS=FOLDER writes the texts themselves,
// and the device headers that they include, for tools/same_ptx.py.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "kernels/lower.h"
#include "runtime/compilers.h"
#include "support/paths.h"
#include "target/capabilities.h"
#include "tile/print.h"

namespace warploom {
namespace {
const std::string kLock = test::source_path("tests/ptxas.lock");
const std::string kRenew = "renew it:\n  WARPLOOM_RENEW_LOCK=1 " +
                           test::built_path("test_kernels") +
                           " --gtest_filter='PtxasLock.*'\nand look at the difference";

// Registers a thread, bytes of spill stores and loads, bytes of shared memory, C75xx warnings; "?"
// until a compiler was there.
struct Figures {
  std::string registers = "?";
  std::string spills = "?";
  std::string shared = "?";
  std::string serialised = "?";
  friend bool operator==(const Figures&, const Figures&) = default;
};

std::string to_text(const Figures& f) {
  return fmt::format("{:>3} {:>3} {:>6} {:>1}", f.registers, f.spills, f.shared, f.serialised);
}

struct Row {
  // of the text its hash
  std::string target;
  std::string text;
  Figures figures;
};

using Rows = std::map<std::string, Row>;  // by "launch list/kernel"

struct Lock {
  std::string compiler;  // "13.0"
  Rows rows;
};

struct Golden {
  std::string name;
  std::string target;
  Kernel kernel;

  std::string hash() const { return hash_hex(kernel.source).substr(0, 16); }
};

void add(std::vector<Golden>& all, const std::string& name, const std::string& target,
         const Result<LaunchList>& list) {
  ASSERT_TRUE(list.has_value()) << name << ": " << describe(list.error());
  for (const Kernel& kernel : list->kernels)
    all.push_back({name + "/" + kernel.name, target, kernel});
}

const std::vector<Golden>& golden_kernels() {
  static const std::vector<Golden> kernels = [] {
    std::vector<Golden> all;
    for (const test::Case& c : test::all_cases())
      add(all, c.name, c.target, kernels::build(c.region, c.schedule, test::capabilities_of(c)));
    for (const auto& entry :
         std::filesystem::directory_iterator(test::source_path("examples/tile"))) {
      const auto program = tile::parse(*read_file(entry.path()), entry.path().string());
      const auto lowered = kernels::lower(*program, *target::capabilities_of("sm_90a"));
      add(all, entry.path().filename().string(), "sm_90a",
          lowered.map([](const auto& l) { return l.list; }));
    }
    return all;
  }();
  return kernels;
}

std::string version_of(const std::string& compiler) {
  return compiler.substr(compiler.find(' ') + 1);
}

Result<Figures> figures_of(const Golden& golden) {
  WARPLOOM_TRY(const runtime::Image image,
               runtime::compile_cuda(golden.kernel.source, golden.target));
  const runtime::PtxasReport report = runtime::parse_ptxas(image.log);
  for (const runtime::KernelFigures& k : report.kernels)
    if (k.name == golden.kernel.name)
      return Figures{std::to_string(k.registers), std::to_string(k.spill_bytes),
                     std::to_string(k.static_shared + golden.kernel.shared_bytes),
                     std::to_string(report.warnings.size())};
  return fail({ErrorCode::kInternal, "ptxas said nothing of a kernel", golden.name,
               "registers and spills", image.log});
}

Lock read_lock() {
  Lock lock;
  std::istringstream text(read_file(kLock).value_or(""));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (line.starts_with("# ptxas ")) lock.compiler = line.substr(8);
    if (line.starts_with("#")) continue;
    Row& row = lock.rows[name];
    Figures& f = row.figures;
    words >> row.target >> row.text >> f.registers >> f.spills >> f.shared >> f.serialised;
  }
  return lock;
}

void renew() {
  const auto compiler = runtime::find_cuda_compiler();
  Lock lock = read_lock();
  if (compiler) lock.compiler = version_of(compiler->name);
  std::string text = fmt::format(
      "# Written by test_kernels (tests/kernels/ptxas_test.cpp). Launch list/kernel, target, hash "
      "of the text, "
      "registers, bytes\n"
      "# spilled, bytes of shared memory, C75xx warnings.\n# ptxas {}\n",
      lock.compiler);
  Rows rows;
  for (const Golden& golden : golden_kernels()) {
    Row row{golden.target, golden.hash(), {}};
    if (const auto old = lock.rows.find(golden.name);
        old != lock.rows.end() && old->second.text == row.text)
      row.figures = old->second.figures;
    if (compiler) {
      const auto figures = figures_of(golden);
      ASSERT_TRUE(figures.has_value()) << golden.name << ": " << describe(figures.error());
      row.figures = *figures;
    }
    rows[golden.name] = row;
  }
  for (const auto& [name, row] : rows)
    text += fmt::format("{:<68} {:<6} {} {}\n", name, row.target, row.text, to_text(row.figures));
  ASSERT_TRUE(write_file(kLock, text).has_value());
}

// FOLDER/device/HEADER, FOLDER/N.cu, and FOLDER/index with a line `NAME TARGET N.cu` a kernel.
// Both folders exist.
void write_texts(const std::filesystem::path& folder) {
  for (const auto& header : runtime::headers_of("ptx"))
    ASSERT_TRUE(write_file(folder / "device" / header.path, header.text).has_value());
  std::string index;
  int count = 0;
  for (const Golden& golden : golden_kernels()) {
    const std::string file = std::to_string(count++) + ".cu";
    ASSERT_TRUE(write_file(folder / file, golden.kernel.source).has_value());
    index += golden.name + " " + golden.target + " " + file + "\n";
  }
  ASSERT_TRUE(write_file(folder / "index", index).has_value());
}

TEST(PtxasLock, HoldsTheTextOfEveryGoldenKernel) {
  if (const char* folder = std::getenv("WARPLOOM_TEXTS")) return write_texts(folder);
  if (std::getenv("WARPLOOM_RENEW_LOCK")) return renew();
  Rows left = read_lock().rows;
  std::string changes;
  for (const Golden& golden : golden_kernels()) {
    const auto row = left.find(golden.name);
    if (row == left.end()) {
      changes += golden.name + " is not in the lock\n";
      continue;
    }
    if (row->second.text != golden.hash() || row->second.target != golden.target)
      changes += golden.name + " has another text\n";
    left.erase(row);
  }
  for (const auto& [name, row] : left)
    changes += name + " is in the lock alone\n";
  EXPECT_EQ(changes, "") << kRenew;
}

TEST(PtxasLock, CountsNoSpillAndNoSerialisedWgmma) {
  for (const auto& [name, row] : read_lock().rows) {
    if (row.figures == Figures{}) continue;  // renewed without a compiler
    EXPECT_EQ(row.figures.spills, "0") << name << " spills registers";
    EXPECT_EQ(row.figures.serialised, "0") << name << " has serialised wgmma";
  }
}

class PtxasFigures : public testing::TestWithParam<std::string> {};

TEST_P(PtxasFigures, AreThoseLocked) {
  const auto compiler = runtime::find_cuda_compiler();
  if (!compiler) GTEST_SKIP() << "no NVRTC and no nvcc here: hashes alone";
  const Lock lock = read_lock();
  for (const Golden& golden : golden_kernels()) {
    if (golden.target != GetParam()) continue;
    const auto figures = figures_of(golden);
    ASSERT_TRUE(figures.has_value()) << golden.name << ": " << describe(figures.error());
    EXPECT_EQ(figures->spills, "0") << golden.name << " spills registers";
    EXPECT_EQ(figures->serialised, "0") << golden.name << " has serialised wgmma";
    const auto row = lock.rows.find(golden.name);
    if (row == lock.rows.end() || version_of(compiler->name) != lock.compiler) continue;
    EXPECT_EQ(to_text(*figures), to_text(row->second.figures)) << golden.name << "; " << kRenew;
  }
  if (version_of(compiler->name) != lock.compiler)
    GTEST_SKIP() << "registers locked for ptxas " << lock.compiler << ", here is "
                 << compiler->name;
}

INSTANTIATE_TEST_SUITE_P(Targets, PtxasFigures, testing::Values("sm_80", "sm_89", "sm_90a"),
                         [](const auto& one) { return one.param; });
}  // namespace
}  // namespace warploom
