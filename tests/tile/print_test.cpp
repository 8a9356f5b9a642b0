#include "tile/print.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/value_op.h"
#include "examples.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::tile {
namespace {
std::string report(const Result<Program>& program) {
  return program ? "" : describe(program.error());
}

constexpr std::string_view kGemm = R"(program gemm grid(2, 3, 1) warps 12
global A bf16 [64, 80]
global B bf16 [80, 48]
output C f32 [64, 48]
shared a bf16 [32, 16]
shared b bf16 [16, 16]
register acc0 f32 [16, 16]
register acc1 f32 [16, 16]
pipeline ab stages 3 { a, b }
roles:
  role producer warps 4 registers 40:
    for k in 0 .. 5:
      produce ab:
        copy A[block_x * 32 +32, k * 16 +16] -> a
        copy B[k * 16 +16, block_y * 16 +16] -> b
  role upper warps 4 registers 232:
    fill acc0 0
    for k in 0 .. 5:
      consume ab lag 1:
        mma acc0 += a[0 +16, 0 +16] * b
    copy acc0 -> C[block_x * 32 +16, block_y * 16 +16]
  role lower warps 4 registers 232:
    fill acc1 0
    for k in 0 .. 5:
      consume ab lag 1:
        mma acc1 += a[16 +16, 0 +16] * b
    copy acc1 -> C[block_x * 32 + 16 +16, block_y * 16 +16]
)";

TEST(Print, AMatmulReadsLikeItsMeaning) {
  EXPECT_EQ(print(matmul_with_roles({})), kGemm);
}

TEST(Print, OneStatementStandsWithoutItsBody) {
  const Program program = matmul_pipelined({});
  EXPECT_EQ(print(program, program.body[1]), "for p in 0 .. 2 unroll:");
  EXPECT_EQ(print(program, program.body[0]), "fill acc 0");
}

TEST(Print, AnUnknownTensorPrintsAsAQuestion) {
  Builder b("unknown");
  b.fill(7, 1);
  const Program program = b.finish();
  EXPECT_EQ(print(program, program.body[0]), "fill ? 1");
}

TEST(Parse, ExamplesComeBack) {
  for (const Program& program : {rowwise_scale(4, 16), matmul_with_roles({}), matmul_pipelined({}),
                                 online_softmax(4, 16, 8), cluster_softmax(4, 16, 4)}) {
    const std::string text = print(program);
    const auto again = parse(text);
    ASSERT_TRUE(again) << report(again) << text;
    EXPECT_EQ(print(*again), text);
    EXPECT_TRUE(verify(*again));
  }
}

TEST(Parse, ATextProgramMeansWhatTheBuiltOneMeans) {
  const auto program = parse(kGemm);
  ASSERT_TRUE(program) << report(program);
  Arrays arrays(*program);
  ASSERT_TRUE(interpret(*program, arrays.buffers()));
  EXPECT_LT(matmul_error({}, arrays), 1e-6);
}

TEST(Parse, CommentsBlankLinesAndDefaultsAreFree) {
  const auto program = parse(
      "# what it does\nprogram p grid(4)\n\nglobal X f32 [8]  // in\nregister r f32 [8]\n"
      "copy X -> r  # all of it\nif min(block_x, 3) < 2:\n  map r = add(r, -inf)\n");
  ASSERT_TRUE(program) << report(program);
  EXPECT_EQ(program->grid, (std::vector<int64_t>{4, 1, 1}));
  EXPECT_EQ(program->warps, 4);
  EXPECT_EQ(program->body[1].location.line, 7);
  EXPECT_TRUE(verify(*program));
}

TEST(Parse, APackedTensorComesBack) {
  const std::string text = "program p grid(1, 1, 1) warps 4\nglobal W u4 [64, 64] packed\n";
  const auto program = parse(text);
  ASSERT_TRUE(program) << report(program);
  EXPECT_TRUE(program->tensors[0].prepacked);
  EXPECT_EQ(print(*program), text);
}

TEST(Parse, WithoutAWarpCountTheRolesAreSummed) {
  const auto program =
      parse("program p grid(1)\nroles:\n  role one warps 4:\n  role two warps 8:\n");
  ASSERT_TRUE(program) << report(program);
  EXPECT_EQ(program->warps, 12);
}

void expect_syntax_error(std::string_view text, int line) {
  const auto program = parse(text, "file.tile");
  ASSERT_FALSE(program) << text;
  EXPECT_EQ(program.error().code, ErrorCode::kTileSyntax);
  EXPECT_EQ(program.error().place, fmt::format("file.tile:{}", line)) << text;
}

