#include "tile/print.h"
#include "tile/reader.h"
namespace warploom::tile {
namespace {
constexpr int kDeepest = 64;                        // statements inside each other
constexpr std::size_t kMostDeclarations = 1 << 12;  // tensors; pipelines

using Node = decltype(Statement::node);
template <std::size_t... I>
Node node_of(std::size_t index, std::index_sequence<I...>) {
  Node node;
  ((I == index ? static_cast<void>(node.emplace<I>()) : void()), ...);
  return node;
}

class Parser {
 public:
  Parser(std::vector<Line> lines, std::string_view file) : lines_(std::move(lines)), file_(file) {}

  Result<Program> program() {
    if (lines_.empty())
      return fail({ErrorCode::kTileSyntax, "the text holds no program", file_ + ":1", "program NAME grid(...)", "nothing"});
    program_.warps = kNotGiven;
    if (lines_[0].level != 0) return refused("the first line is indented");
    Reader header = next();
    line(header, program_);
    header.expect_end();
    WARPLOOM_CHECK(header.status());
    WARPLOOM_CHECK(body(0, program_.body));
    if (at_ < lines_.size()) return refused("the line is indented and nothing above it is a block");
    if (program_.warps == kNotGiven) program_.warps = sum_of_warps();
    return std::move(program_);
  }

 private:
  static constexpr int kNotGiven = -1;

  Reader next() { return Reader(lines_[at_++], file_, program_); }
  tl::unexpected<Error> refused(std::string message) {
    Reader here = next();
    here.fail(std::move(message));
    return tl::unexpected(here.status().error());
  }

  Status body(int level, Body& out) {
    while (at_ < lines_.size() && lines_[at_].level == level) {
      if (level > kDeepest) return refused("statements are nested too deeply");
      Reader io = next();
      const auto tensor =
          std::find_if(kTensorWords.begin(), kTensorWords.end(), [&](const TensorWord& row) { return io.is(row.word); });
      const auto word = std::find(kStatementWords.begin(), kStatementWords.end(), io.peek().text);
      if (tensor != kTensorWords.end()) {
        WARPLOOM_CHECK(declare(io, program_.tensors, "tensor"));
      } else if (io.is("pipeline")) {
        WARPLOOM_CHECK(declare(io, program_.pipelines, "pipeline"));
      } else if (word != kStatementWords.end()) {
        io.take();
        const auto kind = static_cast<std::size_t>(word - kStatementWords.begin());
        Statement read{node_of(kind, std::make_index_sequence<std::variant_size_v<Node>>()), {file_, io.line().number}};
        WARPLOOM_CHECK(std::visit([&](auto& node) { return statement(io, node); }, read.node));
        out.push_back(std::move(read));
      } else {
        io.fail("no statement begins so", "a declaration or a statement");
        return io.status();
      }
    }
    return ok();
  }

  // A line and what is indented below it.
  template <class Any>
  Status statement(Reader& io, Any& node) {
    line(io, node);
    io.expect_end();
    WARPLOOM_CHECK(io.status());
    const int level = io.line().level + 1;
    if constexpr (requires { node.body; }) return body(level, node.body);
    if constexpr (requires { node.roles; })
      while (at_ < lines_.size() && lines_[at_].level == level) {
        Reader role = next();
        WARPLOOM_CHECK(statement(role, node.roles.emplace_back()));
      }
    return ok();
  }

  template <class Declared>
  Status declare(Reader& io, std::vector<Declared>& list, std::string_view what) {
    Declared declared;
    line(io, declared);
    io.expect_end();
    for (const Declared& other : list)
      if (other.name == declared.name) io.fail(fmt::format("{} '{}' is declared twice", what, declared.name));
    if (list.size() == kMostDeclarations) io.fail(fmt::format("the program has too many {}s", what));
    WARPLOOM_CHECK(io.status());
    if constexpr (Of<Declared, Tensor>) {
      if (declared.scope == Scope::global && declared.strides.empty()) declared.strides = dense_strides(declared.shape);
    } else {
      for (const TensorId slot : declared.tensors)
        program_.tensors[static_cast<std::size_t>(slot)].pipeline = static_cast<PipelineId>(list.size());
    }
    list.push_back(std::move(declared));
    return ok();
  }

  int sum_of_warps() const {
    int warps = Program().warps;
    for (const Statement& statement : program_.body)
      if (const Roles* roles = std::get_if<Roles>(&statement.node)) {
        warps = 0;
        for (const Role& role : roles->roles) warps = std::min(warps + role.warps, 1 << 20);
      }
    return warps;
  }

  std::vector<Line> lines_;
  std::string file_;
  std::size_t at_ = 0;  // the next line
  Program program_;
};
}  // namespace
Result<Program> parse(std::string_view text, std::string_view file) {
  WARPLOOM_TRY(std::vector<Line> lines, split_lines(text, file));
  return Parser(std::move(lines), file).program();
}
}  // namespace warploom::tile
