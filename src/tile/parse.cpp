#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tile/expressions.h"
#include "tile/lexer.h"
#include "tile/print.h"
#include "tile/shape.h"
#include "tile/words.h"

namespace warploom::tile {
namespace {

constexpr int kDeepest = 64;                        // statements inside each other
constexpr std::size_t kMostDeclarations = 1 << 12;  // tensors; pipelines

class Parser {
 public:
  Parser(std::vector<Line> lines, std::string_view file) : lines_(std::move(lines)), file_(file) {}

  Result<Program> program() {
    if (lines_.empty())
      return fail(
          {ErrorCode::kTileSyntax, "the text holds no program", file_ + ":1", "program NAME grid(...)", "nothing"});
    WARPLOOM_CHECK(header());
    WARPLOOM_CHECK(body(0, program_.body));
    if (at_ < lines_.size())
      return Cursor(lines_[at_], file_).error("the line is indented and nothing above it is a block");
    if (!warps_given_) sum_warps();
    return std::move(program_);
  }

 private:
  using Reader = Status (Parser::*)(Cursor&, Body&);
  struct Word {
    std::string_view word;
    Reader read;
  };
  static const std::array<Word, 16> kWords;

  Status header() {
    Cursor cursor(lines_[at_++], file_);
    if (cursor.line().level != 0) return cursor.error("the first line is indented");
    WARPLOOM_CHECK(cursor.expect("program"));
    WARPLOOM_TRY(program_.name, cursor.word("the program's name"));
    WARPLOOM_CHECK(cursor.expect("grid"));
    WARPLOOM_TRY(program_.grid, extents(cursor));
    if (cursor.accept("cluster")) { WARPLOOM_TRY(program_.cluster, extents(cursor)); }
    if (cursor.accept("warps")) {
      WARPLOOM_TRY(program_.warps, cursor.small("warps a block"));
      warps_given_ = true;
    }
    return cursor.expect_end();
  }

  static Result<std::vector<std::int64_t>> extents(Cursor& cursor) {
    WARPLOOM_TRY(std::vector<std::int64_t> values, cursor.integers("(", ")"));
    if (values.size() > 3) return cursor.error("a grid has at most three extents");
    values.resize(3, 1);
    return values;
  }

  Status body(int level, Body& out) {
    if (level > kDeepest) return Cursor(lines_[at_], file_).error("statements are nested too deeply");
    while (at_ < lines_.size() && lines_[at_].level == level) {
      Cursor cursor(lines_[at_++], file_);
      Reader read = nullptr;
      for (const Word& word : kWords)
        if (cursor.is(word.word)) read = word.read;
      if (!read) return cursor.error("no statement begins so", "a declaration or a statement");
      cursor.take();
      WARPLOOM_CHECK((this->*read)(cursor, out));
    }
    return ok();
  }

  // The end of a block's first line, and the block.
  Result<Body> block(Cursor& cursor) {
    WARPLOOM_CHECK(cursor.expect(":"));
    WARPLOOM_CHECK(cursor.expect_end());
    Body inner;
    if (at_ < lines_.size() && lines_[at_].level > cursor.line().level)
      WARPLOOM_CHECK(body(cursor.line().level + 1, inner));
    return inner;
  }

  template <class Node>
  Status add(const Cursor& cursor, Body& out, Node node) {
    out.push_back({std::move(node), {file_, cursor.line().number}});
    return ok();
  }
  template <class Node>
  Status add_line(Cursor& cursor, Body& out, Node node) {
    WARPLOOM_CHECK(cursor.expect_end());
    return add(cursor, out, std::move(node));
  }

  Result<TensorId> tensor(Cursor& cursor) const { return read_tensor(cursor, program_); }
  Result<PipelineId> pipeline(Cursor& cursor) const {
    for (std::size_t i = 0; i < program_.pipelines.size(); ++i)
      if (cursor.is(program_.pipelines[i].name)) {
        cursor.take();
        return static_cast<PipelineId>(i);
      }
    return cursor.error("no pipeline has this name", "the name of a pipeline declared above");
  }
  static Result<ReduceOp> reduce_op(Cursor& cursor) {
    const auto op = reduce_op_named(cursor.peek().text);
    if (!op) return cursor.error("no reduction has this name", "sum, max or min");
    cursor.take();
    return *op;
  }

