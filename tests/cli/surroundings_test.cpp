// What surrounds the program: names that mean something to a shell or a terminal, folders of the
// user's, machines without a home, bundles that somebody else made.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/quoted.h"
#include "shared_search.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const std::string kProgram = test::built_path("warploom");

// A tensor of 6 floats by its role.
std::string tensor(const std::string& role, const std::string& name) {
  return role + " { name: " + c_string(name) +
         " type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }\n";
}

// y = exp(x)
std::string model_of(const std::string& x, const std::string& y) {
  return "ir_version: 8\nopset_import { version: 17 }\ngraph {\nname: \"g\"\nnode { op_type: "
         "\"Exp\" "
         "input: " +
         c_string(x) + " output: " + c_string(y) + " }\n" + tensor("input", x) +
         tensor("output", y) + "}\n";
}

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
  json object;  // of standard output, where it is one

  std::string code() const {
    return object.is_object() && object.contains("error") ? object["error"].value("code", "") : "";
  }
};

class Surroundings : public testing::Test {
 protected:
  ScratchFolder scratch{"surroundings"};

  void SetUp() override {
    ASSERT_TRUE(write_file(scratch.path() / "m.textproto", model_of("x", "y")));
  }

  // With $W the program and a cache of the test's own.
  Ran shell(const std::string& line) const {
    const std::string set_up = "cd '" + scratch.path().string() +
                               "'; export XDG_CACHE_HOME=$PWD/cache; W='" + kProgram + "'; ";
    const auto result = run_process({"bash", "-c", set_up + line},
                                    {.time = std::chrono::seconds(250), .output_bytes = 64 << 20});
    EXPECT_TRUE(result);
    EXPECT_FALSE(result->timed_out) << line;
    return {result->exit_status, result->out, result->err,
            json::parse(result->out, nullptr, false)};
  }

  Ran optimize(const std::string& flags, const std::string& before = "") const {
    return shell(before + " $W optimize m.textproto --target cpu --candidates 2 --budget 60s " +
                 flags);
  }

  // A bundle of the model in b, and its compiled kernels in the cache: made once for all tests of
  // what happens to bundles.
  void bundle() const {
    const auto made = shared_search("surroundings", scratch.path() / "m.textproto",
                                    "--candidates 2 --budget 60s");
    ASSERT_TRUE(made) << describe(made.error());
    for (const std::string part : {"b", "cache"}) {
      const Status copied = copy_of_search(*made, part, scratch.path() / part);
      ASSERT_TRUE(copied) << describe(copied.error());
    }
  }

  bool exists(const std::string& name) const { return fs::exists(scratch.path() / name); }

  std::string text(const std::string& name) const {
    return read_file(scratch.path() / name).value_or("missing");
  }
};

TEST_F(Surroundings, TheLineThatChecksABundleIsQuotedForAShell) {
  const std::string name = "a b$(touch pwned)'s";
  ASSERT_TRUE(write_file(scratch.path() / (name + ".textproto"), model_of("x", "y")));
  const Ran made = shell("$W optimize " + shell_word(name + ".textproto") +
                         " --target cpu --candidates 2 --budget 60s");
  ASSERT_EQ(made.status, 0) << made.out << made.err;
  std::smatch line;
  ASSERT_TRUE(std::regex_search(made.out, line, std::regex("\\((make -C .* check)\\)")))
      << made.out;
  const Ran checked = shell(line[1].str());
  EXPECT_EQ(checked.status, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("check passed"), std::string::npos) << checked.out;
  EXPECT_FALSE(exists("pwned"));
}

TEST_F(Surroundings, NamesDoNotReachTheTerminalAsTheyAre) {
  ASSERT_TRUE(write_file(scratch.path() / "m.textproto",
                         model_of("x\033[2Jforged\nerror[usage]: no", "\u202ey")));
  for (const std::string command :
       {"$W show m.textproto", "$W show m.textproto --what regions --target cpu",
        "$W optimize m.textproto --target cpu --candidates 2 --budget 60s --out b",
        "$W run b --out o", "$W verify b", "$W optimize m.textproto --track fp16"}) {
    const Ran ran = shell(command);
    for (const std::string& text : {ran.out, ran.err}) {
      EXPECT_EQ(text.find('\033'), text.npos) << command << text;
      EXPECT_EQ(text.find("\u202e"), text.npos) << command << text;
    }
  }
  const Ran parsed = shell("python3 -m py_compile b/m.py && make -C b check");
  EXPECT_EQ(parsed.status, 0) << parsed.out << parsed.err;
}

TEST_F(Surroundings, ANameThatIsNoUtf8IsRefused) {
  ASSERT_TRUE(write_file(scratch.path() / "m.textproto", model_of("x\xff", "y")));
  EXPECT_EQ(shell("$W show m.textproto --json").code(), "onnx-name");
}

