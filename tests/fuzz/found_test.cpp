// Faults that random programs have found, each as the smallest program that showed it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include "base/error.h"
#include "check.h"
#include "fuzz/program.h"
#include "tile/print.h"

namespace warploom {
namespace {
// The outcome of a program's text on a target: "agrees", or what went wrong.
std::string outcome(const std::string& text, const std::string& target,
                    fuzz::Data data = fuzz::Data::small) {
  auto program = tile::parse(text);
  if (!program) return describe(program.error());
  const auto made = fuzz::with_program(
      {.seed = 1, .kind = "found", .targets = {target}, .data = data}, std::move(*program));
  if (!made) return "no bound";
  const auto done = fuzz::check_case(*made)[0];
  return done.code == "wrong" || done.is_bug() ? done.code + ": " + done.detail : done.code;
}

constexpr const char* kAgrees = "agrees";

TEST(Found, BoxesThatBeginBeforeTheirTensor) {
  const std::string text =
      "program p grid(2) warps 1\nglobal X f32 [64]\noutput Y f32 [64]\nregister r f32 [32]\n"
      "copy X[block_x * 32 - 3 +32] -> r fill 7\ncopy r -> Y[block_x * 32 - 5 +32]\n";
  EXPECT_EQ(outcome(text, "sm_80"), kAgrees);
  EXPECT_EQ(outcome(text, "cpu"), kAgrees);
}

TEST(Found, TwoLoopsOfOneNameAndDifferentBounds) {
  EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [100]\noutput Y f32 [128]\noutput Z "
                    "f32 [32]\nregister r f32 [32]\n"
                    "for k in 0 .. 4:\n  copy X[k * 32 +32] -> r\n  copy r -> Y[k * 32 +32]\n"
                    "for k in 0 .. 1:\n  copy X[k * 32 +32] -> r\n  copy r -> Z[k * 32 +32]\n",
                    "sm_80"),
            kAgrees);
}

TEST(Found, ALoopNamedAsATensorIsRenamed) {
  EXPECT_EQ(
      outcome(
          "program p grid(1) warps 1\nglobal i0 f32 [96]\noutput Y f32 [96]\nregister r f32 [32]\n"
          "for i0_ in 0 .. 3:\n  copy i0[i0_ * 32 +32] -> r\n  copy r -> Y[i0_ * 32 +32]\n",
          "sm_80"),
      kAgrees);
}

TEST(Found, FillsOfCopiesToSharedMemory) {
  EXPECT_EQ(
      outcome(
          "program p grid(1) warps 1\nglobal X bf16 [40]\noutput Y bf16 [64]\nshared s bf16 [64]\n"
          "copy X[0 +64] -> s fill 0.5\ncopy s -> Y[0 +64]\n",
          "sm_80"),
      kAgrees);
}

TEST(Found, FractionalFillsOfNarrowTypes) {
  EXPECT_EQ(
      outcome(
          "program p grid(1) warps 1\nglobal X f16 [40]\noutput Y f16 [64]\nregister r f16 [64]\n"
          "copy X[0 +64] -> r fill 0.5\ncopy r -> Y[0 +64]\n",
          "sm_80"),
      kAgrees);
}

std::string sum_of_rows(const std::string& type) {
  return "program p grid(1) warps 4\nglobal X " + type + " [4, 64]\noutput Y " + type +
         " [4, 1]\nregister x " + type + " [4, 64]\nregister y " + type +
         " [4, 1]\ncopy X -> x\nreduce sum over 1: x -> y\ncopy y -> Y\n";
}

TEST(Found, ReductionsOfAndToNarrowTypes) {
  for (const std::string type : {"bf16", "f16", "e4m3", "e5m2", "f32"})
    EXPECT_EQ(outcome(sum_of_rows(type), "sm_90a"), kAgrees) << type;
}

// In fp32 they would lose what lies beyond 2^24.
TEST(Found, ReductionsOfWholeNumbersAcrossThreadsAreRefusedOnAGpu) {
  for (const std::string type : {"i32", "i64"}) {
    EXPECT_EQ(outcome(sum_of_rows(type), "sm_90a"), "no-instruction") << type;
    EXPECT_EQ(outcome(sum_of_rows(type), "cpu"), kAgrees) << type;
  }
}