  Status declare(Cursor& cursor, Scope scope, bool writable) {
    Tensor declared;
    declared.scope = scope;
    declared.writable = writable;
    WARPLOOM_TRY(declared.name, cursor.word("the tensor's name"));
    for (const Tensor& other : program_.tensors)
      if (other.name == declared.name) return cursor.error(fmt::format("tensor '{}' is declared twice", declared.name));
    if (program_.tensors.size() == kMostDeclarations) return cursor.error("the program has too many tensors");
    const auto dtype = dtype_named(cursor.peek().text);
    if (!dtype) return cursor.error("no element type has this name", "an element type");
    cursor.take();
    declared.dtype = *dtype;
    WARPLOOM_TRY(declared.shape, cursor.integers("[", "]"));
    if (scope == Scope::global) declared.strides = dense_strides(declared.shape);
    if (scope == Scope::global && cursor.accept("strides")) {
      WARPLOOM_TRY(declared.strides, cursor.integers("[", "]"));
    }
    WARPLOOM_CHECK(cursor.expect_end());
    program_.tensors.push_back(std::move(declared));
    return ok();
  }
  Status read_global(Cursor& cursor, Body&) { return declare(cursor, Scope::global, false); }
  Status read_output(Cursor& cursor, Body&) { return declare(cursor, Scope::global, true); }
  Status read_shared(Cursor& cursor, Body&) { return declare(cursor, Scope::shared, false); }
  Status read_register(Cursor& cursor, Body&) { return declare(cursor, Scope::reg, false); }

  Status read_pipeline(Cursor& cursor, Body&) {
    Pipeline declared;
    WARPLOOM_TRY(declared.name, cursor.word("the pipeline's name"));
    for (const Pipeline& other : program_.pipelines)
      if (other.name == declared.name)
        return cursor.error(fmt::format("pipeline '{}' is declared twice", declared.name));
    if (program_.pipelines.size() == kMostDeclarations) return cursor.error("the program has too many pipelines");
    WARPLOOM_CHECK(cursor.expect("stages"));
    WARPLOOM_TRY(declared.stages, cursor.small("a number of stages"));
    WARPLOOM_CHECK(cursor.expect("{"));
    do {
      WARPLOOM_TRY(const TensorId slot, tensor(cursor));
      program_.tensors[static_cast<std::size_t>(slot)].pipeline = static_cast<PipelineId>(program_.pipelines.size());
      declared.tensors.push_back(slot);
    } while (cursor.accept(","));
    WARPLOOM_CHECK(cursor.expect("}"));
    WARPLOOM_CHECK(cursor.expect_end());
    program_.pipelines.push_back(std::move(declared));
    return ok();
  }

  Status read_copy(Cursor& cursor, Body& out) {
    Copy copy;
    WARPLOOM_TRY(copy.src, read_tile(cursor, program_));
    WARPLOOM_CHECK(cursor.expect("->"));
    WARPLOOM_TRY(copy.dst, read_tile(cursor, program_));
    if (cursor.accept("fill")) { WARPLOOM_TRY(copy.fill, cursor.real()); }
    copy.streaming = cursor.accept("streaming");
    return add_line(cursor, out, std::move(copy));
  }
  Status read_fill(Cursor& cursor, Body& out) {
    Fill fill;
    WARPLOOM_TRY(fill.dst, tensor(cursor));
    WARPLOOM_TRY(fill.value, cursor.real());
    return add_line(cursor, out, fill);
  }
  Status read_map(Cursor& cursor, Body& out) {
    Map map;
    WARPLOOM_TRY(map.dst, tensor(cursor));
    WARPLOOM_CHECK(cursor.expect("="));
    WARPLOOM_TRY(map.value, read_value(cursor, program_));
    return add_line(cursor, out, std::move(map));
  }
  Status read_mma(Cursor& cursor, Body& out) {
    Mma mma;
    WARPLOOM_TRY(mma.acc, tensor(cursor));
    WARPLOOM_CHECK(cursor.expect("+="));
    WARPLOOM_TRY(mma.a, read_tile(cursor, program_));
    mma.transpose_a = cursor.accept("^T");
    WARPLOOM_CHECK(cursor.expect("*"));
    WARPLOOM_TRY(mma.b, read_tile(cursor, program_));
    mma.transpose_b = cursor.accept("^T");
    return add_line(cursor, out, std::move(mma));
  }
  Status read_reduce(Cursor& cursor, Body& out) {
    Reduce reduce;
    WARPLOOM_TRY(reduce.op, reduce_op(cursor));
    WARPLOOM_CHECK(cursor.expect("over"));
    WARPLOOM_TRY(reduce.axis, cursor.small("an axis"));
    WARPLOOM_CHECK(cursor.expect(":"));
    WARPLOOM_TRY(reduce.src, tensor(cursor));
    WARPLOOM_CHECK(cursor.expect("->"));
    WARPLOOM_TRY(reduce.dst, tensor(cursor));
    return add_line(cursor, out, reduce);
  }
  Status read_cluster_reduce(Cursor& cursor, Body& out) {
    ClusterReduce reduce;
    WARPLOOM_TRY(reduce.op, reduce_op(cursor));
    WARPLOOM_TRY(reduce.dst, tensor(cursor));
    return add_line(cursor, out, reduce);
  }