TEST_F(Surroundings, AFolderOfTheUsersIsRefusedBeforeTheSearch) {
  ASSERT_EQ(shell("mkdir keep && echo mine > keep/Makefile").status, 0);
  const Ran refused = optimize("--out keep --json");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.code(), "folder-not-ours") << refused.out;
  EXPECT_FALSE(refused.object.contains("outcome")) << "nothing was searched";
  EXPECT_EQ(text("keep/Makefile"), "mine\n");
  EXPECT_FALSE(exists("keep/plan.json"));
}

TEST_F(Surroundings, ABundleIsReplacedByTheNextOneUntilTheUserChangesIt) {
  bundle();
  ASSERT_EQ(shell("cp m.textproto n.textproto && make -C b check").status, 0);
  const Ran next =
      shell("$W optimize n.textproto --target cpu --candidates 2 --budget 60s --out b");
  ASSERT_EQ(next.status, 0) << next.out << next.err;
  EXPECT_FALSE(exists("b/m.h"));
  EXPECT_TRUE(exists("b/n.h"));
  ASSERT_EQ(shell("echo '// mine' >> b/n_kernels.cpp").status, 0);
  const Ran refused = optimize("--out b --json");
  EXPECT_EQ(refused.code(), "folder-not-ours") << refused.out;
  EXPECT_NE(refused.object["error"].value("found", "").find("n_kernels.cpp"), std::string::npos);
}

TEST_F(Surroundings, OutputsGoToFilesOfTheirOwn) {
  const std::string exp = "node { op_type: \"Exp\" input: \"x\" output: \"c/d\" }\n";
  const std::string neg = "node { op_type: \"Neg\" input: \"x\" output: \"c_d\" }\n";
  ASSERT_TRUE(write_file(scratch.path() / "m.textproto",
                         "ir_version: 8\nopset_import { version: 17 }\ngraph {\nname: \"g\"\n" +
                             exp + neg + tensor("input", "x") + tensor("output", "c/d") +
                             tensor("output", "c_d") + "}\n"));
  ASSERT_EQ(optimize("--out b").status, 0);
  const Ran ran = shell("head -c 24 /dev/zero > x.bin; $W run b x.bin --out r --json");
  ASSERT_TRUE(ran.object.contains("outputs")) << ran.out << ran.err;
  EXPECT_EQ(ran.object["outputs"]["c_d"], "r/c_d.npy");
  EXPECT_EQ(ran.object["outputs"]["c/d"], "r/c_d_2.npy");
  EXPECT_NE(text("r/c_d.npy"), text("r/c_d_2.npy"));
}

TEST_F(Surroundings, AnOutputDoesNotOverwriteAnInputsFile) {
  bundle();
  ASSERT_EQ(shell("$W run b --out .").status, 0);  // makes y.npy
  const std::string before = text("y.npy");
  const Ran refused = shell("$W run b y.npy --out . --json");
  EXPECT_EQ(refused.code(), "flags-contradict") << refused.out;
  EXPECT_EQ(text("y.npy"), before);
}

// Each search finds something right, whatever folders there are.
TEST_F(Surroundings, WithoutAHomeTheCacheGoesToTheTemporaryFolder) {
  const Ran made = optimize("--out b", "mkdir t; env -u HOME -u XDG_CACHE_HOME TMPDIR=$PWD/t");
  ASSERT_EQ(made.status, 0) << made.out << made.err;
  EXPECT_TRUE(exists("t/warploom-cache-" + std::to_string(::geteuid()) + "/archive.sqlite"));
}

TEST_F(Surroundings, ACacheFolderThatCannotBeIsPassedOverAndSaid) {
  const Ran made =
      optimize("--out b", "touch file; mkdir t; XDG_CACHE_HOME=$PWD/file TMPDIR=$PWD/t");
  ASSERT_EQ(made.status, 0) << made.out << made.err;
  EXPECT_NE(made.out.find("compiled kernels and the archive are kept in"), std::string::npos)
      << made.out;
}

TEST_F(Surroundings, ATemporaryFolderThatIsNoneIsPassedOver) {
  const Ran made = optimize("--out b", "env -u HOME -u XDG_CACHE_HOME TMPDIR=/no/such/folder");
  EXPECT_EQ(made.status, 0) << made.out << made.err;
}