TEST(Found, ClusterReductionsOfNarrowTypes) {
  EXPECT_EQ(
      outcome(
          "program p grid(2) cluster(2) warps 1\nglobal X bf16 [2, 64]\noutput Y bf16 [2, "
          "64]\nregister x "
          "bf16 [1, 64]\n"
          "copy X[block_x +1, 0 +64] -> x\ncluster_reduce sum x\ncopy x -> Y[block_x +1, 0 +64]\n",
          "sm_90a"),
      kAgrees);
}

TEST(Found, CastsToIntegersTruncate) {
  EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [64]\noutput Y i32 [64]\nregister x "
                    "f32 [64]\nregister y i32 [64]\n"
                    "copy X -> x\nmap y = mul(x, 0.75)\ncopy y -> Y\n",
                    "sm_80"),
            kAgrees);
}

TEST(Found, NamesThatTheTextWantsForItself) {
  const std::string text =
      "program p grid(1) warps 1\nglobal t f32 [3, 8, 64]\noutput smem f32 [3, 8, 64]\nregister "
      "v_1 f32 [8, 64]\n"
      "for i0 in 0 .. 3:\n  copy t[i0 +1, 0 +8, 0 +64] -> v_1\n  map v_1 = add(v_1, 1)\n"
      "  copy v_1 -> smem[i0 +1, 0 +8, 0 +64]\n";
  EXPECT_EQ(outcome(text, "sm_80"), kAgrees);
  EXPECT_EQ(outcome(text, "cpu"), kAgrees);
}

TEST(Found, QuotientsOfNegativeNumbersAreFloored) {
  const std::string text =
      "program p grid(1) warps 1\nglobal X f32 [6, 32]\noutput Y f32 [6, 32]\nregister r f32 [1, "
      "32]\n"
      "for k in 0 .. 6:\n  copy X[(k - 4) / 3 + 2 +1, 0 +32] -> r\n  copy r -> Y[(k - 12) % 6 +1, "
      "0 +32]\n";
  EXPECT_EQ(outcome(text, "sm_80"), kAgrees);
  EXPECT_EQ(outcome(text, "cpu"), kAgrees);
}

TEST(Found, VectorsThatAnOffsetInSharedMemoryMisaligns) {
  EXPECT_EQ(
      outcome("program p grid(1) warps 1\nglobal X f32 [64]\noutput Y f32 [64]\nshared s f32 [66]\n"
              "copy X -> s[1 +64]\ncopy s[1 +64] -> Y\n",
              "sm_80"),
      kAgrees);
}

TEST(Found, TwoCopiesOfOneVectorEachInOneScope) {
  EXPECT_EQ(
      outcome(
          "program p grid(1) warps 1\nglobal X f32 [128]\nglobal Z f32 [128]\noutput Y f32 [128]\n"
          "shared s f32 [128]\nshared u f32 [128]\ncopy X -> s\ncopy Z -> u\ncopy u -> Y\n",
          "sm_80"),
      kAgrees);
}

std::string pipelined(int stages, int ahead, const std::string& more, const std::string& indent) {
  const std::string n = std::to_string(ahead);
  return "program p grid(1) warps 1\nglobal A bf16 [32, 160]\nglobal B bf16 [160, 16]\noutput C "
         "f32 [32, 16]\nshared a "
         "bf16 [32, 16]\n"
         "shared b bf16 [16, 16]\nregister fa bf16 [32, 16]\nregister fb bf16 [16, 16]\nregister "
         "acc f32 [32, 16]\n"
         "pipeline ring stages " +
         std::to_string(stages) + " { a, b }\nfill acc 0\nfor p in 0 .. " + n +
         ":\n  produce ring:\n    copy A[0 +32, p * 16 +16] -> a\n    copy B[p * 16 +16, 0 +16] -> "
         "b\n"
         "for k in 0 .. 10:\n  consume ring:\n    copy a -> fa\n    copy b -> fb\n    mma acc += "
         "fa * fb\n" +
         more + indent + "produce ring:\n" + indent + "  copy A[0 +32, (k + " + n +
         ") * 16 +16] -> a\n" + indent + "  copy B[(k + " + n +
         ") * 16 +16, 0 +16] -> b\ncopy acc -> C\n";
}

TEST(Found, FewerSlotsAheadThanStages) {
  EXPECT_EQ(outcome(pipelined(4, 1, "", "  "), "sm_80"), kAgrees);
}

TEST(Found, AsManySlotsAheadAsStages) {
  EXPECT_EQ(outcome(pipelined(2, 2, "", "  "), "sm_80"), kAgrees);
}