  Status read_for(Cursor& cursor, Body& out) {
    For loop;
    loop.step = Index(1);
    WARPLOOM_TRY(loop.variable, cursor.word("the loop's variable"));
    WARPLOOM_CHECK(cursor.expect("in"));
    WARPLOOM_TRY(loop.begin, read_index(cursor));
    WARPLOOM_CHECK(cursor.expect(".."));
    WARPLOOM_TRY(loop.end, read_index(cursor));
    if (cursor.accept("step")) { WARPLOOM_TRY(loop.step, read_index(cursor)); }
    loop.unroll = cursor.accept("unroll");
    WARPLOOM_TRY(loop.body, block(cursor));
    return add(cursor, out, std::move(loop));
  }
  Status read_if(Cursor& cursor, Body& out) {
    If branch;
    WARPLOOM_TRY(branch.left, read_index(cursor));
    WARPLOOM_CHECK(cursor.expect("<"));
    WARPLOOM_TRY(branch.right, read_index(cursor));
    WARPLOOM_TRY(branch.body, block(cursor));
    return add(cursor, out, std::move(branch));
  }
  Status read_produce(Cursor& cursor, Body& out) {
    Produce produce;
    WARPLOOM_TRY(produce.pipeline, pipeline(cursor));
    WARPLOOM_TRY(produce.body, block(cursor));
    return add(cursor, out, std::move(produce));
  }
  Status read_consume(Cursor& cursor, Body& out) {
    Consume consume;
    WARPLOOM_TRY(consume.pipeline, pipeline(cursor));
    if (cursor.accept("lag")) { WARPLOOM_TRY(consume.lag, cursor.small("a number of slots")); }
    WARPLOOM_TRY(consume.body, block(cursor));
    return add(cursor, out, std::move(consume));
  }

  Status read_roles(Cursor& cursor, Body& out) {
    WARPLOOM_CHECK(cursor.expect(":"));
    WARPLOOM_CHECK(cursor.expect_end());
    Roles roles;
    const int level = cursor.line().level + 1;
    while (at_ < lines_.size() && lines_[at_].level == level) {
      Cursor line(lines_[at_++], file_);
      WARPLOOM_TRY(Role role, read_role(line));
      roles.roles.push_back(std::move(role));
    }
    return add(cursor, out, std::move(roles));
  }
  Result<Role> read_role(Cursor& cursor) {
    Role role;
    WARPLOOM_CHECK(cursor.expect("role"));
    WARPLOOM_TRY(role.name, cursor.word("the role's name"));
    WARPLOOM_CHECK(cursor.expect("warps"));
    WARPLOOM_TRY(role.warps, cursor.small("a number of warps"));
    if (cursor.accept("registers")) { WARPLOOM_TRY(role.registers, cursor.small("a number of registers")); }
    WARPLOOM_TRY(role.body, block(cursor));
    return role;
  }

  void sum_warps() {
    for (const Statement& statement : program_.body)
      if (const Roles* roles = std::get_if<Roles>(&statement.node)) {
        program_.warps = 0;
        for (const Role& role : roles->roles) program_.warps = std::min(program_.warps + role.warps, 1 << 20);
      }
  }

  std::vector<Line> lines_;
  std::string file_;
  std::size_t at_ = 0;  // the next line
  Program program_;
  bool warps_given_ = false;
};

const std::array<Parser::Word, 16> Parser::kWords = {{{"global", &Parser::read_global},
                                                      {"output", &Parser::read_output},
                                                      {"shared", &Parser::read_shared},
                                                      {"register", &Parser::read_register},
                                                      {"pipeline", &Parser::read_pipeline},
                                                      {"copy", &Parser::read_copy},
                                                      {"fill", &Parser::read_fill},
                                                      {"map", &Parser::read_map},
                                                      {"mma", &Parser::read_mma},
                                                      {"reduce", &Parser::read_reduce},
                                                      {"cluster_reduce", &Parser::read_cluster_reduce},
                                                      {"for", &Parser::read_for},
                                                      {"if", &Parser::read_if},
                                                      {"produce", &Parser::read_produce},
                                                      {"consume", &Parser::read_consume},
                                                      {"roles", &Parser::read_roles}}};

}  // namespace

Result<Program> parse(std::string_view text, std::string_view file) {
  WARPLOOM_TRY(std::vector<Line> lines, split_lines(text, file));
  return Parser(std::move(lines), file).program();
}

}  // namespace warploom::tile