TEST_F(Surroundings, AUserWithoutANameOrAFolderFindsAKernel) {
  if (::geteuid() != 0 || find_program("setpriv").empty()) GTEST_SKIP() << "not root here";
  ASSERT_EQ(shell("mkdir -m 777 open t; chmod 777 . t; mkdir -p -m 555 cache/warploom").status, 0);
  for (const std::string variables :
       {"env -u XDG_CACHE_HOME HOME=/", "env XDG_CACHE_HOME=$PWD/cache HOME=/"}) {
    const Ran made = shell(
        "cp m.textproto open; cd open; rm -rf b; setpriv --reuid=12345 --regid=12345 "
        "--clear-groups " +
        variables + " TMPDIR=" + (scratch.path() / "t").string() +
        " $W optimize m.textproto --target cpu --candidates 2 --budget 60s --out b");
    if (made.err.find("Permission denied") != std::string::npos && made.out.empty())
      GTEST_SKIP() << "the program is in a folder that others may not enter";
    EXPECT_EQ(made.status, 0) << variables << made.out << made.err;
  }
  EXPECT_TRUE(exists("t/warploom-cache-12345"));
}

TEST_F(Surroundings, AnothersFolderInTheTemporaryOneIsNotTrusted) {
  ASSERT_EQ(shell(fmt::format("mkdir -p -m 777 t/warploom-cache-{0}; chmod 777 "
                              "t/warploom-cache-{0}",
                              ::geteuid()))
                .status,
            0);
  const Ran doctor = shell("env -u HOME -u XDG_CACHE_HOME TMPDIR=$PWD/t $W doctor --json");
  ASSERT_TRUE(doctor.object.contains("findings")) << doctor.out;
  for (const json& finding : doctor.object["findings"])
    if (finding["name"] == "cache folder") {
      EXPECT_FALSE(finding["found"].get<bool>());
      EXPECT_NE(finding["detail"].get<std::string>().find("others may write"), std::string::npos);
    }
}

TEST_F(Surroundings, DoctorNamesTheFolderThatIsUsed) {
  const Ran doctor =
      shell("touch file; mkdir t; XDG_CACHE_HOME=$PWD/file TMPDIR=$PWD/t $W doctor --json");
  ASSERT_TRUE(doctor.object.contains("findings")) << doctor.out;
  for (const json& finding : doctor.object["findings"])
    if (finding["name"] == "cache folder") {
      const std::string detail = finding["detail"];
      EXPECT_NE(detail.find("t/warploom-cache-"), std::string::npos) << detail;
      EXPECT_NE(detail.find("file/warploom: Not a directory"), std::string::npos) << detail;
    }
}

TEST_F(Surroundings, ABundleIsJudgedWithADrawnSeedThatRepeatsIt) {
  bundle();
  const Ran first = shell("$W verify b --json");
  const Ran second = shell("$W verify b --json");
  ASSERT_EQ(first.status, 0) << first.out << first.err;
  EXPECT_NE(first.object["seed"], second.object["seed"]);
  const std::string seed = first.object["seed"].dump();
  const Ran again = shell("$W verify b --json --seed " + seed);
  EXPECT_EQ(again.object["evidence"], first.object["evidence"]);
  EXPECT_EQ(again.object["judged"], "m_kernels.cpp");
}

// Of bundles without hashes, as before there were any: what people build is what is judged.
TEST_F(Surroundings, ABundleIsJudgedByTheKernelsThatPeopleBuild) {
  bundle();
  const std::string forget =
      "python3 -c 'import json; p = json.load(open(\"b/plan.json\")); del p[\"files\"]; "
      "json.dump(p, open(\"b/plan.json\", \"w\"))'; ";
  const Ran honest = shell(forget + "$W verify b/plan.json --json");
  EXPECT_EQ(honest.status, 0) << honest.out << honest.err;
  const Ran changed = shell(
      "sed -i 's/wl::exp(/wl::exp(1.5f * /' b/m_kernels.cpp; "
      "grep -q '1.5f' b/m_kernels.cpp && $W verify b/plan.json --json");
  EXPECT_EQ(changed.code(), "candidate-wrong") << changed.out << changed.err;
  EXPECT_EQ(shell("$W verify b --json").code(), "bundle-changed") << "the rest cannot be judged";
}

TEST_F(Surroundings, ABundleIsJudgedWholeByItsFolderAndItsKernelsAloneByItsPlan) {
  bundle();
  EXPECT_EQ(shell("$W verify b --json").object["whole_bundle"], true);
  EXPECT_EQ(shell("$W verify b/plan.json --json").object["whole_bundle"], false);
}

// The same launcher with a line more, and with its hash in a plan that is sealed again.
TEST_F(Surroundings, ALauncherThatSomebodyElseWroteIsRefusedThoughItsHashIsRight) {
  bundle();
  ASSERT_EQ(shell("sed -i 's|^#include|// mine\\n#include|' b/m_host.cpp && python3 -c \""
                  "import json; p = json.load(open('b/plan.json')); p['files'].pop('m_host.cpp'); "
                  "json.dump(p, open('b/plan.json', 'w'))\"")
                .status,
            0);
  const Ran refused = shell("$W verify b --json");
  EXPECT_EQ(refused.code(), "bundle-changed");
}