TEST(Parse, ErrorsNameTheLine) {
  const std::string head = "program p grid(1)\nregister r f32 [8]\nshared s f32 [8]\n";
  expect_syntax_error("", 1);
  expect_syntax_error("grid(1)", 1);
  expect_syntax_error("program p grid(1, 1, 1, 1)", 1);
  expect_syntax_error(head + "fill q 0\n", 4);
  expect_syntax_error(head + "fill r\n", 4);
  expect_syntax_error(head + "fill r 0 0\n", 4);
  expect_syntax_error(head + "fill r 1e999\n", 4);
  expect_syntax_error(head + "register r f32 [8]\n", 4);
  expect_syntax_error(head + "register t f31 [8]\n", 4);
  expect_syntax_error(head + "\n\nbrew coffee\n", 6);
  expect_syntax_error(head + "   fill r 0\n", 4);
  expect_syntax_error(head + "  fill r 0\n", 4);
  expect_syntax_error(head + "copy s[0] -> r\n", 4);
  expect_syntax_error(head + "copy s[8 +] -> r\n", 4);
  expect_syntax_error(head + "map r = add(r)\n", 4);
  expect_syntax_error(head + "map r = brew(r)\n", 4);
  expect_syntax_error(head + "consume ring:\n", 4);
  expect_syntax_error(head + "for k in 0 .. 99999999999999999999:\n", 4);
  expect_syntax_error(head + "fill r \"0\"\n", 4);
}

TEST(Parse, NestingHasALimit) {
  std::string text = "program p grid(1)\n";
  for (int i = 0; i < 100; ++i)
    text += std::string(static_cast<size_t>(2 * i), ' ') + "if 0 < 1:\n";
  EXPECT_EQ(parse(text).error().code, ErrorCode::kTileSyntax);
  const std::string open(100000, '(');
  EXPECT_EQ(parse("program p grid(1)\nif " + open + "\n").error().code, ErrorCode::kTileSyntax);
  std::string long_sum = "program p grid(1)\nif 0";
  for (int i = 0; i < 1500; ++i)
    long_sum += "+k";
  EXPECT_EQ(parse(long_sum + " < 1:\n").error().code, ErrorCode::kTileSyntax);
  std::string calls = "program p grid(1)\nregister r f32 [8]\nmap r = ";
  for (int i = 0; i < 1000; ++i)
    calls += "exp(";
  EXPECT_EQ(parse(calls + "\n").error().code, ErrorCode::kTileSyntax);
}

TEST(Parse, SizeHasALimit) {
  EXPECT_EQ(parse(std::string(size_t{9} << 20, ' ')).error().code, ErrorCode::kTileSyntax);
}

// A program of arbitrary statements: meaningless, but with names and numbers that exist.
class Arbitrary {
 public:
  explicit Arbitrary(uint64_t seed) : random_(seed) {}

  Program program() {
    Builder b("arbitrary");
    b.grid(1 + below(99), 1 + below(9), 1 + below(9)).warps(static_cast<int>(1 + below(32)));
    if (below(2)) b.cluster(1 + below(4), 1 + below(4));
    for (int i = 0; i < 6; ++i) {
      const std::string name = fmt::format("t{}", i);
      const auto dtype = static_cast<Dtype>(below(16));
      std::vector<int64_t> shape;
      for (int64_t d = below(3); d >= 0; --d)
        shape.push_back(1 + below(200));
      ranks_.push_back(shape.size());
      if (i == 0) b.global(name, dtype, shape);
      if (i == 1) b.output(name, dtype, shape, std::vector<int64_t>(shape.size(), 1 + below(9)));
      if (i == 2 || i == 3) b.shared(name, dtype, shape);
      if (i > 3) b.reg(name, dtype, shape);
    }
    b.pipeline("ring", static_cast<int>(1 + below(5)), {2, 3});
    if (below(2)) b.cooperative();
    if (below(2)) b.zeroed(1);
    if (below(2)) b.prepacked(0);
    statements(b, 3);
    if (below(2)) {
      b.roles([&] {
        for (int i = 0; i < 2; ++i)
          b.role(fmt::format("role{}", i), static_cast<int>(1 + below(8)),
                 static_cast<int>(8 * below(20)), [&] { statements(b, 2); });
      });
    }
    return b.finish();
  }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound)));
  }

  TensorId tensor() { return static_cast<TensorId>(below(6)); }

  double number() {
    const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -5e-324, 0.1};
    return below(2) ? special[below(8)] : random_.normal();
  }

  Index index(int depth) {
    if (depth == 0 || below(3) == 0) {
      const Index leaves[] = {block(0), block(1), cluster_rank(), Index::variable("k"),
                              Index(below(100) - 20)};
      return leaves[below(5)];
    }
    return Index::make(static_cast<IndexOp>(2 + below(7)), index(depth - 1), index(depth - 1));
  }

  Tile tile(const Builder& b) {
    const TensorId id = tensor();
    if (below(3) == 0) return b.all(id);
    Tile result{id, {}, {}};
    for (size_t i = 0; i < ranks_[static_cast<size_t>(id)]; ++i) {
      result.offset.push_back(index(3));
      result.extent.push_back(1 + below(64));
    }
    if (below(8) == 0)
      for (size_t i = 0; i < result.offset.size(); ++i)
        result.step.push_back(i ? 1 + below(3) : 2);
    if (below(8) == 0)
      return b.gathered(result, static_cast<int>(below(static_cast<int64_t>(result.offset.size()))),
                        0);
    return result;
  }

  Value value(const Builder& b, int depth) {
    if (depth == 0 || below(4) == 0) {
      const int kind = static_cast<int>(below(3));
      if (kind == 0) return constant(number());
      if (kind == 1) return coordinate(static_cast<int>(below(3)), index(3));
      return b.value(tensor());
    }
    const auto op = static_cast<ValueOp>(below(24));
    std::vector<Value> operands;
    for (int i = 0; i < arity_of(op); ++i)
      operands.push_back(value(b, depth - 1));
    return apply(op, operands);
  }

  void statements(Builder& b, int depth) {
    for (int64_t i = below(5); i > 0; --i)
      statement(b, depth);
  }

  void statement(Builder& b, int depth) {
    const auto inner = [&] { statements(b, depth - 1); };
    switch (below(depth > 0 ? 21 : 17)) {
      case 0: return b.copy(tile(b), tile(b), number(), below(2));
      case 1: return b.fill(tensor(), number());
      case 2: return b.map(tensor(), value(b, 3));
      case 3: return b.mma(tensor(), tile(b), tile(b), below(2), below(2));
      case 4:
        return b.reduce(tensor(), tensor(), static_cast<int>(below(3)),
                        static_cast<ReduceOp>(below(3)));
      case 5: return b.cluster_reduce(tensor(), static_cast<ReduceOp>(below(3)));
      case 6:
        return b.add(Scan{tensor(), tensor(), static_cast<int>(below(3)),
                          static_cast<ReduceOp>(below(3)), below(2) == 1});
      case 7: return b.convert_layout(tensor(), tensor(), below(2));
      case 8: return b.add(Bitcast{tensor(), tensor()});
      case 9: return b.multicast(tile(b), tile(b), below(2) ? "x" : "yz");
      case 10:
        return b.add(
            Copy{.src = tile(b), .dst = tile(b), .combine = static_cast<ReduceOp>(below(3))});
      case 11: return b.add(Signal{tile(b), index(3)});
      case 12: return b.add(Wait{tile(b), index(3)});
      case 13: return b.add(Copy{.src = tile(b), .dst = tile(b), .peer = index(3)});
      case 14: return b.add(ClusterSync{});
      case 15:
        return b.for_("k", index(2), index(2), index(1), [&](const Index&) { inner(); }, below(2));
      case 16: return b.if_less(index(3), index(3), inner);
      case 17: return b.produce(0, inner);
      default: return b.consume(0, static_cast<int>(below(3)), inner);
    }
  }

  Random random_;
  std::vector<size_t> ranks_;
};