TEST(Found, SlotsThatABranchDoesNotProduce) {
  EXPECT_EQ(outcome(pipelined(3, 2, "  if k + 2 < 10:\n", "    "), "sm_80"), kAgrees);
}

// A product of a role's own rows from stages that another role fills.
std::string in_roles(int first_warps, const std::string& rows, const std::string& begin) {
  return "program p grid(1) warps " + std::to_string(first_warps + 4) +
         "\nglobal A bf16 [128, 128]\nglobal B bf16 [128, 32]\noutput C f32 [64, 32]\nshared a "
         "bf16 [" +
         rows +
         ", 64]\nshared b bf16 [64, 32]\nregister acc f32 [64, 32]\npipeline ring stages 2 { a, b "
         "}\nroles:\n  role "
         "producer warps " +
         std::to_string(first_warps) +
         ":\n    for k in 0 .. 2:\n      produce ring:\n        copy A[0 +" + rows +
         ", k * 64 +64] -> a\n        copy B[k * 64 +64, 0 +32] -> b\n  role consumer warps 4:\n   "
         " fill acc 0\n"
         "    for k in 0 .. 2:\n      consume ring:\n        mma acc += a[" +
         begin + " +64, 0 +64] * b\n    copy acc -> C\n";
}

TEST(Found, WarpgroupOperandsThatBeginInsideTheirTensor) {
  EXPECT_EQ(outcome(in_roles(4, "128", "64"), "sm_90a"), kAgrees);
}

TEST(Found, WarpgroupsBeginAtAMultipleOfFourWarps) {
  EXPECT_EQ(outcome(in_roles(1, "64", "0"), "sm_90a"), "no-instruction");
}

TEST(Found, PanelsOfFewerRowsThanASwizzleHas) {
  EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [2, 64]\noutput Y f32 [2, 64]\nshared "
                    "s f32 [2, 64]\ncopy "
                    "X -> s\ncopy s -> Y\n",
                    "sm_90a"),
            kAgrees);
}

TEST(Found, ThreadsFeedWarpgroupMatrixInstructions) {
  const std::string head =
      "program p grid(1) warps 4\nglobal A bf16 [64, 128]\nglobal B bf16 [128, "
      "32]\noutput C f32 "
      "[64, 32]\nshared a bf16 [64, 64]\n"
      "shared b bf16 [64, 32]\nregister acc f32 [64, 32]\n";
  const std::string copies = "copy A[0 +64, k * 64 +64] -> a\n";
  const std::string more = "copy B[k * 64 +64, 0 +32] -> b\n";
  EXPECT_EQ(outcome(head + "fill acc 0\nfor k in 0 .. 2:\n  " + copies + "  " + more +
                        "  mma acc += a * b\ncopy acc -> C\n",
                    "sm_90a"),
            kAgrees);
  EXPECT_EQ(
      outcome(head +
                  "pipeline ring stages 2 { a, b }\nfill acc 0\nfor k in 0 .. 2:\n  produce "
                  "ring:\n    " +
                  copies + "    " + more + "  consume ring:\n    mma acc += a * b\ncopy acc -> C\n",
              "sm_90a"),
      kAgrees);
}

TEST(Found, AFenceForTheCopyEngineThoughThreadsHaveMetBefore) {
  EXPECT_EQ(outcome("program p grid(1) warps 4\nglobal X f32 [16, 32]\noutput Y f32 [16, "
                    "32]\noutput Z f32 [16, "
                    "32]\nshared s f32 [16, 32]\n"
                    "register r f32 [16, 32]\nregister u f32 [16, 32]\ncopy X -> r\ncopy r -> "
                    "s\ncopy s -> u\ncopy s "
                    "-> Y\ncopy u -> Z\n",
                    "sm_90a"),
            kAgrees);
}

TEST(Found, StatementsBeforeRoles) {
  EXPECT_EQ(outcome("program p grid(1) warps 2\nglobal X f32 [8, 32]\noutput Y f32 [8, 32]\noutput "
                    "Z f32 [8, 32]\nshared s "
                    "f32 [8, 32]\nregister r f32 [8, 32]\n"
                    "register a f32 [8, 32]\nregister b f32 [8, 32]\ncopy X -> r\nmap r = add(r, "
                    "1)\ncopy r -> s\nroles:\n"
                    "  role one warps 1:\n    copy s -> a\n    copy a -> Y\n  role two warps 1:\n  "
                    "  copy s -> b\n    copy b "
                    "-> Z\n",
                    "sm_90a"),
            kAgrees);
}