TEST_F(Surroundings, WhatWasBuiltIsNamedAsNotJudged) {
  bundle();
  ASSERT_EQ(shell("mkdir b/build && touch b/build/check").status, 0);
  const Ran built = shell("$W verify b --json");
  EXPECT_EQ(built.object["built_not_judged"], nlohmann::json::array({"build/check"}));
  ASSERT_EQ(shell("make -C b clean").status, 0);
  EXPECT_EQ(shell("$W verify b --json").object["built_not_judged"], nlohmann::json::array());
}

// A bundle whose code leaves a file behind as soon as it is loaded, sealed by nobody.
TEST_F(Surroundings, RunLoadsABundlesCodeInItsOwnProcessOnlyWhenItIsTrusted) {
  bundle();
  ASSERT_TRUE(write_file(scratch.path() / "taint.py", R"(
import json
plan = json.load(open("b/plan.json"))
del plan["files"]
kernel = plan["launch_list"]["kernels"][0]
kernel["source"] += """
#include <cstdio>
struct Leaves {
  Leaves() { if (auto* f = std::fopen("left", "w")) std::fclose(f); }
};
static Leaves leaves;
"""
json.dump(plan, open("b/plan.json", "w"))
)"));
  ASSERT_EQ(shell("python3 taint.py").status, 0);
  const Ran held = shell("$W run b --out r --json");
  EXPECT_EQ(held.code(), "candidate-forbidden") << held.out << held.err;
  EXPECT_FALSE(exists("left"));
  EXPECT_EQ(shell("$W run b --out r --trust --json").status, 0);
  EXPECT_TRUE(exists("left"));
}

TEST_F(Surroundings, RunSaysWhatHeldTheKernels) {
  bundle();
  const Ran held = shell("$W run b --out r --json");
  ASSERT_EQ(held.status, 0) << held.out << held.err;
  EXPECT_NE(held.object["sandbox"].get<std::string>().find("seccomp"), std::string::npos);
  EXPECT_NE(held.object["sandbox"].get<std::string>().find("memory: "), std::string::npos);
  const Ran trusted = shell("$W run b --out s --trust --json");
  EXPECT_EQ(trusted.object["sandbox"], "nothing: --trust");
  EXPECT_EQ(text("r/y.npy"), text("s/y.npy"));
}

TEST_F(Surroundings, KernelsThatCrashInRunAreTheirOwnFault) {
  bundle();
  ASSERT_EQ(shell("python3 -c \"import json; p = json.load(open('b/plan.json')); del p['files']; "
                  "k = p['launch_list']['kernels'][0]; k['source'] = 'extern \\\"C\\\" void ' + "
                  "k['name'] + '(void* const*, long long, void*) { *(volatile int*)8 = 1; }'; "
                  "json.dump(p, open('b/plan.json', 'w'))\"")
                .status,
            0);
  const Ran crashed = shell("$W run b --out r --json");
  EXPECT_EQ(crashed.code(), "candidate-crashed") << crashed.out << crashed.err;
  EXPECT_EQ(crashed.status, 4);
}

TEST_F(Surroundings, AChangedBundleIsNotRun) {
  bundle();
  ASSERT_EQ(shell("echo '// mine' >> b/m_kernels.cpp").status, 0);
  EXPECT_EQ(shell("$W run b --out r --json").code(), "bundle-changed");
  EXPECT_EQ(shell("$W verify b --json").code(), "bundle-changed");
}

TEST_F(Surroundings, DamagedBundlesEndWithACodeAndTouchNothingBesideThem) {
  bundle();
  const Ran ran = shell("python3 " + test::source_path("tools/mutate_bundles.py") +
                        " $W b --count 50 --seed 3");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("50 bundles, 0 findings"), std::string::npos) << ran.out;
}

TEST_F(Surroundings, WhatNoKernelWroteIsNoNumber) {
  bundle();
  const Ran ran = shell(
      "python3 -c 'import json; p = json.load(open(\"b/plan.json\")); del p[\"files\"]; "
      "p[\"launch_list\"][\"outputs\"].append({\"name\": \"z\", \"dtype\": \"f32\", \"shape\": "
      "[4]}); json.dump(p, open(\"b/plan.json\", \"w\"))'; $W run b --out r --json");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  const std::string values = text("r/z.npy").substr(128);
  ASSERT_EQ(values.size(), 16u);
  for (size_t at = 0; at < values.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, values.data() + at, sizeof value);
    EXPECT_TRUE(std::isnan(value));
  }
}
}  // namespace
}  // namespace warploom