TEST(Parse, ArbitraryProgramsComeBack) {
  EXPECT_TRUE(rc::check("parse(print(p)) prints as p", [](uint64_t seed) {
    const std::string text = print(Arbitrary(seed).program());
    const auto again = parse(text);
    RC_ASSERT(again.has_value());
    RC_ASSERT(print(*again) == text);
  }));
}

TEST(Parse, RandomBytesAreRefusedWithoutHarm) {
  Random random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (uint64_t n = random.below(200); n > 0; --n)
      text += static_cast<char>(random.below(256));
    const auto program = parse(text);
    ASSERT_FALSE(program);
    ASSERT_EQ(program.error().code, ErrorCode::kTileSyntax);
  }
}

// What parses after all is verified and, where it holds, prints and parses again.
TEST(Parse, MutatedProgramsAreRefusedOrComeBack) {
  Random random(4);
  const std::string pieces[] = {" ", "\n", "  ", "[",    "]",  "(", ")",    "0",  "9",  "-", "+",
                                "*", "/",  "a",  "acc0", "ab", ":", "\n\n", "..", "->", "k"};
  for (int i = 0; i < 6000; ++i) {
    std::string text =
        i % 2 ? std::string(kGemm) : print(Arbitrary(static_cast<uint64_t>(i)).program());
    for (uint64_t n = 1 + random.below(4); n > 0; --n) {
      const size_t at = random.below(text.size());
      std::string front = text.substr(0, at);
      std::string back = text.substr(at);
      switch (random.below(4)) {
        case 0: back = back.substr(std::min(back.size(), 1 + random.below(9))); break;
        case 1: front += pieces[random.below(std::size(pieces))]; break;
        case 2: back[0] = static_cast<char>(random.below(256)); break;
        default: front += text.substr(random.below(text.size()), random.below(60)); break;
      }
      text = fmt::format("{}{}\n", front, back);
    }
    const auto program = parse(text);
    if (!program) {
      ASSERT_EQ(program.error().code, ErrorCode::kTileSyntax);
      continue;
    }
    const Status status = verify(*program);
    ASSERT_TRUE(status || status.error().code == ErrorCode::kTileInvalid);
    const auto again = parse(print(*program));
    ASSERT_TRUE(again || !status) << print(*program);
    ASSERT_TRUE(!again || print(*again) == print(*program)) << print(*program);
  }
}
}  // namespace
}  // namespace warploom::tile