TEST(Found, ABarrierInABranchDoesNotCountBehindIt) {
  EXPECT_EQ(outcome("program p grid(2) warps 4\nglobal X f32 [8, 64]\noutput Y f32 [2, 4, "
                    "64]\noutput Z f32 [4, 64]\n"
                    "shared s f32 [8, 64]\nregister r f32 [8, 64]\nregister u f32 [4, 64]\ncopy X "
                    "-> r\ncopy r -> s\n"
                    "if block_x < 1:\n  copy s[4 +4, 0 +64] -> u\n  copy u -> Z\n"
                    "copy s[4 +4, 0 +64] -> u\ncopy u -> Y[block_x +1, 0 +4, 0 +64]\n",
                    "sm_80"),
            kAgrees);
}

TEST(Found, TheCopyEngineOutsideATensorOfExtentOne) {
  EXPECT_EQ(outcome("program p grid(2) warps 1\nglobal X f32 [1, 8]\noutput Y f32 [1, 1, "
                    "16]\nshared s f32 [1, 8]\ncopy X -> s\n"
                    "copy s -> Y[0 +1, block_x +1, 0 +8]\n",
                    "sm_90a"),
            kAgrees);
}

TEST(Found, OneRoleReducesOverACluster) {
  const auto program = [](const char* other) {
    return fmt::format(
        "program p grid(2) cluster(2) warps 2\noutput Y f32 [2, 32]\noutput Z f32 [2, "
        "32]\nregister r f32 [1, 32]\n"
        "register u f32 [1, 32]\nroles:\n  role one warps 1:\n    fill u 2\n{}    copy u -> "
        "Z[block_x +1, 0 +32]\n"
        "  role two warps 1:\n    fill r 1\n    cluster_reduce sum r\n    copy r -> Y[block_x +1, "
        "0 +32]\n",
        other);
  };
  EXPECT_EQ(outcome(program(""), "sm_90a"), kAgrees);
  EXPECT_TRUE(outcome(program("    cluster_reduce sum u\n"), "sm_90a").starts_with("tile-invalid"));
}

TEST(Found, AScanOfOneValueAThreadOverLanesAndWarps) {
  EXPECT_EQ(
      outcome(
          "program p grid(1) warps 2\nglobal X f32 [64]\noutput Y f32 [64]\nregister r f32 [64]\n"
          "copy X -> r\nscan sum over 0: r -> r\ncopy r -> Y\n",
          "sm_80"),
      kAgrees);
}

TEST(Found, CopiesThatNothingMovesAreRefused) {
  EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [64]\noutput Y f32 [64]\nshared s f32 "
                    "[64]\nshared u f32 "
                    "[64]\ncopy X -> s\ncopy s -> u\ncopy u -> Y\n",
                    "sm_80"),
            "no-instruction");
  EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [64]\noutput Y f32 [32]\nregister r "
                    "f32 [64]\ncopy X -> "
                    "r\ncopy r[32 +32] -> Y\n",
                    "sm_80"),
            "no-instruction");
  EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [64]\noutput Y tf32 [64]\nregister r "
                    "tf32 [64]\ncopy X -> "
                    "r\ncopy r -> Y\n",
                    "sm_80"),
            "no-instruction");
}

TEST(Found, ArithmeticIsOnFloatsAndGoesIntoIntegersButNotDoubles) {
  for (const std::string type : {"f64", "i64", "i8", "boolean"})
    EXPECT_EQ(outcome("program p grid(1) warps 1\nglobal X f32 [64]\noutput Y " + type +
                          " [64]\nregister x f32 [64]\nregister y " + type +
                          " [64]\ncopy X -> x\nmap y = less(x, 1)\ncopy y -> Y\n",
                      "sm_80"),
              type == "f64" ? "no-instruction" : "agrees");
}

TEST(Found, ArithmeticOnEightBitFloatsNeedsATargetThatConvertsThem) {
  const std::string text =
      "program p grid(1) warps 1\nglobal X e4m3 [60]\noutput Y e4m3 [64]\nregister x e4m3 "
      "[64]\ncopy X[0 +64] -> x "
      "fill 2\n";
  EXPECT_EQ(outcome(text + "copy x -> Y\n", "sm_80"), kAgrees);
  EXPECT_EQ(outcome(text + "map x = neg(x)\ncopy x -> Y\n", "sm_80"), "no-instruction");
  EXPECT_EQ(outcome(text + "map x = neg(x)\ncopy x -> Y\n", "sm_89"), kAgrees);
}

TEST(Found, WarpsThatDoNotDivideAReductionAreRefused) {
  EXPECT_EQ(
      outcome("program p grid(1) warps 3\nglobal X f16 [1, 96]\noutput Y f32 [1, 1]\nregister x "
              "f16 [1, "
              "96]\nregister y f32 [1, 1]\ncopy X -> x\nreduce sum over 1: x -> y\ncopy y -> Y\n",
              "sm_80"),
      "no-instruction");
}

TEST(Found, WhatOnlyARearrangementFillsAndARowsCopyFollowsFrom) {
  EXPECT_EQ(outcome("program p grid(1) warps 4\nglobal X f32 [4, 256]\noutput Y f32 [4, "
                    "1]\nregister x f32 [4, 256]\n"
                    "register r f32 [4, 256]\nregister y f32 [4, 1]\ncopy X -> x\nrearrange x -> "
                    "r\nreduce sum over 1: r -> y\n"
                    "copy y -> Y\n",
                    "sm_80"),
            kAgrees);
}

TEST(Found, AFilledOperandOfAProductIsNoSumThatBeginsAnew) {
  EXPECT_EQ(outcome("program rs_zero grid(1, 2) warps 12\n"
                    "global V bf16 [2, 256, 64]\n"
                    "output O bf16 [2, 128, 64]\n"
                    "shared v bf16 [64, 64]\n"
                    "register weight bf16 [128, 64]\n"
                    "register acc f32 [128, 64]\n"
                    "register result bf16 [128, 64]\n"
                    "pipeline ring stages 2 { v }\n"
                    "roles:\n"
                    "  role producer warps 4 registers 40:\n"
                    "    for i in 0 .. 4:\n"
                    "      produce ring:\n"
                    "        copy V[block_y +1, i * 64 +64, 0 +64] -> v\n"
                    "  role consumer warps 8 registers 232:\n"
                    "    fill acc 1\n"
                    "    for i in 0 .. 4:\n"
                    "      consume ring:\n"
                    "        fill weight 0\n"
                    "        mma acc += weight * v\n"
                    "    copy acc -> result\n"
                    "    copy result -> O[block_y +1, block_x * 128 +128, 0 +64]\n",
                    "sm_90a"),
            kAgrees);
}

TEST(Found, TwoPipelinesThatAreConsumedWithinEachOtherCountTheirOwnSlots) {
  EXPECT_EQ(outcome("program gemm grid(1) warps 12\n"
                    "global A bf16 [128, 512]\n"
                    "global B bf16 [512, 128]\n"
                    "output C f32 [128, 128]\n"
                    "shared a bf16 [128, 64]\n"
                    "shared b bf16 [64, 128]\n"
                    "register acc f32 [128, 128]\n"
                    "pipeline ra stages 3 { a }\n"
                    "pipeline rb stages 2 { b }\n"
                    "roles:\n"
                    "  role producer warps 4 registers 40:\n"
                    "    for t in 0 .. 2:\n"
                    "      for k in 0 .. 4:\n"
                    "        produce ra:\n"
                    "          copy A[0 +128, t * 256 + k * 64 +64] -> a\n"
                    "        produce rb:\n"
                    "          copy B[t * 256 + k * 64 +64, 0 +128] -> b\n"
                    "  role consumer warps 8 registers 232:\n"
                    "    fill acc 0\n"
                    "    for t in 0 .. 2:\n"
                    "      for k in 0 .. 4:\n"
                    "        consume ra lag 1:\n"
                    "          consume rb lag 1:\n"
                    "            mma acc += a * b\n"
                    "    copy acc -> C\n",
                    "sm_90a"),
            kAgrees);
}

TEST(Found, LayoutsThatDoNotExistAreNoLayout) {
  EXPECT_EQ(outcome("program p grid(1) warps 4\nglobal X f32 [3, 51]\noutput Y f32 [3, "
                    "51]\nregister x f32 [3, "
                    "51]\ncopy X -> x\ncopy x -> Y\n",
                    "sm_80"),
            "no-layout");
}
}  // namespace
}  // namespace warploom
